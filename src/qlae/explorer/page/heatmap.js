// How much each latent (a column) tells about each source (a row), linked to the latents and the sources.
(() => {
  "use strict";
  const qlae = (window.qlae = window.qlae || {});
  const { state, find, make } = qlae;

  function told(i, j) {
    if (i === null) return "Point at a cell, or go through them with the arrow keys. Click to see the latent swept.";
    const { nmi, source_names, latents } = state.run;
    return `z${j} tells ${nmi[i][j].toFixed(2)} of ${source_names[i]}${latents[j].active ? "" : " (inactive)"}`;
  }

  function light(i, j) {
    find("heatmap-told").textContent = told(i, j);
    qlae.latents.light(j ?? -1);
    for (const element of document.querySelectorAll("#heatmap [data-row], #heatmap [data-column], #about [data-source]")) {
      const { row, column, source } = element.dataset;
      const on = element.matches("button")
        ? Number(row) === i && Number(column) === j
        : (row !== undefined && Number(row) === i) || (column !== undefined && Number(column) === j) || (source !== undefined && Number(source) === i);
      element.classList.toggle("lit", i !== null && on);
    }
  }

  function cell(i, j) {
    const { nmi, latents, source_names } = state.run;
    const value = nmi[i][j];
    return make("td", {},
      make("button", {
        type: "button",
        class: `cell ${latents[j].active ? "" : "inactive"} ${value > 0.6 ? "strong" : ""}`,
        "data-row": i,
        "data-column": j,
        "--nmi": value,
        "aria-label": `z${j}, ${source_names[i]}: NMI ${value.toFixed(2)}; sweep z${j}`,
        onclick: () => qlae.sweep(j),
        onpointerenter: () => light(i, j),
        onfocus: () => light(i, j),
      }, value >= 0.1 ? value.toFixed(2).slice(1) : ""));
  }

  function start() {
    const { nmi, source_names, latents } = state.run;
    if (!nmi) return;
    const dense = latents.length > 12;
    const heads = latents.map((latent, j) =>
      make("th", { scope: "col", "data-column": j, class: latent.active ? "" : "inactive" }, dense ? String(j) : `z${j}`));
    const body = source_names.map((name, i) =>
      make("tr", {}, make("th", { scope: "row", "data-row": i, class: `source-${i % 10}`, title: name }, make("i"), name), ...latents.map((_, j) => cell(i, j))));
    const table = make("table", { "aria-label": "NMI of latents and sources" },
      make("thead", {}, make("tr", {}, make("td"), ...heads)), make("tbody", {}, ...body));
    table.classList.toggle("dense", dense);
    table.addEventListener("pointerleave", () => light(null, null));
    table.addEventListener("focusout", () => light(null, null));
    find("heatmap").replaceChildren(table);
    qlae.roving(table, ".cell", () => latents.length);
    find("heatmap-card").hidden = false;
    find("heatmap-card").open = matchMedia("(min-width: 60rem)").matches;
    light(null, null);
  }

  qlae.heatmap = { start };
})();
