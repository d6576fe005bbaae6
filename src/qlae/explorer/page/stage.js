// The stage: the sample and the observation decoded from the code, and the buttons below them.
(() => {
  "use strict";
  const qlae = (window.qlae = window.qlae || {});
  const { state, find, make } = qlae;
  let decoded = null; // the observation of the current code
  let start = null; // { sample, observation }: decoded from the code of the sample
  let temporary = null; // shown instead of the former, such as a step of a sweep
  let isHighlighting = false;
  let isDecoding = false;
  let isStale = false;

  // One request at a time, always for the newest code; codes in between are skipped.
  async function decodeCode() {
    isStale = true;
    if (isDecoding) return;
    isDecoding = true;
    try {
      while (isStale) {
        isStale = false;
        const { code, since, sample } = state;
        const needsStart = start?.sample !== sample;
        const [observation, first] = await state.backend.decode(needsStart ? [code, sample.code] : [code]);
        if (sample !== state.sample) continue;
        if (needsStart) start = { sample, observation: first };
        if (observation) {
          decoded = observation;
          showPicture(null);
          measureLatency(since);
          if (needsStart) state.emit("start");
        }
      }
    } catch (error) {
      qlae.showError(error);
    } finally {
      isDecoding = false;
    }
  }

  // the time from the input to the frame that shows the picture
  function measureLatency(since) {
    requestAnimationFrame(() => {
      const latency = performance.now() - since;
      qlae.latencies.push(latency);
      find("latency").textContent = `${Math.round(latency)} ms`;
    });
  }

  // show something else for a while, such as a step of a sweep; null restores the observation decoded from the code
  function showPicture(observation) {
    temporary = observation;
    draw();
  }

  // the reference that changes are measured from, and whether pictures highlight them
  const comparison = () => ({ start: start?.sample === state.sample ? start.observation : null, highlight: isHighlighting });

  function draw() {
    const now = temporary || (start?.sample === state.sample ? decoded : null);
    qlae.view.show({ original: state.sample.picture, photo: state.sample.photo, decoded: now, isSettled: !temporary, isChanged: Boolean(temporary) || state.changed.length > 0, ...comparison() });
  }

  function setHighlighting(on) {
    isHighlighting = on && qlae.view.canHighlight;
    find("highlight").setAttribute("aria-pressed", String(isHighlighting));
    if (state.sample) draw();
    state.emit("highlight");
  }

  function showSample() {
    const { sample, run } = state;
    const place = sample.row === null ? "" : `${run.observations.one} ${sample.index.toLocaleString("en")} of ${run.data.num_images.toLocaleString("en")}`;
    const title = sample.file ? `${sample.file} · ${place}` : sample.row === null
      ? `${qlae.view.uploadWord.toLowerCase()}${sample.name ? ` · ${sample.name}` : ""}`
      : place;
    const chips = (sample.sources || []).map((level, i) =>
      make("span", { class: `chip source-${i % 10}`, "data-source": i },
        make("i"), run.source_names[i], make("b", {}, ` ${Number.isInteger(level) ? level : level.toFixed(2)}`)));
    const fidelity = sample.fidelity
      ? [make("span", { class: "chip fidelity", title: `How close the reconstruction of this ${run.observations.one} is. The mean over all ${run.observations.many} is the score at the top of the page.` }, sample.fidelity)]
      : [];
    find("about").replaceChildren(make("span", { class: "sample-title", title }, title), ...fidelity, ...chips);
    find("original-caption").textContent = sample.row === null ? qlae.view.uploadWord.toLowerCase() : run.has_images ? "original" : "reconstruction";
    draw();
  }

  function showChanges() {
    find("undo").disabled = !state.canUndo;
    find("redo").disabled = !state.canRedo;
    find("reset").disabled = !state.changed.length;
    const changed = state.changed.map((j) => `z${j}`);
    find("changed").textContent = changed.length ? `Changed: ${changed.join(", ")}` : "No latent changed";
  }

  async function copyCode() {
    const text = JSON.stringify(state.code);
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      // without permission for the clipboard, select the text and copy it as a user would
      const area = make("textarea", { class: "offscreen" });
      area.value = text;
      document.body.append(area);
      area.select();
      const copied = document.execCommand("copy");
      area.remove();
      if (!copied) return qlae.showMessage(`The browser blocked copying. The code is ${text}`, true);
    }
    return qlae.showMessage(`Copied ${text.length > 60 ? "the code" : text}`);
  }

  function downloadPicture() {
    if (!decoded) return;
    const title = state.sample.row === null ? "own" : state.sample.index;
    qlae.view.download(decoded, `${state.run.run}-${title}-${state.changed.length ? "changed" : "decoded"}`);
  }

  function startParts() {
    qlae.view.startStage(find("stage-pictures"));
    for (const id of ["highlight", "keys-highlight"]) find(id).hidden = !qlae.view.canHighlight;
    find("highlight").addEventListener("click", () => setHighlighting(!isHighlighting));
    find("download").title = qlae.view.downloadHint;
    state.on("sample", showSample);
    state.on("code", () => {
      showChanges();
      decodeCode();
    });
    find("undo").addEventListener("click", () => state.undo());
    find("redo").addEventListener("click", () => state.redo());
    find("reset").addEventListener("click", () => state.reset());
    find("copy").addEventListener("click", copyCode);
    find("download").addEventListener("click", downloadPicture);
  }

  qlae.latencies = []; // ms from input to picture; read by benchmarks/explorer_latency.py
  qlae.stage = { start: startParts, copyCode, downloadPicture, showPicture, comparison, setHighlighting, isHighlighting: () => isHighlighting };
})();
