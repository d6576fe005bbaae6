// The page as a whole: the header, notices, tabs, keyboard shortcuts, and the light and dark themes.
(() => {
  "use strict";
  const qlae = (window.qlae = window.qlae || {});
  const { state, find, make } = qlae;
  const TABS = ["latents", "mix", "find"];

  function showHeader() {
    const { run, model, data, observations, steps, scores } = state.run;
    document.title = `${run} · qlae explorer`;
    find("run-name").textContent = run;
    find("facts").textContent = [model, `${data.name}, ${data.origin}, ${observations.size}`, `${steps.toLocaleString("en")} updates`].join(" · ");
    find("scores").replaceChildren(...scores.map(({ title, text }) => make("div", {}, make("dt", {}, title), make("dd", {}, text))));
  }

  // what the page calls observations
  function showWords() {
    const { one, many } = state.run.observations;
    for (const element of document.querySelectorAll("[data-one]")) element.textContent = one;
    for (const element of document.querySelectorAll("[data-many]")) element.textContent = many;
    find("help-list").append(...qlae.view.help.map((text) => make("li", {}, text)));
  }

  function showNotices() {
    const { run, observations, has_images, nmi, warning } = state.run;
    const { saved, rows } = state.backend;
    const notices = []; // text and elements
    if (saved) {
      const samples = rows.length === 1 ? "1 sample" : `${rows.length} samples`;
      notices.push(`This saved page shows ${samples} and moves one latent at a time. To move several latents, mix samples, find ${observations.many}, encode ${observations.many} of your own or edit names, run `,
        make("code", {}, `qlae explore ${run}`), ". ");
    } else if (!has_images) {
      notices.push(`The ${observations.many} of this run are not available on this machine, so reconstructions are shown instead. `);
    }
    if (!nmi) notices.push("No sources are known for this data, so latents are not named automatically." + (saved ? "" : " You can name them yourself."));
    if (warning) notices.push(warning);
    find("notice").replaceChildren(...notices);
    find("notice").hidden = !notices.length;
  }

  const currentTab = () => TABS.find((tab) => find(`tab-${tab}`).getAttribute("aria-selected") === "true");

  function openTab(name, focus = false) {
    for (const tab of TABS) {
      const selected = tab === name;
      find(`tab-${tab}`).setAttribute("aria-selected", String(selected));
      find(`tab-${tab}`).tabIndex = selected ? 0 : -1;
      find(`panel-${tab}`).hidden = !selected;
      if (selected && focus) find(`tab-${tab}`).focus();
    }
    find("order-label").hidden = name !== "latents";
    if (name === "mix") qlae.mix.open();
    if (name === "find") qlae.search.open();
    state.emit("tab");
  }

  function startTabs() {
    TABS.forEach((tab) => find(`tab-${tab}`).addEventListener("click", () => openTab(tab)));
    document.querySelector("[role=tablist]").addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!step || !event.target.matches("[role=tab]")) return;
      const available = TABS.filter((tab) => !find(`tab-${tab}`).hidden);
      const current = available.indexOf(currentTab());
      openTab(available[(current + step + available.length) % available.length], true);
    });
  }

  function setTheme(theme) {
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
  }

  // a page opened from disk may be denied storage
  const storedTheme = {
    get: () => { try { return localStorage.getItem("qlae-theme"); } catch { return null; } },
    set: (theme) => { try { localStorage.setItem("qlae-theme", theme); } catch { /* the choice lasts until the page is closed */ } },
  };

  function startTheme() {
    setTheme(storedTheme.get());
    addEventListener("storage", (event) => event.key === "qlae-theme" && setTheme(event.newValue)); // chosen in another window
    find("theme").addEventListener("click", () => {
      const current = document.documentElement.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
      const next = current === "dark" ? "light" : "dark";
      setTheme(next);
      storedTheme.set(next);
    });
  }

  function shortcuts() {
    const unlessSaved = (action) => () => !state.backend.saved && action();
    const onLatent = (action) => () => qlae.latents.focusedIndex() !== null && action(qlae.latents.focusedIndex());
    return {
      r: () => find("random").click(),
      b: () => find("open-browse").click(),
      u: unlessSaved(() => find("open-upload").click()),
      h: () => qlae.stage.setHighlighting(!qlae.stage.isHighlighting()),
      z: () => state.undo(),
      y: () => state.redo(),
      0: () => state.reset(),
      c: () => qlae.stage.copyCode(),
      d: () => qlae.stage.downloadPicture(),
      j: () => qlae.latents.focusNext(1),
      k: () => qlae.latents.focusNext(-1),
      s: onLatent((j) => qlae.latents.sweep(j)),
      n: unlessSaved(onLatent((j) => qlae.naming.open(j))),
      f: unlessSaved(onLatent((j) => qlae.search.openSharing(j))),
      1: () => openTab("latents", true),
      2: unlessSaved(() => openTab("mix", true)),
      3: unlessSaved(() => openTab("find", true)),
      "?": () => find("keys").showModal(),
    };
  }

  function startShortcuts() {
    const actions = shortcuts();
    addEventListener("keydown", (event) => {
      const isTyping = event.target.closest?.("input:not([type=radio]), textarea, select:not(.picker select), dialog");
      if (isTyping || document.querySelector("dialog[open]") || event.altKey) return;
      const key = event.key.toLowerCase();
      if (event.ctrlKey || event.metaKey) {
        if (key !== "z" && key !== "y") return;
        event.preventDefault();
        if (key === "y" || event.shiftKey) state.redo();
        else state.undo();
        return;
      }
      if (!(key in actions)) return;
      event.preventDefault();
      actions[key]();
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
      qlae.view = new qlae.views[state.run.observations.kind](state.run.observations);
      showHeader();
      showWords();
      showNotices();
      for (const part of ["stage", "latents", "samples", "upload", "heatmap", "mix", "search", "naming"]) qlae[part].start();
      startTabs();
      startShortcuts();
      if (!(await qlae.address.restore())) await qlae.samples.pick(qlae.samples.firstRow());
      qlae.address.start();
      qlae.companion.start();
      document.documentElement.dataset.ready = "true";
    } catch (error) {
      find("notice").textContent = error.message;
      find("notice").hidden = false;
    }
  }

  Object.assign(qlae, { openTab, currentTab });
  start();
})();
