// Mix two samples, A and B: for each latent, use the value of one or of the other.
(() => {
  "use strict";
  const qlae = (window.qlae = window.qlae || {});
  const { state, find, make, debounce, makeTile } = qlae;
  const ROWS_PER_REQUEST = 6;
  let rows = [];
  let drawing = null;

  const isOpen = () => !find("panel-mix").hidden;

  function makeHead() {
    const picture = (id, caption) => make("figure", {}, qlae.view.makePicture({ id, role: "img", "aria-label": caption }), make("figcaption", {}, caption));
    const button = (id, text, action) => make("button", { type: "button", id, onclick: action }, text);
    return make("div", { class: "card mix-head" },
      picture("mix-a", "A: this sample"), picture("mix-b", "B: other sample"),
      make("div", {},
        make("p", {}, "For each latent, choose the value of A or of B. Each tile shows what its choice would give."),
        make("div", { class: "bar" },
          button("mix-random", "Random B", () => qlae.samples.pickOther(qlae.samples.randomRow())),
          button("mix-browse", "Choose B", () => qlae.samples.browse("Choose B", qlae.samples.pickOther)),
          button("mix-swap", "Swap A and B", swap)),
        make("div", { class: "bar" },
          button("mix-all-a", "All from A", () => state.set(state.sample.code)),
          button("mix-all-b", "All from B", () => state.other && state.set(state.other.code)))));
  }

  function swap() {
    if (!state.other) return;
    const [a, b] = [state.sample, state.other];
    state.other = a;
    state.show(b);
    state.emit("other");
  }

  function makeRow(j) {
    const choice = (letter, sample) =>
      makeTile({ class: "choice", "data-letter": letter, "aria-pressed": "false", onclick: () => sample() && state.move(j, sample().code[j]) });
    const a = choice("A", () => state.sample);
    const b = choice("B", () => state.other);
    const title = make("span", { class: "mix-name" });
    const note = make("span", { class: "mix-note" });
    const element = make("div", { class: `card mix-row ${state.run.latents[j].active ? "" : "inactive"} ${state.run.latents[j].informative ? "" : "uninformative"}`, role: "group", "data-latent": j },
      make("div", {}, title, note), a, b);
    return { j, element, a, b, title, note };
  }

  function updateRow({ j, element, a, b, title, note }) {
    const [valueA, valueB] = [state.sample.code[j], state.other.code[j]];
    const name = `z${j} ${state.latentName(j)}`.trim();
    const isSame = valueA === valueB;
    title.textContent = name;
    note.textContent = isSame ? "same in both" : `${state.valueLabel(j, valueA)} → ${state.valueLabel(j, valueB)}`;
    element.setAttribute("aria-label", name);
    element.classList.toggle("same", isSame);
    for (const [tile, letter, value] of [[a, "A", valueA], [b, "B", valueB]]) {
      tile.setAttribute("aria-pressed", String(state.code[j] === value));
      tile.setAttribute("aria-label", `${name}: ${letter}, ${state.describeValue(j, value)}`);
      tile.title = `${letter}: ${state.describeValue(j, value)}`;
    }
  }

  function update() {
    if (!isOpen() || !state.other) return;
    qlae.view.draw(find("mix-a"), state.sample.picture);
    qlae.view.draw(find("mix-b"), state.other.picture);
    rows.forEach(updateRow);
    drawTilesSoon();
  }

  async function drawTiles() {
    if (!isOpen() || !state.other) return;
    drawing?.abort();
    const { signal } = (drawing = new AbortController());
    try {
      for (let first = 0; first < rows.length; first += ROWS_PER_REQUEST) {
        const part = rows.slice(first, first + ROWS_PER_REQUEST);
        const codes = part.flatMap(({ j }) => [state.code.with(j, state.sample.code[j]), state.code.with(j, state.other.code[j])]);
        const pictures = await state.backend.decode(codes, signal);
        if (signal.aborted) return;
        part.forEach(({ a, b }, i) => {
          qlae.view.draw(a.picture, pictures[2 * i]);
          qlae.view.draw(b.picture, pictures[2 * i + 1]);
        });
      }
    } catch (error) {
      qlae.showError(error);
    }
  }
  const drawTilesSoon = debounce(60, drawTiles);

  function open() {
    if (!state.other) qlae.samples.pickOther(qlae.samples.randomRow());
    else update();
  }

  function start() {
    if (state.backend.saved) {
      find("tab-mix").hidden = true;
      return;
    }
    const isInactive = ({ j }) => Number(!state.run.latents[j].active);
    rows = state.run.latents.map((latent) => makeRow(latent.index)).sort((a, b) => isInactive(a) - isInactive(b));
    find("panel-mix").append(makeHead(), make("div", { class: "mix-rows" }, ...rows.map(({ element }) => element)));
    for (const event of ["code", "other", "names"]) state.on(event, update);
  }

  qlae.mix = { start, open };
})();
