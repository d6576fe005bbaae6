// The control of a latent: ticks at the true positions of its values, or a slider over a range, with use drawn above.
(() => {
  "use strict";
  const qlae = (window.qlae = window.qlae || {});
  const { make } = qlae;
  let gestures = 0;

  // options: latent (of the run), stops (values to snap to, null for any), label, told(value), onmove(value, gesture)
  class Slider {
    #value = 0;
    #gesture = 0;

    constructor(options) {
      Object.assign(this, options);
      this.thumb = make("span", { class: "thumb" });
      this.element = make(
        "div",
        { class: `slider ${this.latent.kind}`, role: "slider", tabindex: "0", "aria-label": this.label },
        make("span", { class: "track" }), ...this.#marks(), this.thumb,
      );
      this.element.setAttribute("aria-valuemin", this.stops ? 0 : this.latent.low);
      this.element.setAttribute("aria-valuemax", this.stops ? this.stops.length - 1 : this.latent.high);
      this.element.addEventListener("pointerdown", (event) => this.#press(event));
      this.element.addEventListener("keydown", (event) => this.#key(event));
    }

    get value() {
      return this.#value;
    }

    set value(value) {
      this.#value = value;
      this.thumb.style.setProperty("--p", this.#place(value));
      this.element.setAttribute("aria-valuenow", this.stops ? this.#at(value) : value);
      this.element.setAttribute("aria-valuetext", this.told(value));
      for (const mark of this.element.querySelectorAll(".tick")) {
        mark.classList.toggle("on", Number(mark.dataset.code) === value);
      }
    }

    #position(value) {
      return this.latent.kind === "values" ? this.latent.values[value] : value;
    }

    #place(value) {
      const { low, high } = this.latent;
      const place = high > low ? (this.#position(value) - low) / (high - low) : 0.5;
      return Math.min(1, Math.max(0, place));
    }

    #at(value) {
      return Math.max(0, this.stops.indexOf(value));
    }

    #marks() {
      const { kind, order, counts } = this.latent;
      const most = Math.max(1, ...counts);
      if (kind === "values") {
        return order.map((code, i) =>
          make("span", {
            class: counts[i] ? "tick" : "tick dead",
            "data-code": code,
            "--p": this.#place(code),
            "--share": counts[i] / most,
          }));
      }
      return counts.map((count, i) =>
        make("span", { class: "bin", "--p": i / counts.length, "--w": 1 / counts.length, "--share": count / most }));
    }

    #press(event) {
      if (event.button !== 0) return;
      event.preventDefault();
      this.element.focus();
      this.#gesture = ++gestures;
      this.element.setPointerCapture(event.pointerId);
      const follow = (moved) => this.#move(this.#under(moved.clientX));
      const stop = () => {
        this.element.removeEventListener("pointermove", follow);
        this.element.classList.remove("held");
      };
      this.element.classList.add("held");
      this.element.addEventListener("pointermove", follow);
      this.element.addEventListener("pointerup", stop, { once: true });
      this.element.addEventListener("pointercancel", stop, { once: true });
      follow(event);
    }

    #under(x) {
      const box = this.element.getBoundingClientRect();
      const pad = 12;
      const place = Math.min(1, Math.max(0, (x - box.left - pad) / (box.width - 2 * pad)));
      if (!this.stops) return this.latent.low + place * (this.latent.high - this.latent.low);
      return this.stops.reduce((best, stop) =>
        Math.abs(this.#place(stop) - place) < Math.abs(this.#place(best) - place) ? stop : best);
    }

    #key(event) {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const step = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -3, PageUp: 3, Home: -Infinity, End: Infinity };
      if (!(event.key in step)) return;
      event.preventDefault();
      this.#gesture = ++gestures;
      if (this.stops) {
        const last = this.stops.length - 1;
        this.#move(this.stops[Math.min(last, Math.max(0, this.#at(this.#value) + step[event.key]))]);
      } else {
        const { low, high } = this.latent;
        this.#move(Math.min(high, Math.max(low, this.#value + (step[event.key] * (high - low)) / 40)));
      }
    }

    #move(value) {
      if (value === this.#value) return;
      this.value = value;
      this.onmove(value, this.#gesture);
    }
  }

  qlae.Slider = Slider;
})();
