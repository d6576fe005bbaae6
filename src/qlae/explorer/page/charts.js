// Small drawings in SVG: elements, curves, and colours for numbers above and below the mean.
(() => {
  "use strict";
  const qlae = (window.qlae = window.qlae || {});
  const FULL_COLOUR = 2.5; // standard deviations from the mean

  // as make, for elements of SVG
  function makeSvg(tag, attributes = {}, ...children) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value);
    }
    element.append(...children);
    return element;
  }

  // a drawing of 100 × 100 units that is stretched to the size of its element
  const makeDrawing = (attributes = {}) =>
    makeSvg("svg", { viewBox: "0 0 100 100", preserveAspectRatio: "none", ...attributes });

  // the path of numbers over the width of a drawing, from low (bottom) to high (top); gaps where a number is not finite
  function curve(numbers, low, high) {
    const scale = high > low ? 96 / (high - low) : 0;
    const step = numbers.length > 1 ? 100 / (numbers.length - 1) : 0;
    let path = "";
    let isPenUp = true;
    numbers.forEach((number, i) => {
      if (!Number.isFinite(number)) {
        isPenUp = true;
        return;
      }
      path += `${isPenUp ? "M" : "L"}${(i * step).toFixed(2)} ${(98 - (number - low) * scale).toFixed(2)}`;
      isPenUp = false;
    });
    return path;
  }

  const makeCurve = (className, numbers, low, high) =>
    makeSvg("path", { class: `curve ${className}`, d: curve(numbers, low, high), "vector-effect": "non-scaling-stroke" });

  // a colour for a number of standard deviations from the mean, which follows the theme
  function heat(deviations) {
    const share = Math.min(1, Math.abs(deviations) / FULL_COLOUR) || 0;
    return `color-mix(in oklab, var(--${deviations > 0 ? "above" : "below"}) ${(100 * share).toFixed(1)}%, var(--neutral))`;
  }

  // a colour along the values of a latent, from 0 to 1
  const ramp = (share) => `color-mix(in oklab, var(--ramp-high) ${(100 * share).toFixed(1)}%, var(--ramp-low))`;

  qlae.charts = { makeSvg, makeDrawing, makeCurve, heat, ramp };
})();
