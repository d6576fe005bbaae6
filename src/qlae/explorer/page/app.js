// The page as a whole: what it says of the run, tabs, keys, light and dark.
(() => {
  "use strict";
  const qlae = (window.qlae = window.qlae || {});
  const { state, find, make } = qlae;
  const TABS = ["latents", "mix", "find"];
  const SCORES = { infom: "InfoM", infoe: "InfoE", infoc: "InfoC", d: "D", i: "I", c: "C", psnr: "PSNR" };

  function describe() {
    const { run, model, data, steps, scores } = state.run;
    document.title = `${run} · qlae explorer`;
    find("run-name").textContent = run;
    const side = data.resolution;
    find("facts").textContent = [model, `${data.name}, ${data.origin}, ${side}×${side}`, `${steps.toLocaleString("en")} updates`].join(" · ");
    find("scores").replaceChildren(...Object.entries(scores).map(([name, value]) =>
      make("div", {}, make("dt", {}, SCORES[name]), make("dd", {}, name === "psnr" ? `${value.toFixed(1)} dB` : value.toFixed(2)))));
    const notes = [];
    if (state.backend.saved) {
      notes.push(`A saved page: ${state.backend.rows.length} samples, one latent moved at a time. To move several, mix two samples, find images, encode your own pictures or give names, run: qlae explore ${run}.`);
    } else if (!state.run.has_images) {
      notes.push("The images of this run are not on this machine: reconstructions stand in for them.");
    }
    if (!state.run.nmi) notes.push("No sources are known for this data, so latents are not named after what they tell" + (state.backend.saved ? "." : "; give them names of your own."));
    find("notice").textContent = notes.join(" ");
    find("notice").hidden = !notes.length;
  }

  function openTab(name, focus = false) {
    for (const tab of TABS) {
      const on = tab === name;
      find(`tab-${tab}`).setAttribute("aria-selected", String(on));
      find(`tab-${tab}`).tabIndex = on ? 0 : -1;
      find(`panel-${tab}`).hidden = !on;
      if (on && focus) find(`tab-${tab}`).focus();
    }
    find("order-label").hidden = name !== "latents";
    if (name === "mix") qlae.mix.open();
    if (name === "find") qlae.find_images.open();
  }

  function startTabs() {
    TABS.forEach((tab) => find(`tab-${tab}`).addEventListener("click", () => openTab(tab)));
    document.querySelector("[role=tablist]").addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!step || !event.target.matches("[role=tab]")) return;
      const open = TABS.filter((tab) => !find(`tab-${tab}`).hidden);
      const at = open.findIndex((tab) => find(`tab-${tab}`).getAttribute("aria-selected") === "true");
      openTab(open[(at + step + open.length) % open.length], true);
    });
  }

  function theme(next) {
    if (next === "light" || next === "dark") document.documentElement.dataset.theme = next;
    else delete document.documentElement.dataset.theme;
  }

  function startTheme() {
    const kept = { get: () => { try { return localStorage.getItem("qlae-theme"); } catch { return null; } },
      set: (value) => { try { localStorage.setItem("qlae-theme", value); } catch { /* a page from disk may keep nothing */ } } };
    theme(kept.get());
    find("theme").addEventListener("click", () => {
      const now = document.documentElement.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
      const next = now === "dark" ? "light" : "dark";
      theme(next);
      kept.set(next);
    });
  }

  function startKeys() {
    const online = (action) => () => !state.backend.saved && action();
    const onLatent = (action) => () => qlae.latents.focused() !== null && action(qlae.latents.focused());
    const keys = {
      r: () => find("random").click(),
      b: () => find("open-browse").click(),
      u: online(() => find("upload").click()),
      z: () => state.undo(),
      y: () => state.redo(),
      0: () => state.reset(),
      c: () => qlae.stage.copy(),
      d: () => qlae.stage.download(),
      j: () => qlae.latents.focusNext(1),
      k: () => qlae.latents.focusNext(-1),
      s: onLatent((j) => qlae.sweep(j)),
      n: online(onLatent((j) => qlae.openNaming(j))),
      f: online(onLatent((j) => qlae.findSharing(j))),
      1: () => openTab("latents", true),
      2: online(() => openTab("mix", true)),
      3: online(() => openTab("find", true)),
      "?": () => find("keys").showModal(),
    };
    addEventListener("keydown", (event) => {
      const typing = event.target.closest?.("input:not([type=radio]), textarea, select:not(.picker select), dialog");
      if (typing || document.querySelector("dialog[open]") || event.altKey) return;
      const key = event.key.toLowerCase();
      if (event.ctrlKey || event.metaKey) {
        if (key !== "z" && key !== "y") return;
        event.preventDefault();
        if (key === "y" || event.shiftKey) state.redo();
        else state.undo();
        return;
      }
      if (!(key in keys)) return;
      event.preventDefault();
      keys[key]();
    });
    find("help").addEventListener("click", () => find("keys").showModal());
    for (const dialog of document.querySelectorAll("dialog")) {
      dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
    }
  }

  async function start() {
    startTheme();
    try {
      state.backend = qlae.connect();
      state.run = await state.backend.describe();
      describe();
      for (const part of ["stage", "latents", "samples", "heatmap", "mix", "find_images", "naming"]) qlae[part].start();
      startTabs();
      startKeys();
      await qlae.samples.pick(qlae.samples.first());
      document.documentElement.dataset.ready = "true";
    } catch (error) {
      find("notice").textContent = error.message;
      find("notice").hidden = false;
    }
  }

  qlae.openTab = openTab;
  start();
})();
