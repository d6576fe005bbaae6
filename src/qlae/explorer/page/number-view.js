// What the views of vectors and series have in common: numbers in the units of the data, and text for uploads.
(() => {
  "use strict";
  const qlae = (window.qlae = window.qlae || {});
  const TYPES = { float32: Float32Array, float64: Float64Array };
  const MAX_DIGITS = 6;

  // a cell of CSV
  const quoteCell = (text) => (/[",;\s]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

  class NumberView {
    takesText = true;
    canHighlight = false; // changes are always shown
    downloadHint = "Download the decoded numbers as CSV (D)";

    // description: names, mean, deviation, low and high of each feature, the type of the numbers, …
    constructor(description) {
      Object.assign(this, description);
      this.Numbers = TYPES[description.type];
    }

    // numbers in one observation
    get length() {
      return this.names.length;
    }

    unpack(buffer) {
      const numbers = new this.Numbers(buffer);
      const count = Math.floor(numbers.length / this.length);
      return Array.from({ length: count }, (_, i) => numbers.subarray(i * this.length, (i + 1) * this.length));
    }

    async unpackSaved({ numbers }) {
      return this.unpack(qlae.toBytes(numbers).buffer);
    }

    // a number of a feature, with as many digits as its range needs
    format(feature, number) {
      if (!Number.isFinite(number)) return "–";
      const range = this.high[feature] - this.low[feature];
      const largest = Math.max(Math.abs(number), Math.abs(this.high[feature]), Math.abs(this.low[feature]));
      if (largest >= 1e6 || (largest > 0 && largest < 1e-3)) return number.toExponential(2).replaceAll("-", "−");
      const digits = range > 0 ? Math.ceil(2 - Math.log10(range)) : 2;
      return number.toFixed(Math.min(MAX_DIGITS, Math.max(0, digits))).replace("-", "−");
    }

    // in standard deviations from the mean of the data
    standardise(feature, number) {
      return (number - this.mean[feature]) / this.deviation[feature];
    }

    download(observation, name) {
      qlae.saveFile(new Blob([this.toText(observation)], { type: "text/csv" }), `${name}.csv`);
    }

    // names as a first line of CSV
    get header() {
      return this.names.map(quoteCell).join(",");
    }

    // float32 is written with the digits that it has
    toCell(number) {
      return String(this.type === "float32" ? Number(number.toPrecision(7)) : number);
    }
  }

  qlae.NumberView = NumberView;
  qlae.quoteCell = quoteCell;
})();
