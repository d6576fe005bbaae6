// One card per latent: its name, its control, how its values are used, and a strip with the picture at each value.
(() => {
  "use strict";
  const qlae = (window.qlae = window.qlae || {});
  const { state, make, debounce, makeTile, makeIcon } = qlae;
  const SWEEP_MS = 160; // per tile
  const MAX_BARS = 64; // in the picker of a codebook of vectors

  class Card {
    #drawnKey = ""; // what the strip was drawn for; see #stripKey
    tiles = [];
    pictures = [];

    constructor(j) {
      this.j = j;
      this.latent = state.run.latents[j];
      this.title = make("h3");
      this.nmi = make("span", { class: "nmi" });
      this.value = make("output", { class: "value" });
      this.strip = make("div", { class: "strip", role: "group", "--n": this.latent.kind === "vectors" ? 6 : Math.max(this.latent.steps.length, 4) });
      this.element = make(
        "article",
        { class: "card latent", "data-latent": j, tabindex: "-1" },
        make("header", {}, this.title, this.nmi, make("span", { class: "gap" }), ...this.#makeButtons()),
        this.#makeControl(), this.strip,
        make("footer", {}, make("p", { class: "usage" }, [this.#describeUsage(), this.latent.support].filter(Boolean).join(" · ")), this.value),
      );
      if (!this.latent.active) this.element.classList.add("inactive");
      if (!this.latent.informative) this.element.classList.add("uninformative");
      if (this.latent.source !== null) this.element.classList.add(`source-${this.latent.source % 10}`);
      this.#makeTiles();
      this.updateNames();
    }

    #makeButtons() {
      const button = (name, label, key, action) =>
        make("button", { type: "button", class: "quiet", title: `${label} (${key})`, "aria-label": `${label}, z${this.j}`, onclick: action }, makeIcon(name));
      const buttons = [button("play", "Sweep through the values", "S", () => sweep(this.j))];
      if (!state.backend.saved) {
        buttons.push(button("find", `Find ${state.run.observations.many} that share this value`, "F", () => qlae.search.openSharing(this.j)));
        buttons.push(button("name", "Name the latent and its values", "N", () => qlae.naming.open(this.j)));
      }
      return buttons;
    }

    #makeControl() {
      if (this.latent.kind === "vectors") return this.#makePicker();
      this.slider = new qlae.Slider({
        latent: this.latent,
        stops: this.latent.kind === "values" ? this.latent.order : null,
        label: `z${this.j}`,
        describe: (value) => state.describeValue(this.j, value),
        onmove: (value, gesture) => state.move(this.j, value, gesture),
      });
      return this.slider.element;
    }

    // vectors have no order: a list of those in use, most used first
    #makePicker() {
      this.select = make("select", { "aria-label": `z${this.j}` });
      this.select.addEventListener("change", () => state.move(this.j, Number(this.select.value)));
      const largest = Math.max(1, ...this.latent.counts);
      const bars = this.latent.counts.slice(0, MAX_BARS).map((count, i, all) =>
        make("span", { class: "bin", "--p": i / all.length, "--w": 1 / all.length, "--share": count / largest }));
      return make("div", { class: "picker" }, this.select, make("div", { class: "bars", "aria-hidden": "true" }, ...bars));
    }

    #describeUsage() {
      const { kind, active, num_used, num_values, perplexity, low, high } = this.latent;
      if (!active) return kind !== "range" && num_used === 1 ? `inactive: the same value for every ${state.run.observations.one}` : "inactive: hardly varies";
      if (kind === "range") return `from ${qlae.formatNumber(low)} to ${qlae.formatNumber(high)}`;
      const dead = kind === "values" && num_used < num_values ? `, ${num_values - num_used} dead` : "";
      return `${num_used} of ${num_values} ${kind} used${dead} · perplexity ${perplexity.toFixed(1)}`;
    }

    #makeTiles() {
      this.tiles = this.latent.steps.map((step, i) => {
        const isDead = this.latent.kind !== "range" && state.share(this.j, step) === 0;
        const tile = makeTile({ class: isDead ? "dead" : "", onclick: () => state.move(this.j, this.latent.steps[i]) });
        tile.append(make("span", { class: "caption" }));
        return tile;
      });
      this.strip.append(...this.tiles);
      qlae.view.startStrip(this);
      qlae.addArrowKeys(this.strip, ".tile");
    }

    // called after the names of latents or values changed
    updateNames() {
      const { source, nmi, active, informative, steps } = this.latent;
      const name = state.latentName(this.j);
      this.title.replaceChildren(make("b", {}, `z${this.j}`), name ? ` ${name}` : "");
      this.title.title = name;
      this.nmi.textContent = !active ? "inactive" : !informative ? "uninformative" : nmi === null ? "" : `NMI ${nmi.toFixed(2)}`;
      this.nmi.title = !informative ? `z${this.j} is no more informative about any source than noise is` : nmi === null ? "" : `NMI of z${this.j} and ${state.run.source_names[source]}: ${nmi.toFixed(2)}`;
      this.strip.setAttribute("aria-label", `the values of z${this.j} ${name}`.trim());
      if (this.slider) this.slider.element.setAttribute("aria-label", `z${this.j} ${name}`.trim());
      if (this.select) this.#fillPicker();
      this.tiles.forEach((tile, i) => {
        const description = state.describeValue(this.j, steps[i]);
        tile.title = description;
        tile.setAttribute("aria-label", description);
        tile.querySelector(".caption").textContent = state.valueName(this.j, steps[i]);
      });
      this.element.classList.toggle("named", steps.some((step) => state.valueName(this.j, step)));
    }

    #fillPicker() {
      const codes = [...(state.backend.saved ? this.latent.steps : this.latent.order)];
      const current = (state.backend.saved ? state.sample?.code : state.code)?.[this.j];
      if (current !== undefined && !codes.includes(current)) codes.push(current);
      this.select.replaceChildren(...codes.map((code) =>
        make("option", { value: code }, `${state.valueLabel(this.j, code)} · ${qlae.formatPercent(state.share(this.j, code))}`)));
      if (state.sample) this.select.value = String(state.code[this.j]);
    }

    // called after the code changed
    update() {
      const value = state.code[this.j];
      if (this.slider) {
        if (state.backend.saved) this.slider.stops = this.#savedStops();
        this.slider.value = value;
      } else if (this.select) {
        this.select.value = String(value);
        if (this.select.value === "" || state.backend.saved) this.#fillPicker();
      }
      this.value.textContent = state.valueLabel(this.j, value);
      this.value.title = state.describeValue(this.j, value);
      this.element.classList.toggle("changed", value !== state.sample.code[this.j]);
      this.markTile(value);
    }

    // a saved page knows only the pictures of its strips and of the sample itself
    #savedStops() {
      const position = (value) => (this.latent.kind === "values" ? this.latent.values[value] : value);
      return [...new Set([...this.latent.steps, state.sample.code[this.j]])].sort((a, b) => position(a) - position(b));
    }

    markTile(value) {
      this.tiles.forEach((tile, i) => tile.setAttribute("aria-pressed", String(this.latent.steps[i] === value)));
      qlae.view.markStep(this, this.latent.steps.indexOf(value));
    }

    redrawStrip() {
      if (this.pictures.length) qlae.view.drawStrip(this, this.pictures, qlae.stage.comparison());
    }

    get isStale() {
      return this.#drawnKey !== this.#stripKey();
    }

    // the code without this latent's own entry, on which the pictures of the strip do not depend
    #stripKey() {
      return String((state.backend.saved ? state.sample.code : state.code).with(this.j, "*"));
    }

    async drawStrip(signal) {
      const key = this.#stripKey();
      if (this.#drawnKey === key) return;
      const base = state.backend.saved ? state.sample.code : state.code;
      const pictures = await state.backend.decode(this.latent.steps.map((step) => base.with(this.j, step)), signal);
      if (key !== this.#stripKey()) return; // the code changed in the meantime
      this.pictures = pictures;
      this.redrawStrip();
      this.#drawnKey = key;
    }
  }

  let cards = [];
  let visible = new Set(); // indices of the latents whose cards are on the screen
  let drawing = null;

  // draw the visible strips one after another; a further change of the code starts over
  async function drawStrips() {
    drawing?.abort();
    const { signal } = (drawing = new AbortController());
    try {
      for (const card of sortedCards()) {
        if (signal.aborted) return;
        if (visible.has(card.j) && card.isStale) await card.drawStrip(signal);
      }
    } catch (error) {
      qlae.showError(error);
    }
  }
  const drawStripsSoon = debounce(120, drawStrips);

  // the cards in the order in which the page shows them
  function sortedCards() {
    if (qlae.find("order").value === "number") return cards;
    const rank = ({ latent }) => [!latent.active, !latent.informative, latent.source === null ? Infinity : latent.source, -(latent.nmi || 0), latent.index];
    return [...cards].sort((a, b) => {
      const [first, second] = [rank(a), rank(b)];
      const k = first.findIndex((entry, i) => entry !== second[i]);
      return k < 0 ? 0 : first[k] - second[k];
    });
  }

  function arrangeCards() {
    qlae.find("panel-latents").replaceChildren(...sortedCards().map((card) => card.element));
  }

  function highlight(j) {
    for (const card of cards) card.element.classList.toggle("highlighted", card.j === j);
  }

  // bring a card into view and play its values forth and back in the large picture
  let sweeping = null;
  async function sweep(j) {
    sweeping?.abort();
    const { signal } = (sweeping = new AbortController());
    const card = cards[j];
    qlae.openTab("latents");
    card.element.scrollIntoView({ block: "nearest", behavior: qlae.prefersReducedMotion() ? "auto" : "smooth" });
    highlight(j);
    try {
      await card.drawStrip();
      const forth = card.pictures.map((_, i) => i);
      for (const i of qlae.prefersReducedMotion() ? [] : [...forth, ...forth.slice(0, -1).reverse()]) {
        if (signal.aborted) return;
        if (card.pictures[i]) qlae.stage.showPicture(card.pictures[i]);
        card.markTile(card.latent.steps[i]);
        await new Promise((done) => setTimeout(done, SWEEP_MS));
      }
    } catch (error) {
      qlae.showError(error);
    }
    if (!signal.aborted) stopSweep();
  }

  function stopSweep() {
    if (!sweeping) return;
    sweeping.abort();
    sweeping = null;
    highlight(-1);
    cards.forEach((card) => card.markTile(state.code[card.j]));
    qlae.stage.showPicture(null);
  }

  // the index of the latent that has the focus, or null
  function focusedIndex() {
    const element = document.activeElement?.closest?.(".latent");
    return element ? Number(element.dataset.latent) : null;
  }

  function focusNext(step) {
    const all = sortedCards();
    const current = all.findIndex((card) => card.j === focusedIndex());
    const next = all[current < 0 ? (step > 0 ? 0 : all.length - 1) : Math.min(all.length - 1, Math.max(0, current + step))];
    qlae.openTab("latents");
    next.element.querySelector(".slider, select").focus();
  }

  function observeCards() {
    const observer = new IntersectionObserver((entries) => {
      for (const entry of entries) {
        const j = Number(entry.target.dataset.latent);
        if (entry.isIntersecting) visible.add(j);
        else visible.delete(j);
      }
      if (state.sample) drawStripsSoon();
    }, { rootMargin: "200px" });
    cards.forEach((card) => observer.observe(card.element));
  }

  function start() {
    const order = qlae.find("order");
    order.append(make("option", { value: "source" }, state.run.nmi ? "by source" : "active first"), make("option", { value: "number" }, "by number"));
    cards = state.run.latents.map((_, j) => new Card(j));
    const hasShortStrips = state.run.latents.every((latent) => latent.steps.length <= 5);
    qlae.find("panel-latents").style.setProperty("--card", hasShortStrips ? "270px" : "350px");
    observeCards();
    arrangeCards();
    order.addEventListener("change", arrangeCards);
    state.on("code", () => {
      stopSweep();
      drawing?.abort();
      cards.forEach((card) => card.update());
      drawStripsSoon();
    });
    for (const event of ["highlight", "start"]) {
      state.on(event, () => qlae.view.canHighlight && (event === "highlight" || qlae.stage.isHighlighting()) && cards.forEach((card) => card.redrawStrip()));
    }
    state.on("names", () => {
      cards.forEach((card) => card.updateNames());
      if (state.sample) cards.forEach((card) => card.update());
    });
  }

  qlae.latents = { start, highlight, sweep, focusedIndex, focusNext, card: (j) => cards[j] };
})();
