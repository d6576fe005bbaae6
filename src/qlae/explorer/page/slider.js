// The slider of a latent: ticks at the true positions of its values or a continuous range, with a histogram above.
(() => {
  "use strict";
  const qlae = (window.qlae = window.qlae || {});
  const { make } = qlae;
  const PADDING = 12; // pixels at either end, as --pad in style.css
  const RANGE_KEY_STEPS = 40; // key presses from one end of a continuous range to the other
  let numGestures = 0;

  // options: latent (from the run), stops (values to snap to, or null), label, describe(value), onmove(value, gesture)
  class Slider {
    #value = 0;
    #gesture = 0;

    constructor(options) {
      Object.assign(this, options);
      this.thumb = make("span", { class: "thumb" });
      this.element = make(
        "div",
        { class: `slider ${this.latent.kind}`, role: "slider", tabindex: "0", "aria-label": this.label },
        make("span", { class: "track" }), ...this.#makeMarks(), this.thumb,
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
      this.element.setAttribute("aria-valuenow", this.stops ? this.#stopIndex(value) : value);
      this.element.setAttribute("aria-valuetext", this.describe(value));
      for (const mark of this.element.querySelectorAll(".tick")) {
        mark.classList.toggle("on", Number(mark.dataset.code) === value);
      }
    }

    #position(value) {
      return this.latent.kind === "values" ? this.latent.values[value] : value;
    }

    // the value's place on the slider, from 0 to 1
    #place(value) {
      const { low, high } = this.latent;
      const place = high > low ? (this.#position(value) - low) / (high - low) : 0.5;
      return Math.min(1, Math.max(0, place));
    }

    #stopIndex(value) {
      return Math.max(0, this.stops.indexOf(value));
    }

    #makeMarks() {
      const { kind, order, counts } = this.latent;
      const largest = Math.max(1, ...counts);
      if (kind === "values") {
        return order.map((code, i) =>
          make("span", {
            class: counts[i] ? "tick" : "tick dead",
            "data-code": code,
            "--p": this.#place(code),
            "--share": counts[i] / largest,
          }));
      }
      return counts.map((count, i) =>
        make("span", { class: "bin", "--p": i / counts.length, "--w": 1 / counts.length, "--share": count / largest }));
    }

    #press(event) {
      if (event.button !== 0) return;
      event.preventDefault();
      this.element.focus();
      this.#gesture = ++numGestures;
      this.element.setPointerCapture(event.pointerId);
      const follow = (pointer) => this.#move(this.#valueAt(pointer.clientX));
      const stop = () => {
        this.element.removeEventListener("pointermove", follow);
        this.element.classList.remove("dragging");
      };
      this.element.classList.add("dragging");
      this.element.addEventListener("pointermove", follow);
      this.element.addEventListener("pointerup", stop, { once: true });
      this.element.addEventListener("pointercancel", stop, { once: true });
      follow(event);
    }

    #valueAt(x) {
      const box = this.element.getBoundingClientRect();
      const place = Math.min(1, Math.max(0, (x - box.left - PADDING) / (box.width - 2 * PADDING)));
      if (!this.stops) return this.latent.low + place * (this.latent.high - this.latent.low);
      return this.stops.reduce((best, stop) =>
        Math.abs(this.#place(stop) - place) < Math.abs(this.#place(best) - place) ? stop : best);
    }

    #key(event) {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const steps = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -3, PageUp: 3, Home: -Infinity, End: Infinity };
      if (!(event.key in steps)) return;
      event.preventDefault();
      this.#gesture = ++numGestures;
      if (this.stops) {
        const last = this.stops.length - 1;
        this.#move(this.stops[Math.min(last, Math.max(0, this.#stopIndex(this.#value) + steps[event.key]))]);
      } else {
        const { low, high } = this.latent;
        this.#move(Math.min(high, Math.max(low, this.#value + (steps[event.key] * (high - low)) / RANGE_KEY_STEPS)));
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
