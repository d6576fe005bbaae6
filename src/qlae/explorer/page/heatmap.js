// The NMI of each latent (column) and each source (row), linked to the cards of the latents and to the sources.
(() => {
  "use strict";
  const qlae = (window.qlae = window.qlae || {});
  const { state, find, make } = qlae;
  const MIN_COLUMN = 21; // pixels, below which heads have no z and cells no numbers
  const HINT = "Point at a cell or use the arrow keys. Click a cell to sweep through the values of its latent.";

  // why a latent is grey, as a class of its cells and as a word; empty if it is not
  const weakness = ({ active, informative }) => (!active ? "inactive" : !informative ? "uninformative" : "");

  function describeCell(i, j) {
    const { nmi, source_names, latents } = state.run;
    const weak = weakness(latents[j]);
    return `NMI of z${j} and ${source_names[i]}: ${nmi[i][j].toFixed(2)}${weak ? ` (z${j} is ${weak})` : ""}`;
  }

  // highlight a source, a latent and their cell; null for none
  function highlight(i, j) {
    find("heatmap-status").textContent = i === null ? HINT : describeCell(i, j);
    qlae.latents.highlight(j ?? -1);
    for (const element of document.querySelectorAll("#heatmap [data-row], #heatmap [data-column], #about [data-source]")) {
      const { row, column, source } = element.dataset;
      const matches = element.matches("button")
        ? Number(row) === i && Number(column) === j
        : (row !== undefined && Number(row) === i) || (column !== undefined && Number(column) === j) || (source !== undefined && Number(source) === i);
      element.classList.toggle("highlighted", i !== null && matches);
    }
  }

  function makeCell(i, j) {
    const { nmi, latents, source_names } = state.run;
    const value = nmi[i][j];
    return make("td", {},
      make("button", {
        type: "button",
        class: `cell ${weakness(latents[j])} ${value > 0.6 ? "strong" : ""}`,
        "data-row": i,
        "data-column": j,
        "--nmi": value,
        "aria-label": `z${j}, ${source_names[i]}: NMI ${value.toFixed(2)}; sweep z${j}`,
        onclick: () => qlae.latents.sweep(j),
        onpointerenter: () => highlight(i, j),
        onfocus: () => highlight(i, j),
      }, value >= 0.1 ? value.toFixed(2).replace(/^0/, "") : ""));
  }

  function start() {
    const { nmi, source_names, latents } = state.run;
    if (!nmi) return;
    const heads = latents.map((latent, j) =>
      make("th", { scope: "col", "data-column": j, class: weakness(latent) }, make("span", { class: "letter" }, "z"), String(j)));
    const body = source_names.map((name, i) =>
      make("tr", {}, make("th", { scope: "row", "data-row": i, class: `source-${i % 10}`, title: name }, make("i"), name), ...latents.map((_, j) => makeCell(i, j))));
    const table = make("table", { "aria-label": "NMI of latents and sources" },
      make("thead", {}, make("tr", {}, make("td"), ...heads)), make("tbody", {}, ...body));
    new ResizeObserver(([{ contentRect }]) => {
      const names = table.tHead.querySelector("td").offsetWidth;
      table.classList.toggle("dense", (contentRect.width - names) / latents.length < MIN_COLUMN);
    }).observe(find("heatmap"));
    table.addEventListener("pointerleave", () => highlight(null, null));
    table.addEventListener("focusout", () => highlight(null, null));
    find("heatmap").replaceChildren(table);
    qlae.addArrowKeys(table, ".cell", () => latents.length);
    find("heatmap-card").hidden = false;
    find("heatmap-card").open = matchMedia("(min-width: 60rem)").matches;
    highlight(null, null);
  }

  qlae.heatmap = { start };
})();
