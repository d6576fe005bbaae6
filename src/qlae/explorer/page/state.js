// What the page shows: a sample, the code as it stands, and the way back. Everything else listens.
(() => {
  "use strict";
  const qlae = (window.qlae = window.qlae || {});

  class State extends EventTarget {
    run = null;
    backend = null;
    sample = null; // { row, index, name, code, sources, picture }
    code = [];
    other = null; // the second sample, to mix with
    #past = [];
    #future = [];
    #gesture = null;
    since = 0; // when the last input came, to measure how long a picture takes

    tell(what, detail) {
      this.dispatchEvent(new CustomEvent(what, { detail }));
    }

    on(what, listener) {
      this.addEventListener(what, (event) => listener(event.detail));
    }

    show(sample) {
      this.since = performance.now();
      this.sample = sample;
      this.code = [...sample.code];
      this.#past = [];
      this.#future = [];
      this.#gesture = null;
      this.tell("sample");
      this.tell("code");
    }

    showOther(sample) {
      this.other = sample;
      this.tell("other");
    }

    // gesture: moves of one drag are undone together
    move(latent, value, gesture = null) {
      if (this.code[latent] === value) return;
      const from = this.backend.saved ? this.sample.code : this.code;
      this.set(from.with(latent, value), gesture);
    }

    set(code, gesture = null) {
      if (String(code) === String(this.code)) return;
      this.since = performance.now();
      if (gesture === null || gesture !== this.#gesture) this.#past.push(this.code);
      this.#gesture = gesture;
      this.#future = [];
      this.code = [...code];
      this.tell("code");
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
      this.tell("code");
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

    // ---- words for latents and values

    latentName(j) {
      const { names, latents, source_names } = this.run;
      const source = latents[j].source;
      return names.latents[j] || (source === null ? "" : source_names[source]);
    }

    valueName(j, value) {
      return (this.run.names.values[j] || {})[value] || "";
    }

    valueLabel(j, value) {
      const latent = this.run.latents[j];
      if (latent.kind === "range") return decimal(value);
      const name = this.valueName(j, value);
      if (latent.kind === "vectors") return name || `vector ${value}`;
      return name || `code ${value}`;  // as tables and copied codes have it
    }

    share(j, value) {
      const latent = this.run.latents[j];
      const place = latent.order.indexOf(value);
      return place < 0 ? 0 : latent.counts[place] / this.run.num_samples;
    }

    // everything about a value in a line
    valueTold(j, value) {
      const latent = this.run.latents[j];
      if (latent.kind === "range") return `z${j} = ${decimal(value, 3)}`;
      const at = latent.kind === "values" ? ` at ${decimal(latent.values[value], 3)}` : "";
      const share = this.share(j, value);
      const used = share > 0 ? `in ${percent(share)} of the images` : "dead: in none of the images";
      const name = this.valueName(j, value);
      return `${name ? `${name}: ` : ""}code ${value}${at}, ${used}`;
    }
  }

  function percent(share) {
    const number = 100 * share;
    return `${number >= 10 ? number.toFixed(0) : number >= 0.1 ? number.toFixed(1) : "< 0.1"} %`;
  }

  // a number with a true minus
  const decimal = (number, digits = 2) => number.toFixed(digits).replace("-", "−");

  qlae.decimal = decimal;
  qlae.state = new State();
  qlae.percent = percent;
})();
