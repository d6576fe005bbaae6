// Finding images of the data: those nearest in code, or those that share a value.
(() => {
  "use strict";
  const qlae = (window.qlae = window.qlae || {});
  const { state, find, make } = qlae;
  let asked = 0;

  function form() {
    const radio = (value, text) =>
      make("label", {}, make("input", { type: "radio", name: "by", value, id: `by-${value}` }), ` ${text}`);
    return make("form", { class: "card find-form", id: "find-form" },
      radio("code", "nearest in code to the picture as it stands"),
      make("span", { class: "find-value" }, radio("value", "that share a value:"),
        make("select", { id: "find-latent", "aria-label": "latent" }), make("select", { id: "find-value", "aria-label": "value" })),
      make("p", { class: "told", id: "find-told", role: "status" }));
  }

  const byValue = () => find("by-value").checked;

  function fillLatents() {
    const select = find("find-latent");
    const kept = select.value;
    select.replaceChildren(...state.run.latents.map((latent, j) =>
      make("option", { value: j }, `z${j} ${state.latentName(j)}${latent.active ? "" : " (inactive)"}`)));
    select.value = kept || String(Math.max(0, state.run.latents.findIndex((latent) => latent.active)));
    fillValues();
  }

  function fillValues(wanted) {
    const j = Number(find("find-latent").value);
    const { kind, order } = state.run.latents[j];
    const select = find("find-value");
    const value = wanted ?? state.code[j];
    const all = kind === "range" ? [value] : order.includes(value) ? order : [...order, value];
    select.replaceChildren(...all.map((code) =>
      make("option", { value: code }, kind === "range" ? `near ${state.valueLabel(j, code)}` : `${state.valueLabel(j, code)} · ${qlae.percent(state.share(j, code))}`)));
    select.value = String(value);
  }

  function caption(distance) {
    if (byValue()) return "";
    if (state.run.latents[0].kind === "range") return distance.toFixed(2);
    return distance === 0 ? "same code" : `${distance} differ${distance === 1 ? "s" : ""}`;
  }

  function told(found) {
    if (!byValue()) {
      return state.run.latents[0].kind === "range"
        ? "Distances over the active latents, each in its standard deviations."
        : "How many of the active latents differ; among equals, the nearest values first.";
    }
    const j = Number(find("find-latent").value);
    if (state.run.latents[j].kind === "range") return `The nearest in z${j} alone.`;
    const shown = found.rows.length < found.total ? `; ${found.rows.length} of them, from all over` : "";
    return `${found.total.toLocaleString("en")} of ${state.run.num_samples.toLocaleString("en")} images share it${shown}.`;
  }

  async function search() {
    if (find("panel-find").hidden || !state.sample) return;
    const mine = ++asked;
    try {
      const body = byValue()
        ? { latent: Number(find("find-latent").value), value: Number(find("find-value").value) }
        : { code: state.code };
      const found = await state.backend.search(body);
      const pictures = found.rows.length ? await state.backend.images(found.rows) : [];
      if (mine !== asked) return;
      const box = find("find-thumbs");
      box.replaceChildren(...found.rows.map((row, i) =>
        qlae.samples.thumb(row, pictures[i], () => qlae.samples.pick(row), caption(found.distances[i]))));
      qlae.rove(box, ".tile");
      find("find-told").textContent = told(found);
    } catch (error) {
      qlae.fail(error);
    }
  }
  const searchSoon = qlae.settled(150, search);

  function sharing(j) {
    find("by-value").checked = true;
    find("find-latent").value = String(j);
    fillValues(state.code[j]);
    qlae.openTab("find");
  }

  function open() {
    if (!byValue()) find("by-code").checked = true;
    search();
  }

  function start() {
    if (state.backend.saved) {
      find("tab-find").hidden = true;
      return;
    }
    find("panel-find").append(form(), make("div", { class: "thumbs", id: "find-thumbs" }));
    qlae.roving(find("find-thumbs"), ".tile", () => qlae.samples.columnsOf(find("find-thumbs")));
    find("by-code").checked = true;
    find("find-latent").addEventListener("change", () => {
      find("by-value").checked = true;
      fillValues();
    });
    find("find-value").addEventListener("change", () => (find("by-value").checked = true));
    find("find-form").addEventListener("change", search);
    find("find-form").addEventListener("submit", (event) => event.preventDefault());
    state.on("code", () => {
      if (!find("find-latent").options.length) fillLatents();
      else if (state.run.latents[0].kind === "range") fillValues();
      if (!byValue()) searchSoon();
    });
    state.on("names", fillLatents);
  }

  qlae.find_images = { start, open };
  qlae.findSharing = sharing;
})();
