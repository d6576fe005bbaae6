// A card a latent: its name, its control, how its values are used, and the strip of what each value would make.
(() => {
  "use strict";
  const qlae = (window.qlae = window.qlae || {});
  const { state, make, settled, tile, icon } = qlae;
  const SWEEP_MS = 160; // a tile

  class Card {
    #drawn = ""; // the code, but for this latent, that the strip was made for
    #asked = "";
    tiles = [];
    pictures = [];

    constructor(j) {
      this.j = j;
      this.latent = state.run.latents[j];
      this.title = make("h3");
      this.told = make("span", { class: "nmi" });
      this.value = make("output", { class: "value" });
      this.strip = make("div", { class: "strip", role: "group", "--n": this.latent.kind === "vectors" ? 6 : Math.max(this.latent.steps.length, 4) });
      this.element = make(
        "article",
        { class: "card latent", "data-latent": j, tabindex: "-1" },
        make("header", {}, this.title, this.told, make("span", { class: "gap" }), ...this.#buttons()),
        this.#control(), this.strip,
        make("footer", {}, make("p", { class: "usage" }, this.#usage()), this.value),
      );
      if (!this.latent.active) this.element.classList.add("inactive");
      if (this.latent.source !== null) this.element.classList.add(`source-${this.latent.source % 10}`);
      this.#makeTiles();
      this.rename();
    }

    #buttons() {
      const button = (name, label, key, action) =>
        make("button", { type: "button", class: "quiet", title: `${label} (${key})`, "aria-label": `${label}, z${this.j}`, onclick: action }, icon(name));
      const buttons = [button("play", "Sweep through the values", "S", () => qlae.sweep(this.j))];
      if (!state.backend.saved) {
        buttons.push(button("find", "Find images that share this value", "F", () => qlae.findSharing(this.j)));
        buttons.push(button("name", "Name the latent and its values", "N", () => qlae.openNaming(this.j)));
      }
      return buttons;
    }

    #control() {
      if (this.latent.kind === "vectors") return this.#picker();
      this.slider = new qlae.Slider({
        latent: this.latent,
        stops: this.latent.kind === "values" ? this.latent.order : null,
        label: `z${this.j}`,
        told: (value) => state.valueTold(this.j, value),
        onmove: (value, gesture) => state.move(this.j, value, gesture),
      });
      return this.slider.element;
    }

    // vectors have no order: a list of those in use, the most used first
    #picker() {
      this.select = make("select", { "aria-label": `z${this.j}` });
      this.select.addEventListener("change", () => state.move(this.j, Number(this.select.value)));
      const most = Math.max(1, ...this.latent.counts);
      const bars = this.latent.counts.slice(0, 64).map((count, i, all) =>
        make("span", { class: "bin", "--p": i / all.length, "--w": 1 / all.length, "--share": count / most }));
      return make("div", { class: "picker" }, this.select, make("div", { class: "bars", "aria-hidden": "true" }, ...bars));
    }

    #usage() {
      const { kind, active, num_used, num_values, perplexity, low, high } = this.latent;
      if (kind === "range") return active ? `from ${qlae.decimal(low)} to ${qlae.decimal(high)}` : "inactive: it hardly varies";
      if (!active) return num_used === 1 ? "inactive: the same value for every image" : "inactive: it hardly varies";
      const dead = kind === "values" && num_used < num_values ? `, ${num_values - num_used} dead` : "";
      const worth = perplexity === null ? "" : ` · perplexity ${perplexity.toFixed(1)}`;
      return `${num_used} of ${num_values} ${kind === "vectors" ? "vectors " : ""}used${dead}${worth}`;
    }

    #makeTiles() {
      this.tiles = this.latent.steps.map((step, i) => {
        const dead = this.latent.kind !== "range" && state.share(this.j, step) === 0;
        const caption = make("span", { class: "caption" });
        const button = tile({ class: dead ? "dead" : "", onclick: () => this.take(i) });
        button.append(caption);
        return button;
      });
      this.strip.append(...this.tiles);
      qlae.roving(this.strip, ".tile");
    }

    take(i) {
      state.move(this.j, this.latent.steps[i]);
    }

    // names of latent and values, after they changed
    rename() {
      const { source, nmi } = this.latent;
      const name = state.latentName(this.j);
      this.title.replaceChildren(make("b", {}, `z${this.j}`), name ? ` ${name}` : "");
      this.told.textContent = !this.latent.active ? "inactive" : nmi === null ? "" : `NMI ${nmi.toFixed(2)}`;
      this.told.title = nmi === null ? "" : `z${this.j} tells ${nmi.toFixed(2)} of ${state.run.source_names[source]}`;
      this.title.title = name;
      this.strip.setAttribute("aria-label", `z${this.j} ${name}, through its values`);
      if (this.slider) this.slider.element.setAttribute("aria-label", `z${this.j} ${name}`.trim());
      if (this.select) this.#options();
      this.tiles.forEach((button, i) => {
        const told = state.valueTold(this.j, this.latent.steps[i]);
        button.title = told;
        button.setAttribute("aria-label", told);
        button.querySelector(".caption").textContent = state.valueName(this.j, this.latent.steps[i]);
      });
      this.element.classList.toggle("named", this.latent.steps.some((step) => state.valueName(this.j, step)));
    }

    #options() {
      const codes = [...(state.backend.saved ? this.latent.steps : this.latent.order)];
      const current = (state.backend.saved ? state.sample?.code : state.code)?.[this.j];
      if (current !== undefined && !codes.includes(current)) codes.push(current);
      this.select.replaceChildren(...codes.map((code) =>
        make("option", { value: code }, `${state.valueLabel(this.j, code)} · ${qlae.percent(state.share(this.j, code))}`)));
      if (state.sample) this.select.value = String(state.code[this.j]);
    }

    // the code moved
    follow() {
      const value = state.code[this.j];
      if (this.slider) {
        if (state.backend.saved) this.slider.stops = this.#savedStops();
        this.slider.value = value;
      } else if (this.select) {
        this.select.value = String(value);
        if (this.select.value === "" || state.backend.saved) this.#options();
      }
      this.value.textContent = state.valueLabel(this.j, value);
      this.value.title = state.valueTold(this.j, value);
      this.element.classList.toggle("changed", value !== state.sample.code[this.j]);
      this.mark(value);
    }

    #savedStops() {
      const place = (value) => (this.latent.kind === "values" ? this.latent.values[value] : value);
      return [...new Set([...this.latent.steps, state.sample.code[this.j]])].sort((a, b) => place(a) - place(b));
    }

    mark(value) {
      this.tiles.forEach((button, i) => button.setAttribute("aria-pressed", String(this.latent.steps[i] === value)));
    }

    get stale() {
      return this.#drawn !== this.#key();
    }

    #key() {
      return String((state.backend.saved ? state.sample.code : state.code).with(this.j, "*"));
    }

    async draw(signal) {
      const key = this.#key();
      if (this.#drawn === key) return;
      const from = state.backend.saved ? state.sample.code : state.code;
      const pictures = await state.backend.decode(this.latent.steps.map((step) => from.with(this.j, step)), signal);
      if (key !== this.#key()) return;
      this.pictures = pictures;
      pictures.forEach((picture, i) => picture && qlae.pixels.draw(this.tiles[i].canvas, picture));
      this.#drawn = key;
    }
  }

  let cards = [];
  let visible = new Set();
  let drawing = null;

  // strips of what is in sight, one after another; a new move starts over
  async function drawStrips() {
    drawing?.abort();
    const mine = (drawing = new AbortController());
    try {
      for (const card of ordered()) {
        if (mine.signal.aborted) return;
        if (visible.has(card.j) && card.stale) await card.draw(mine.signal);
      }
    } catch (error) {
      qlae.fail(error);
    }
  }
  const drawSoon = settled(120, drawStrips);

  // the latents as they stand on the page
  function ordered() {
    const by = qlae.find("order").value;
    const rank = ({ latent }) => [!latent.active, latent.source === null ? Infinity : latent.source, -(latent.nmi || 0), latent.index];
    const compare = (a, b) => {
      const [first, second] = [rank(a), rank(b)];
      const at = first.findIndex((entry, i) => entry !== second[i]);
      return at < 0 ? 0 : first[at] - second[at];
    };
    return by === "number" ? cards : [...cards].sort(compare);
  }

  function arrange() {
    qlae.find("panel-latents").replaceChildren(...ordered().map((card) => card.element));
  }

  function light(j) {
    for (const card of cards) card.element.classList.toggle("lit", card.j === j);
  }

  // show a latent: bring its card into view and go through its values in the large picture
  let sweeping = null;
  async function sweep(j) {
    sweeping?.abort();
    const mine = (sweeping = new AbortController());
    const card = cards[j];
    qlae.openTab("latents");
    card.element.scrollIntoView({ block: "nearest", behavior: qlae.calm() ? "auto" : "smooth" });
    light(j);
    try {
      await card.draw();
      const there = card.pictures.map((_, i) => i);
      for (const i of qlae.calm() ? [] : [...there, ...there.slice(0, -1).reverse()]) {
        if (mine.signal.aborted) return;
        if (card.pictures[i]) qlae.showPicture(card.pictures[i]);
        card.mark(card.latent.steps[i]);
        await new Promise((done) => setTimeout(done, SWEEP_MS));
      }
    } catch (error) {
      qlae.fail(error);
    }
    if (mine.signal.aborted) return;
    stopSweep();
  }

  function stopSweep() {
    if (!sweeping) return;
    sweeping.abort();
    sweeping = null;
    light(-1);
    cards.forEach((card) => card.mark(state.code[card.j]));
    qlae.showPicture(null);
  }

  function control(j) {
    return cards[j].element.querySelector(".slider, select");
  }

  // the latent that has the focus, if any
  function focused() {
    const element = document.activeElement?.closest?.(".latent");
    return element ? Number(element.dataset.latent) : null;
  }

  function focusNext(step) {
    const all = ordered();
    const at = all.findIndex((card) => card.j === focused());
    const next = all[at < 0 ? (step > 0 ? 0 : all.length - 1) : Math.min(all.length - 1, Math.max(0, at + step))];
    qlae.openTab("latents");
    control(next.j).focus();
  }

  function start() {
    const order = qlae.find("order");
    order.append(make("option", { value: "source" }, "by what they tell"), make("option", { value: "number" }, "by number"));
    if (!state.run.nmi) order.options[0].textContent = "active first";
    cards = state.run.latents.map((_, j) => new Card(j));
    const few = state.run.latents.every((latent) => latent.steps.length <= 5);
    qlae.find("panel-latents").style.setProperty("--card", few ? "270px" : "350px");
    const observer = new IntersectionObserver((entries) => {
      for (const entry of entries) {
        const j = Number(entry.target.dataset.latent);
        if (entry.isIntersecting) visible.add(j);
        else visible.delete(j);
      }
      if (state.sample) drawSoon();
    }, { rootMargin: "200px" });
    cards.forEach((card) => observer.observe(card.element));
    arrange();
    order.addEventListener("change", arrange);
    state.on("code", () => {
      stopSweep();
      drawing?.abort();
      cards.forEach((card) => card.follow());
      drawSoon();
    });
    state.on("names", () => {
      cards.forEach((card) => card.rename());
      if (state.sample) cards.forEach((card) => card.follow());
    });
  }

  qlae.latents = { start, light, focused, focusNext, card: (j) => cards[j], control };
  qlae.sweep = sweep;
})();
