// How vectors are shown: each feature on its track, as bars in tiles, and as a heatmap over a latent's values.
(() => {
  "use strict";
  const qlae = (window.qlae = window.qlae || {});
  const { find, make, charts } = qlae;
  qlae.views = qlae.views || {};
  const MAX_ROWS = 60; // features listed at once; a field filters them
  const MAX_BARS = 40; // in a tile
  const BAR_LIMIT = 3; // standard deviations at the end of a bar in a tile
  const STRIP_FEATURES = 6; // in the strip of a latent: those that it changes most
  const CHANGED = 0.1; // of a feature's standard deviation; smaller changes are not marked

  class VectorView extends qlae.NumberView {
    rowWord = "feature"; // what a line of the stage is
    uploadWord = "Your row";
    uploadHint = "Encode numbers of your own (U), or drop a CSV anywhere on the page";
    help = [
      "Each feature has a track from its lowest to its highest value in the data. The bar ends at the decoded value, the grey mark is the original, and the dark part is the change.",
      "In the heatmap of a latent, columns are its values and rows the features that it changes most: red above the mean of the data, blue below. The numbers are the range of the feature.",
    ];
    #shown = null; // what the stage shows
    #rows = []; // of the stage

    toText(vector) {
      return `${this.header}\n${[...vector].map((number) => this.toCell(number)).join(",")}\n`;
    }

    uploadExample = "one row of numbers, with or without a line of names: CSV, JSON, or numbers separated by spaces";

    describeRange({ feature }) {
      return ` (range in the data: ${this.format(feature, this.low[feature])} to ${this.format(feature, this.high[feature])})`;
    }

    // ---- tiles: a bar for each feature, to the right if it is above its mean

    makePicture(properties = {}) {
      const svg = charts.makeDrawing({ ...properties, class: "picture bars" });
      svg.append(charts.makeSvg("path", { class: "below" }), charts.makeSvg("path", { class: "above" }));
      return svg;
    }

    draw(element, vector) {
      const count = Math.min(MAX_BARS, vector.length);
      const features = Array.from({ length: count }, (_, i) => Math.floor((i * vector.length) / count));
      const height = 100 / count;
      const paths = { above: "", below: "" };
      features.forEach((feature, i) => {
        const deviations = this.standardise(feature, vector[feature]) || 0;
        const width = 50 * Math.min(1, Math.abs(deviations) / BAR_LIMIT);
        const side = deviations > 0 ? "above" : "below";
        const x = side === "above" ? 50 : 50 - width;
        paths[side] += `M${x.toFixed(2)} ${((i + 0.1) * height).toFixed(2)}h${width.toFixed(2)}v${(0.8 * height).toFixed(2)}h${(-width).toFixed(2)}z`;
      });
      for (const [side, path] of Object.entries(paths)) element.querySelector(`.${side}`).setAttribute("d", path);
    }

    // ---- the stage: one row per feature

    // the rows of the stage, each with a name and the feature that it shows
    listRows() {
      return this.names.map((name, feature) => ({ name, feature }));
    }

    // whether a feature may be listed in the strip of a latent, and its name there
    isShown() {
      return true;
    }

    label(feature) {
      return this.names[feature];
    }

    // the place of a row's value on its track, from 0 to 1 or null, and its text, short and long
    read({ feature }, vector) {
      const text = this.format(feature, vector[feature]);
      return { place: this.#place(feature, vector[feature]), text, about: text };
    }

    // how far a row has moved, in standard deviations
    change({ feature }, decoded, start) {
      return (decoded[feature] - start[feature]) / this.deviation[feature];
    }

    startStage(box) {
      box.classList.add("chart");
      const { length } = this.listRows();
      const filter = length > 12
        ? make("input", { id: "feature-filter", type: "text", placeholder: `Filter ${length.toLocaleString("en")} ${this.rowWord}s`, "aria-label": `Filter the ${this.rowWord}s by name`, oninput: () => this.#list() })
        : null;
      const sort = make("label", { class: "order" }, "Sort ", make("select", { id: "feature-order", onchange: () => this.#list() },
        make("option", { value: "data" }, "as in the data"),
        make("option", { value: "change", selected: length > MAX_ROWS }, "most changed first")));
      box.append(
        make("div", { class: "chart-tools" }, filter, sort),
        make("div", { class: "feature head", "aria-hidden": "true" }, make("span", {}, this.rowWord),
          make("span", { class: "legend" }, make("span", { class: "key original" }, make("span", { id: "original-caption" }, "original")), make("span", { class: "key decoded" }, "decoded")),
          make("span", {}, "original"), make("span", {}, "decoded")),
        make("div", { id: "features", role: "list", "aria-label": `${this.rowWord}s` }),
        make("p", { class: "hint", id: "features-more" }),
        make("output", { id: "latency", class: "hint", title: "Time from input to the new numbers" }));
    }

    show(shown) {
      const isNewSample = this.#shown?.original !== shown.original;
      this.#shown = shown;
      if (!this.#rows.length || isNewSample || (find("feature-order").value === "change" && shown.isSettled)) this.#list();
      else this.#rows.forEach((row) => this.#update(row));
    }

    #change(row) {
      const { decoded, start } = this.#shown;
      return decoded && start ? this.change(row, decoded, start) : 0;
    }

    #list() {
      if (!this.#shown) return;
      const wanted = (find("feature-filter")?.value || "").trim().toLowerCase();
      const rows = this.listRows().filter(({ name }) => name.toLowerCase().includes(wanted));
      if (find("feature-order").value === "change") rows.sort((a, b) => Math.abs(this.#change(b)) - Math.abs(this.#change(a)));
      this.#rows = rows.slice(0, MAX_ROWS).map((row) => this.#makeRow(row));
      find("features").replaceChildren(...this.#rows.map(({ element }) => element));
      find("features-more").textContent = rows.length > MAX_ROWS ? `${MAX_ROWS} of ${rows.length.toLocaleString("en")} ${this.rowWord}s are listed.` : "";
      this.#rows.forEach((row) => this.#update(row));
    }

    #makeRow(row) {
      const mark = (name) => make("i", { class: name });
      const marks = { bar: mark("bar"), move: mark("move"), original: mark("mark original"), decoded: mark("mark decoded") };
      const before = make("span", { class: "number" });
      const after = make("span", { class: "number decoded" });
      const element = make("div", { class: "feature", role: "listitem", "data-feature": row.feature },
        make("span", { class: "feature-name", title: row.name }, row.name),
        make("span", { class: "feature-track" }, ...Object.values(marks)), before, after);
      return { row, element, marks, before, after };
    }

    // the place of a number on its feature's track, from 0 to 1
    #place(feature, number) {
      const [low, high] = [this.low[feature], this.high[feature]];
      return high > low && Number.isFinite(number) ? Math.min(1, Math.max(0, (number - low) / (high - low))) : 0.5;
    }

    #update({ row, element, marks, before, after }) {
      const { original, decoded, start } = this.#shown;
      const given = this.read(row, original, true);
      marks.original.hidden = given.place === null;
      marks.original.style.setProperty("--p", given.place ?? 0);
      before.textContent = before.title = given.text;
      if (!decoded) return;
      const now = this.read(row, decoded, false);
      const first = this.read(row, start || decoded, false);
      for (const mark of [marks.decoded, marks.bar]) mark.style.setProperty("--p", now.place);
      marks.move.style.setProperty("--from", Math.min(first.place, now.place));
      marks.move.style.setProperty("--to", Math.max(first.place, now.place));
      after.textContent = now.text;
      const isChanged = Math.abs(this.#change(row)) > CHANGED;
      element.classList.toggle("changed", isChanged);
      element.title = `${row.name}: ${isChanged ? `${first.about} → ${now.about}` : now.about}${this.describeRange(row)}`;
    }

    // ---- strips: a heatmap of the features that the latent changes most, a column for each value

    startStrip(card) {
      card.strip.classList.add("heat-strip");
      card.names = make("div", { class: "heat-names" });
      card.ranges = make("div", { class: "heat-ranges" });
      card.strip.prepend(card.names);
      card.strip.append(card.ranges);
      for (const tile of card.tiles) {
        const svg = charts.makeDrawing({ class: "picture heat", "aria-hidden": "true" });
        tile.picture.replaceWith(svg);
        tile.picture = svg;
      }
    }

    drawStrip(card, vectors) {
      const known = vectors.filter((vector) => vector);
      if (!known.length) return;
      const spread = (feature) => {
        const numbers = known.map((vector) => vector[feature]);
        return { feature, low: Math.min(...numbers), high: Math.max(...numbers) };
      };
      const size = ({ feature, low, high }) => (high - low) / this.deviation[feature] || 0;
      const top = this.names.map((_, i) => i).filter((i) => this.isShown(i)).map(spread).sort((a, b) => size(b) - size(a)).slice(0, STRIP_FEATURES);
      card.names.replaceChildren(...top.map(({ feature }) => make("span", { title: this.label(feature) }, this.label(feature))));
      card.ranges.replaceChildren(...top.map(({ feature, low, high }) =>
        make("span", { title: `${this.label(feature)} from ${this.format(feature, low)} to ${this.format(feature, high)}` },
          `${this.format(feature, low)}…${this.format(feature, high)}`)));
      card.strip.style.setProperty("--rows", top.length);
      vectors.forEach((vector, i) => {
        if (!vector) return;
        const height = 100 / top.length;
        card.tiles[i].picture.replaceChildren(...top.map(({ feature }, k) => {
          const cell = charts.makeSvg("rect", { x: 0, y: k * height, width: 100, height: height + 0.5 });
          cell.style.fill = charts.heat(this.standardise(feature, vector[feature]));
          return cell;
        }));
      });
    }

    markStep() {}
  }

  qlae.views.vectors = VectorView;
})();
