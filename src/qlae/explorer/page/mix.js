// Two samples: for every latent, take the value of one or of the other.
(() => {
  "use strict";
  const qlae = (window.qlae = window.qlae || {});
  const { state, find, make, settled, tile } = qlae;
  let rows = [];
  let drawing = null;

  const shown = () => !find("panel-mix").hidden;

  function head() {
    const picture = (id, caption) => make("figure", {}, make("canvas", { id, role: "img", "aria-label": caption }), make("figcaption", {}, caption));
    const button = (id, text, action) => make("button", { type: "button", id, onclick: action }, text);
    return make("div", { class: "card mix-head" },
      picture("mix-a", "A: this sample"), picture("mix-b", "B: the other"),
      make("div", {},
        make("p", {}, "For each latent take A’s value or B’s; the tile shows what it would make of the picture. The large picture follows."),
        make("div", { class: "bar" },
          button("mix-random", "Another B", () => qlae.samples.pickOther(qlae.samples.randomRow())),
          button("mix-browse", "Choose B", () => qlae.samples.browse("Choose B", qlae.samples.pickOther)),
          button("mix-swap", "Swap A and B", swap)),
        make("div", { class: "bar" },
          button("mix-all-a", "All A", () => state.set(state.sample.code)),
          button("mix-all-b", "All B", () => state.other && state.set(state.other.code)))));
  }

  function swap() {
    if (!state.other) return;
    const [a, b] = [state.sample, state.other];
    state.other = a;
    state.show(b);
    state.tell("other");
  }

  function row(j) {
    const side = (letter, from) =>
      tile({ class: "choice", "aria-pressed": "false", onclick: () => from() && state.move(j, from().code[j]) });
    const a = side("A", () => state.sample);
    const b = side("B", () => state.other);
    const name = make("span", { class: "mix-name" });
    const note = make("span", { class: "mix-note" });
    const element = make("div", { class: `card mix-row ${state.run.latents[j].active ? "" : "inactive"}`, role: "group", "data-latent": j },
      make("div", {}, name, note), a, b);
    return { j, element, a, b, name, note };
  }

  function follow() {
    if (!shown() || !state.other) return;
    qlae.pixels.draw(find("mix-a"), state.sample.picture);
    qlae.pixels.draw(find("mix-b"), state.other.picture);
    for (const { j, element, a, b, name, note } of rows) {
      const [mine, theirs] = [state.sample.code[j], state.other.code[j]];
      const called = `z${j} ${state.latentName(j)}`.trim();
      name.textContent = called;
      element.setAttribute("aria-label", called);
      const same = mine === theirs;
      note.textContent = same ? "the same in both" : `${state.valueLabel(j, mine)} → ${state.valueLabel(j, theirs)}`;
      element.classList.toggle("same", same);
      for (const [button, letter, value] of [[a, "A", mine], [b, "B", theirs]]) {
        button.setAttribute("aria-pressed", String(state.code[j] === value));
        button.setAttribute("aria-label", `${called}: ${letter}, ${state.valueTold(j, value)}`);
        button.title = `${letter}: ${state.valueTold(j, value)}`;
        button.dataset.letter = letter;
      }
    }
    draw();
  }

  const draw = settled(60, async () => {
    if (!shown() || !state.other) return;
    drawing?.abort();
    const { signal } = (drawing = new AbortController());
    try {
      for (let first = 0; first < rows.length; first += 6) {
        const part = rows.slice(first, first + 6);
        const codes = part.flatMap(({ j }) => [state.code.with(j, state.sample.code[j]), state.code.with(j, state.other.code[j])]);
        const pictures = await state.backend.decode(codes, signal);
        if (signal.aborted) return;
        part.forEach(({ a, b }, i) => {
          qlae.pixels.draw(a.canvas, pictures[2 * i]);
          qlae.pixels.draw(b.canvas, pictures[2 * i + 1]);
        });
      }
    } catch (error) {
      qlae.fail(error);
    }
  });

  function open() {
    if (!state.other) qlae.samples.pickOther(qlae.samples.randomRow());
    else follow();
  }

  function start() {
    if (state.backend.saved) {
      find("tab-mix").hidden = true;
      return;
    }
    rows = state.run.latents.map((latent) => row(latent.index)).sort((a, b) => Number(!state.run.latents[a.j].active) - Number(!state.run.latents[b.j].active));
    find("panel-mix").append(head(), make("div", { class: "mix-rows" }, ...rows.map(({ element }) => element)));
    state.on("code", follow);
    state.on("other", follow);
    state.on("names", follow);
  }

  qlae.mix = { start, open };
})();
