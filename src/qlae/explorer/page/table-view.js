// How rows of tables are shown: as vectors, but with one line per column on the stage: categories by their levels, what
// is missing by name.
(() => {
  "use strict";
  const qlae = (window.qlae = window.qlae || {});
  const percent = (share) => qlae.formatPercent(share);

  class TableView extends qlae.views.vectors {
    rowWord = "column";
    uploadWord = "Your row";
    help = [
      "Each column of the table has a line. The bar of a number or date ends at the decoded value, the grey mark is the original, and the dark part is the change. The bar of a category is the decoded share of its most probable level.",
      "In the heatmap of a latent, columns are its values and rows the numbers, dates and levels that it changes most: red above the mean of the data, blue below. The numbers are their range.",
    ];

    // description: as of vectors, and of each column its name, the place of its first feature, its levels, "date" or
    // "datetime" if it is one, and the place of the feature that says that its value is missing
    constructor(description) {
      super(description);
      this.owners = new Map();
      for (const column of this.columns) {
        column.levels.forEach((level, i) => this.owners.set(column.first + i, { column, level }));
      }
      this.indicators = new Set(this.columns.map(({ missing }) => missing).filter((place) => place !== null));
    }

    startStage(box) {
      super.startStage(box);
      box.classList.add("by-column");
    }

    listRows() {
      const rows = [];
      this.names.forEach((name, feature) => {
        const owner = this.owners.get(feature);
        if (this.indicators.has(feature) || (owner && owner.column.first !== feature)) return;
        const column = this.columns.find(({ first }) => first === feature);
        rows.push({ name: column?.name ?? name, feature, column });
      });
      return rows;
    }

    isShown(feature) {
      return !this.indicators.has(feature);
    }

    label(feature) {
      const owner = this.owners.get(feature);
      return owner ? `${owner.column.name}: ${owner.level}` : this.names[feature];
    }

    // seconds since 1970 as a date, or null if they are none
    #toDate({ date }, seconds) {
      const time = new Date(1000 * seconds);
      return Number.isFinite(time.getTime()) ? time.toISOString().slice(0, date === "date" ? 10 : 19) : null;
    }

    format(feature, number) {
      const column = this.columns.find(({ first, date }) => first === feature && date);
      if (column) return this.#toDate(column, number)?.slice(0, 16).replace("T", " ") ?? "–";
      return this.owners.has(feature) && Number.isFinite(number) ? percent(number) : super.format(feature, number);
    }

    describeRange(row) {
      return row.column?.levels.length ? "" : super.describeRange(row);
    }

    // the shares of the levels of a category
    #shares({ levels, first }, vector) {
      return levels.map((level, i) => ({ level, share: vector[first + i] })).sort((a, b) => b.share - a.share);
    }

    #isMissing({ column }, vector) {
      if (!column) return false;
      return column.levels.length ? this.#shares(column, vector)[0].share === 0 : column.missing !== null && vector[column.missing] > 0.5;
    }

    read(row, vector, isOriginal) {
      if (isOriginal && this.#isMissing(row, vector)) return { place: null, text: "missing", about: "missing" };
      if (!row.column?.levels.length) return super.read(row, vector, isOriginal);
      const shares = this.#shares(row.column, vector);
      const [{ level, share }] = shares;
      const about = shares.filter((each) => each.share >= 0.005).map((each) => `${each.level} ${percent(each.share)}`).join(", ");
      return isOriginal ? { place: null, text: level, about: level } : { place: share, text: `${level} ${percent(share)}`, about };
    }

    change(row, decoded, start) {
      if (!row.column?.levels.length) return super.change(row, decoded, start);
      const changes = row.column.levels.map((_, i) => Math.abs(decoded[row.column.first + i] - start[row.column.first + i]));
      return 2 * Math.max(...changes); // a share of one half has a standard deviation of one half
    }

    #toCell(row, vector) {
      const { column, feature } = row;
      if (this.#isMissing(row, vector)) return "";
      if (column.levels.length) return this.#shares(column, vector)[0].level;
      return (column.date && this.#toDate(column, vector[feature])) || this.toCell(vector[feature]);
    }

    uploadExample = "one row of the table as CSV, with a line of names";

    // one row of CSV with the columns of the table
    toText(vector) {
      const rows = this.listRows().filter(({ column }) => column);
      const cells = rows.map((row) => this.#toCell(row, vector));
      return [rows.map(({ name }) => name), cells].map((line) => `${line.map((cell) => qlae.quoteCell(cell)).join(",")}\n`).join("");
    }
  }

  qlae.views.tables = TableView;
})();
