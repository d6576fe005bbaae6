// Find observations of the evaluation sample: those with the nearest codes, or those that share a value of one latent.
(() => {
  "use strict";
  const qlae = (window.qlae = window.qlae || {});
  const { state, find, make } = qlae;
  let numRequests = 0;

  function makeForm() {
    const many = state.run.observations.many.replace(/^./, (letter) => letter.toUpperCase());
    const radio = (value, text) =>
      make("label", {}, make("input", { type: "radio", name: "by", value, id: `by-${value}` }), ` ${text}`);
    return make("form", { class: "card find-form", id: "find-form" },
      radio("code", `${many} with codes nearest to the current one`),
      make("span", { class: "find-value" }, radio("value", `${many} that share a value:`),
        make("select", { id: "find-latent", "aria-label": "latent" }), make("select", { id: "find-value", "aria-label": "value" })),
      make("p", { class: "hint", id: "find-status", role: "status" }));
  }

  const isByValue = () => find("by-value").checked;
  const isContinuous = () => state.run.latents[0].kind === "range";

  function fillLatents() {
    const select = find("find-latent");
    const selected = select.value;
    select.replaceChildren(...state.run.latents.map((latent, j) =>
      make("option", { value: j }, `z${j} ${state.latentName(j)}${latent.active ? "" : " (inactive)"}`)));
    select.value = selected || String(Math.max(0, state.run.latents.findIndex((latent) => latent.active)));
    fillValues();
  }

  function fillValues() {
    const j = Number(find("find-latent").value);
    const { order } = state.run.latents[j];
    const select = find("find-value");
    const current = state.code[j];
    const values = isContinuous() ? [current] : order.includes(current) ? order : [...order, current];
    const label = (value) => isContinuous()
      ? `near ${state.valueLabel(j, value)}`
      : `${state.valueLabel(j, value)} · ${qlae.formatPercent(state.share(j, value))}`;
    select.replaceChildren(...values.map((value) => make("option", { value }, label(value))));
    select.value = String(current);
  }

  function caption(distance) {
    if (isByValue()) return "";
    if (isContinuous()) return distance.toFixed(2);
    return distance === 0 ? "same code" : `${distance} differ${distance === 1 ? "s" : ""}`;
  }

  function describeMatches({ rows, total }) {
    if (!isByValue()) {
      return isContinuous()
        ? "Captions give the distance over the active latents, each in units of its standard deviation."
        : "Captions give the number of active latents that differ. Among equals, the nearest values come first.";
    }
    if (isContinuous()) return `Sorted by distance in z${find("find-latent").value} alone.`;
    const part = rows.length < total ? `; ${rows.length} of them are shown, spread over the sample` : "";
    return `${total.toLocaleString("en")} of ${state.run.num_samples.toLocaleString("en")} ${state.run.observations.many} share this value${part}.`;
  }

  async function search() {
    if (find("panel-find").hidden || !state.sample) return;
    const request = ++numRequests;
    try {
      const body = isByValue()
        ? { latent: Number(find("find-latent").value), value: Number(find("find-value").value) }
        : { code: state.code };
      const matches = await state.backend.search(body);
      const pictures = matches.rows.length ? await state.backend.images(matches.rows) : [];
      if (request !== numRequests) return; // a newer search was started
      const box = find("find-thumbs");
      box.replaceChildren(...matches.rows.map((row, i) =>
        qlae.samples.makeThumb(row, pictures[i], () => qlae.samples.pick(row), caption(matches.distances[i]))));
      qlae.resetTabStop(box, ".tile");
      find("find-status").textContent = describeMatches(matches);
    } catch (error) {
      qlae.showError(error);
    }
  }
  const searchSoon = qlae.debounce(150, search);

  function openSharing(j) {
    find("by-value").checked = true;
    find("find-latent").value = String(j);
    fillValues();
    qlae.openTab("find");
  }

  function open() {
    if (!isByValue()) find("by-code").checked = true;
    search();
  }

  function start() {
    if (state.backend.saved) {
      find("tab-find").hidden = true;
      return;
    }
    find("panel-find").append(makeForm(), make("div", { class: "thumbs", id: "find-thumbs" }));
    qlae.addArrowKeys(find("find-thumbs"), ".tile", () => qlae.samples.countColumns(find("find-thumbs")));
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
      else if (isContinuous()) fillValues();
      if (!isByValue()) searchSoon();
    });
    state.on("names", fillLatents);
  }

  qlae.search = { start, open, openSharing };
})();
