// Find observations of the evaluation sample: those with the nearest codes, or those that share values of latents.
(() => {
  "use strict";
  const qlae = (window.qlae = window.qlae || {});
  const { state, find, make } = qlae;
  let numRequests = 0;
  let conditions = null;

  const isByValue = () => find("by-value").checked;
  const isContinuous = () => state.run.latents[0].kind === "range";

  function makeForm() {
    const many = state.run.observations.many.replace(/^./, (letter) => letter.toUpperCase());
    const radio = (value, text) =>
      make("label", {}, make("input", { type: "radio", name: "by", value, id: `by-${value}` }), ` ${text}`);
    conditions = new qlae.Conditions(() => {
      find("by-value").checked = true;
      search();
    });
    return make("form", { class: "card find-form", id: "find-form" },
      radio("code", `${many} with codes nearest to the current one`),
      radio("value", `${many} that share values:`), conditions.element,
      make("p", { class: "hint", id: "find-status", role: "status" }));
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
    const part = rows.length < total ? `; ${rows.length} of them are shown, spread over the sample` : "";
    const what = conditions.where.length === 1 && conditions.where[0].values?.length === 1 ? "share this value" : "match";
    return `${total.toLocaleString("en")} of ${state.run.num_samples.toLocaleString("en")} ${state.run.observations.many} ${what}${part}.`;
  }

  async function search() {
    if (find("panel-find").hidden || !state.sample) return;
    const request = ++numRequests;
    state.emit("search");
    try {
      const matches = await state.backend.search(isByValue() ? { where: conditions.where } : { code: state.code });
      const thumbs = matches.rows.length
        ? await qlae.samples.makeThumbs(matches.rows, qlae.samples.pick, (i) => caption(matches.distances[i]))
        : [];
      if (request !== numRequests) return; // a newer search was started
      const box = find("find-thumbs");
      box.replaceChildren(...thumbs);
      qlae.resetTabStop(box, ".tile");
      find("find-status").textContent = describeMatches(matches);
    } catch (error) {
      qlae.showError(error);
    }
  }
  const searchSoon = qlae.debounce(150, search);

  function openSharing(j) {
    find("by-value").checked = true;
    conditions.reset(j);
    qlae.openTab("find");
  }

  function open() {
    if (!isByValue()) find("by-code").checked = true;
    search();
  }

  // restore a search from conditions
  function setWhere(where) {
    conditions.set(where);
    find("by-value").checked = true;
  }

  function start() {
    if (state.backend.saved) {
      find("tab-find").hidden = true;
      return;
    }
    find("panel-find").append(makeForm(), make("div", { class: "thumbs", id: "find-thumbs" }));
    qlae.addArrowKeys(find("find-thumbs"), ".tile", () => qlae.samples.countColumns(find("find-thumbs")));
    find("by-code").checked = true;
    for (const id of ["by-code", "by-value"]) find(id).addEventListener("change", search);
    find("find-form").addEventListener("submit", (event) => event.preventDefault());
    state.on("code", () => {
      if (conditions.isEmpty) conditions.reset(Math.max(0, state.run.latents.findIndex((latent) => latent.active)));
      if (!isByValue()) searchSoon();
    });
    state.on("names", () => conditions.redraw());
  }

  qlae.search = { start, open, openSharing, setWhere, where: () => (conditions && isByValue() ? conditions.where : null) };
})();
