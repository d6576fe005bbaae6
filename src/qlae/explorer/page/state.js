// The state of the page: the run, the sample, the current code and its undo history. All other parts listen to it.
(() => {
  "use strict";
  const qlae = (window.qlae = window.qlae || {});

  class State extends EventTarget {
    run = null;
    backend = null;
    sample = null; // { row, index, name, code, sources, picture }
    code = []; // as edited by the user
    other = null; // the second sample, for mixing
    #past = [];
    #future = [];
    #gesture = null;
    since = 0; // time of the last input, to measure how long a picture takes

    // events: sample, code, start, other, names, highlight, search, tab, address
    emit(event) {
      this.dispatchEvent(new Event(event));
    }

    on(event, listener) {
      this.addEventListener(event, () => listener());
    }

    show(sample) {
      this.since = performance.now();
      this.sample = sample;
      this.code = [...sample.code];
      this.#past = [];
      this.#future = [];
      this.#gesture = null;
      this.emit("sample");
      this.emit("code");
    }

    showOther(sample) {
      this.other = sample;
      this.emit("other");
    }

    // Set one latent. Moves with the same gesture, such as those of one drag, are undone together.
    move(latent, value, gesture = null) {
      if (this.code[latent] === value) return;
      const base = this.backend.saved ? this.sample.code : this.code; // a saved page changes one latent at a time
      this.set(base.with(latent, value), gesture);
    }

    set(code, gesture = null) {
      if (String(code) === String(this.code)) return;
      this.since = performance.now();
      if (gesture === null || gesture !== this.#gesture) this.#past.push(this.code);
      this.#gesture = gesture;
      this.#future = [];
      this.code = [...code];
      this.emit("code");
    }

    reset() {
      this.set(this.sample.code);
    }

    undo() {
      this.#step(this.#past, this.#future);
    }

    redo() {
      this.#step(this.#future, this.#past);
    }

    #step(from, to) {
      if (!from.length) return;
      this.since = performance.now();
      to.push(this.code);
      this.code = from.pop();
      this.#gesture = null;
      this.emit("code");
    }

    get canUndo() {
      return this.#past.length > 0;
    }

    get canRedo() {
      return this.#future.length > 0;
    }

    get changed() {
      return this.sample ? this.code.flatMap((value, j) => (value === this.sample.code[j] ? [] : [j])) : [];
    }

    // ---- names and descriptions of latents and values

    latentName(j) {
      return this.run.names.latents[j] || this.defaultName(j);
    }

    // the source that the latent is most informative about
    defaultName(j) {
      const { latents, source_names } = this.run;
      const { source } = latents[j];
      return source === null ? "" : source_names[source];
    }

    valueName(j, value) {
      return (this.run.names.values[j] || {})[value] || "";
    }

    valueLabel(j, value) {
      return this.valueName(j, value) || this.defaultLabel(j, value);
    }

    // codes go by the numbers that tables and copied codes contain
    defaultLabel(j, value) {
      const { kind } = this.run.latents[j];
      if (kind === "range") return formatNumber(value);
      return kind === "vectors" ? `vector ${value}` : `code ${value}`;
    }

    // the share of the sample that has this code
    share(j, value) {
      const latent = this.run.latents[j];
      const k = latent.order.indexOf(value);
      return k < 0 ? 0 : latent.counts[k] / this.run.num_samples;
    }

    // everything about a value in one line
    describeValue(j, value) {
      const latent = this.run.latents[j];
      if (latent.kind === "range") return `z${j} = ${formatNumber(value, 3)}`;
      const position = latent.kind === "values" ? ` at ${formatNumber(latent.values[value], 3)}` : "";
      const share = this.share(j, value);
      const usage = share > 0 ? `used by ${formatPercent(share)} of the ${this.run.observations.many}` : `dead: used by no ${this.run.observations.one}`;
      const name = this.valueName(j, value);
      return `${name ? `${name}: ` : ""}code ${value}${position}, ${usage}`;
    }
  }

  function formatPercent(share) {
    const number = 100 * share;
    return `${number >= 10 ? number.toFixed(0) : number >= 0.1 ? number.toFixed(1) : "< 0.1"}%`;
  }

  // with a minus sign instead of a hyphen
  const formatNumber = (number, digits = 2) => number.toFixed(digits).replace("-", "−");

  qlae.state = new State();
  Object.assign(qlae, { formatPercent, formatNumber });
})();
