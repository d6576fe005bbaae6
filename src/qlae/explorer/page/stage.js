// The two large pictures: the sample and what the code as it stands decodes to, and the buttons under them.
(() => {
  "use strict";
  const qlae = (window.qlae = window.qlae || {});
  const { state, find, make } = qlae;
  let decoded = null; // the picture of the code
  let busy = false;
  let stale = false;

  // one request at a time, always for the newest code: what came between is never asked for
  async function follow() {
    stale = true;
    if (busy) return;
    busy = true;
    try {
      while (stale) {
        stale = false;
        const { code, since } = state;
        const [picture] = await state.backend.decode([code]);
        if (picture) {
          decoded = picture;
          showPicture(null);
          measure(since);
        }
      }
    } catch (error) {
      qlae.fail(error);
    } finally {
      busy = false;
    }
  }

  // from the input to the frame that shows the picture
  function measure(since) {
    requestAnimationFrame(() => {
      const took = performance.now() - since;
      qlae.latencies.push(took);
      find("latency").textContent = `${Math.round(took)} ms`;
    });
  }

  // a picture for the moment, as while a latent is swept; null for that of the code
  function showPicture(picture) {
    if (picture || decoded) qlae.pixels.draw(find("decoded"), picture || decoded);
  }

  function about() {
    const { sample, run } = state;
    const where = sample.row === null
      ? `your picture${sample.name ? ` · ${sample.name}` : ""}`
      : `image ${sample.index.toLocaleString("en")} of ${run.data.num_images.toLocaleString("en")}`;
    const chips = (sample.sources || []).map((level, i) =>
      make("span", { class: `chip source-${i % 10}`, "data-source": i },
        make("i"), run.source_names[i], make("b", {}, ` ${Number.isInteger(level) ? level : level.toFixed(2)}`)));
    find("about").replaceChildren(make("span", { class: "where" }, where), ...chips);
    find("original-caption").textContent = sample.row === null ? "your picture" : run.has_images ? "original" : "its reconstruction";
    qlae.pixels.draw(find("original"), sample.picture);
  }

  function buttons() {
    find("undo").disabled = !state.canUndo;
    find("redo").disabled = !state.canRedo;
    find("reset").disabled = !state.changed.length;
    const named = state.changed.map((j) => `z${j}`);
    find("changed").textContent = named.length ? `moved: ${named.join(", ")}` : "the code as it was encoded";
  }

  async function copy() {
    const text = JSON.stringify(state.code);
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const area = make("textarea", { class: "away" });
      area.value = text;
      document.body.append(area);
      area.select();
      const copied = document.execCommand("copy");
      area.remove();
      if (!copied) return qlae.toast(`The browser does not let this page copy. The code: ${text}`, true);
    }
    return qlae.toast(`Copied ${text.length > 60 ? "the code" : text}`);
  }

  function download() {
    if (!decoded) return;
    const which = state.sample.row === null ? "own" : state.sample.index;
    qlae.pixels.download(decoded, `${state.run.run}-${which}-${state.changed.length ? "changed" : "decoded"}.png`);
  }

  function start() {
    state.on("sample", about);
    state.on("code", () => {
      buttons();
      follow();
    });
    find("undo").addEventListener("click", () => state.undo());
    find("redo").addEventListener("click", () => state.redo());
    find("reset").addEventListener("click", () => state.reset());
    find("copy").addEventListener("click", copy);
    find("download").addEventListener("click", download);
  }

  qlae.latencies = []; // ms from input to picture, for whoever wants to know
  qlae.stage = { start, copy, download };
  qlae.showPicture = showPicture;
})();
