// The dialog in which users name a latent and its values.
(() => {
  "use strict";
  const qlae = (window.qlae = window.qlae || {});
  const { state, find, make } = qlae;
  let latent = 0;
  let fields = []; // { value (null for the latent itself), input, before }

  function open(j) {
    latent = j;
    const { kind, steps } = state.run.latents[j];
    find("naming-title").textContent = kind === "range" ? `Name z${j}` : `Name z${j} and its values`;
    const input = find("naming-latent");
    input.value = state.run.names.latents[j] || "";
    input.placeholder = state.defaultName(j) || `z${j}`;
    fields = [{ value: null, input, before: input.value }];
    const values = kind === "range" ? [] : [...new Set([...steps, state.code[j]])];
    find("naming-values").replaceChildren(...values.map((value) => makeField(j, value, steps.indexOf(value))));
    find("naming-error").hidden = true;
    find("naming").showModal();
    input.select();
  }

  function makeField(j, value, step) {
    const input = make("input", { maxlength: "60", autocomplete: "off", placeholder: state.defaultLabel(j, value), "aria-label": state.describeValue(j, value) });
    input.value = state.valueName(j, value);
    fields.push({ value, input, before: input.value });
    const picture = qlae.view.makePicture({ "aria-hidden": "true" });
    const observation = step < 0 ? null : qlae.latents.card(j).pictures[step];
    if (observation) qlae.view.draw(picture, observation);
    return make("label", { class: "value-field" }, picture, input);
  }

  async function save(event) {
    event.preventDefault();
    const changed = fields.filter(({ input, before }) => input.value.trim() !== before);
    // clear names first, so that another value can take them
    changed.sort((a, b) => Boolean(a.input.value.trim()) - Boolean(b.input.value.trim()));
    try {
      for (const { value, input } of changed) state.run.names = await state.backend.rename(latent, value, input.value);
      find("naming").close();
      state.emit("names");
    } catch (error) {
      // inside the dialog, which covers the messages of the page
      find("naming-error").textContent = error.message;
      find("naming-error").hidden = false;
    }
  }

  function start() {
    find("naming-form").addEventListener("submit", save);
    find("naming-cancel").addEventListener("click", () => find("naming").close());
  }

  qlae.naming = { start, open };
})();
