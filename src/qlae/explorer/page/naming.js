// Names of one's own for a latent and its values.
(() => {
  "use strict";
  const qlae = (window.qlae = window.qlae || {});
  const { state, find, make } = qlae;
  let latent = 0;
  let fields = []; // [value or null, input, what it said]

  function open(j) {
    latent = j;
    const { kind, steps } = state.run.latents[j];
    const automatic = state.latentName(j);
    find("naming-title").textContent = `Names of z${j}`;
    const name = find("naming-latent");
    name.value = state.run.names.latents[j] || "";
    name.placeholder = automatic || `z${j}`;
    fields = [[null, name, name.value]];
    const values = kind === "range" ? [] : [...new Set([...steps, state.code[j]])];
    find("naming-values").replaceChildren(...values.map((value) => field(j, value, steps.indexOf(value))));
    find("naming-refused").hidden = true;
    find("naming").showModal();
    name.select();
  }

  function field(j, value, at) {
    const input = make("input", { maxlength: "60", autocomplete: "off", placeholder: state.valueLabel(j, value), "aria-label": state.valueTold(j, value) });
    input.value = state.valueName(j, value);
    fields.push([value, input, input.value]);
    const canvas = make("canvas", { "aria-hidden": "true" });
    const picture = at < 0 ? null : qlae.latents.card(j).pictures[at];
    if (picture) qlae.pixels.draw(canvas, picture);
    return make("label", { class: "value-field" }, canvas, input);
  }

  async function save(event) {
    event.preventDefault();
    const changed = fields.filter(([, input, said]) => input.value.trim() !== said);
    changed.sort(([, a], [, b]) => Boolean(a.value.trim()) - Boolean(b.value.trim())); // what is free first, to be taken
    try {
      for (const [value, input] of changed) state.run.names = await state.backend.rename(latent, value, input.value);
      find("naming").close();
      state.tell("names");
    } catch (error) {
      // in the dialog, which lies over everything else
      find("naming-refused").textContent = error.message;
      find("naming-refused").hidden = false;
    }
  }

  function start() {
    find("naming-form").addEventListener("submit", save);
    find("naming-cancel").addEventListener("click", () => find("naming").close());
  }

  qlae.naming = { start };
  qlae.openNaming = open;
})();
