// The two large pictures, the sample and the decoded code, and the buttons below them.
(() => {
  "use strict";
  const qlae = (window.qlae = window.qlae || {});
  const { state, find, make } = qlae;
  let decoded = null; // the picture of the current code
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
        const { code, since } = state;
        const [picture] = await state.backend.decode([code]);
        if (picture) {
          decoded = picture;
          showPicture(null);
          measureLatency(since);
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

  // show a temporary picture, such as one of a sweep; null restores the picture of the code
  function showPicture(picture) {
    if (picture || decoded) qlae.pixels.draw(find("decoded"), picture || decoded);
  }

  function showSample() {
    const { sample, run } = state;
    const title = sample.row === null
      ? `your picture${sample.name ? ` · ${sample.name}` : ""}`
      : `image ${sample.index.toLocaleString("en")} of ${run.data.num_images.toLocaleString("en")}`;
    const chips = (sample.sources || []).map((level, i) =>
      make("span", { class: `chip source-${i % 10}`, "data-source": i },
        make("i"), run.source_names[i], make("b", {}, ` ${Number.isInteger(level) ? level : level.toFixed(2)}`)));
    find("about").replaceChildren(make("span", { class: "sample-title" }, title), ...chips);
    find("original-caption").textContent = sample.row === null ? "your picture" : run.has_images ? "original" : "reconstruction";
    qlae.pixels.draw(find("original"), sample.picture);
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
    qlae.pixels.download(decoded, `${state.run.run}-${title}-${state.changed.length ? "changed" : "decoded"}.png`);
  }

  function start() {
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

  qlae.latencies = []; // ms from input to picture; read by tests/explorer/measure_latency.py
  qlae.stage = { start, copyCode, downloadPicture, showPicture };
})();
