// Conditions of a search: for each latent that matters, the values that it may have, or a range if it is continuous.
(() => {
  "use strict";
  const qlae = (window.qlae = window.qlae || {});
  const { state, make } = qlae;
  const MAX_CHIPS = 48; // values of a latent to choose from; of more, those used most
  const WIDTH = 0.1; // of a latent's range: half the width of a new range

  const isContinuous = () => state.run.latents[0].kind === "range";

  // onchange is called after every change by the user
  class Conditions {
    #rows = []; // { j, element, values (a set of codes), low, high }

    constructor(onchange) {
      this.onchange = onchange;
      this.list = make("div", { class: "conditions" });
      this.more = make("button", { type: "button", id: "add-condition", onclick: () => this.#add() }, "And another latent");
      this.element = make("div", { class: "find-value" }, this.list, this.more);
    }

    get isEmpty() {
      return !this.#rows.length;
    }

    // as the server takes them
    get where() {
      return this.#rows.map(({ j, values, low, high }) =>
        (isContinuous() ? { latent: j, low: Math.min(low, high), high: Math.max(low, high) } : { latent: j, values: [...values] }));
    }

    // one latent at its current value, instead of the previous conditions
    reset(j) {
      this.set([this.#current(j)]);
    }

    set(where) {
      this.list.replaceChildren();
      this.#rows = [];
      for (const condition of where) this.#append(condition);
    }

    // called after names changed
    redraw() {
      this.set(this.where);
    }

    #current(j) {
      const value = state.code[j];
      if (!isContinuous()) return { latent: j, values: [value] };
      const { low, high } = state.run.latents[j];
      return { latent: j, low: value - WIDTH * (high - low), high: value + WIDTH * (high - low) };
    }

    #add() {
      const taken = new Set(this.#rows.map(({ j }) => j));
      const free = state.run.latents.map((latent) => latent.index).filter((j) => !taken.has(j));
      const next = free.find((j) => state.run.latents[j].active) ?? free[0];
      if (next === undefined) return;
      this.#append(this.#current(next));
      this.onchange();
    }

    #append({ latent: j, values = [], low = 0, high = 0 }) {
      const row = { j, values: new Set(values), low, high };
      const name = make("select", { "aria-label": "latent" }, ...state.run.latents.map((latent, k) =>
        make("option", { value: k, selected: k === j }, `z${k} ${state.latentName(k)}${latent.active ? "" : " (inactive)"}`)));
      const box = make("span", { class: "condition-values" }, ...this.#makeValues(row));
      name.addEventListener("change", () => {
        const { latent, ...rest } = this.#current(Number(name.value));
        Object.assign(row, rest, { j: latent, values: new Set(rest.values) });
        box.replaceChildren(...this.#makeValues(row));
        this.onchange();
      });
      const remove = make("button", { type: "button", class: "quiet", "aria-label": "Remove this condition", title: "Remove this condition", onclick: () => this.#remove(row) }, "✕");
      row.element = make("div", { class: "condition" }, name, make("span", { class: "hint" }, isContinuous() ? "from" : "is"), box, remove);
      this.#rows.push(row);
      this.list.append(row.element);
    }

    #remove(row) {
      if (this.#rows.length === 1) return qlae.showMessage("A search needs one latent.");
      this.#rows = this.#rows.filter((other) => other !== row);
      row.element.remove();
      return this.onchange();
    }

    #makeValues(row) {
      return isContinuous() ? this.#makeRange(row) : this.#makeChips(row);
    }

    #makeRange(row) {
      const field = (end) => {
        const input = make("input", { type: "number", step: "any", value: Number(row[end].toPrecision(4)), "aria-label": `${end === "low" ? "lowest" : "highest"} z${row.j}` });
        input.addEventListener("change", () => {
          if (!Number.isFinite(input.valueAsNumber)) return;
          row[end] = input.valueAsNumber;
          this.onchange();
        });
        return input;
      };
      return [field("low"), make("span", { class: "hint" }, "to"), field("high")];
    }

    #makeChips(row) {
      const { order, counts } = state.run.latents[row.j];
      const most = new Set([...order.keys()].sort((a, b) => counts[b] - counts[a]).slice(0, MAX_CHIPS).map((i) => order[i]));
      const codes = [...new Set([...order.filter((code) => most.has(code)), ...row.values])];
      return codes.map((code) => {
        const chip = make("button", {
          type: "button",
          class: "value-chip",
          "aria-pressed": String(row.values.has(code)),
          title: state.describeValue(row.j, code),
          onclick: () => {
            if (row.values.has(code) && row.values.size === 1) return;
            if (!row.values.delete(code)) row.values.add(code);
            chip.setAttribute("aria-pressed", String(row.values.has(code)));
            this.onchange();
          },
        }, state.valueLabel(row.j, code));
        return chip;
      });
    }
  }

  qlae.Conditions = Conditions;
})();
