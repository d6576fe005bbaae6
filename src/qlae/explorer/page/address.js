// What the page shows as part of its address, so that a reload restores it and a copied address shares it.
//
// For instance #file=cats/7.png&index=12&code=3,0,5&tab=find&where=0:3|4;2:1 (the code only if a latent was changed).
(() => {
  "use strict";
  const qlae = (window.qlae = window.qlae || {});
  const { state } = qlae;
  let written = ""; // the part of the address that this page wrote last

  const writeNumber = (number) => String(Number.isInteger(number) ? number : Number(number.toPrecision(6)));
  const readNumbers = (text, separator) => (text ? text.split(separator).map(Number) : []);

  function writeWhere(where) {
    return where.map(({ latent, values, low, high }) =>
      `${latent}:${values ? values.map(writeNumber).join("|") : `${writeNumber(low)}~${writeNumber(high)}`}`).join(";");
  }

  // conditions that this model has, or none
  function readWhere(text) {
    const conditions = text.split(";").map((part) => {
      const [latent, rest = ""] = part.split(":");
      const [low, high] = readNumbers(rest, "~");
      const condition = { latent: Number(latent) };
      return rest.includes("~") ? { ...condition, low, high } : { ...condition, values: readNumbers(rest, "|") };
    });
    return conditions.every(isPossible) ? conditions : [];
  }

  function isPossible({ latent, values, low, high }) {
    const control = state.run.latents[latent];
    if (!control) return false;
    if (control.kind === "range") return Number.isFinite(low) && Number.isFinite(high);
    return Boolean(values?.length) && values.every((value) => Number.isInteger(value) && value >= 0 && value < control.num_values);
  }

  // the code in the address, if the model can decode it
  function readCode(text) {
    const code = readNumbers(text, ",");
    const fits = code.length === state.run.latents.length && code.every((value, j) =>
      (state.run.latents[j].kind === "range" ? Number.isFinite(value) : isPossible({ latent: j, values: [value] })));
    return fits ? code : null;
  }

  function write() {
    if (!state.sample) return;
    const parts = new URLSearchParams();
    if (state.sample.file) parts.set("file", state.sample.file);
    if (state.sample.row !== null) parts.set("index", state.sample.index);
    if (state.changed.length) parts.set("code", state.code.map(writeNumber).join(","));
    if (qlae.currentTab() !== "latents") parts.set("tab", qlae.currentTab());
    if (qlae.currentTab() === "mix" && state.other && state.other.row !== null) parts.set("other", state.other.index);
    const where = qlae.currentTab() === "find" ? qlae.search.where() : null;
    if (where) parts.set("where", writeWhere(where));
    if (qlae.stage.isHighlighting()) parts.set("changes", "1");
    written = `#${parts.toString().replaceAll("%2C", ",").replaceAll("%2F", "/").replaceAll("%3A", ":").replaceAll("%7C", "|").replaceAll("%3B", ";")}`;
    try {
      history.replaceState(null, "", written);
    } catch { /* a page opened from disk may be denied it */ }
    state.emit("address");
  }

  async function findRow(wanted) {
    const { rows } = await state.backend.search({ ...wanted, limit: 1 });
    return rows.length ? rows[0] : null;
  }

  // the row that the address names, or null
  async function readRow(parts) {
    if (parts.get("file") && state.run.has_files) {
      const row = await findRow({ file: parts.get("file") });
      const isSame = row !== null && (await state.backend.samples([row]))[0].file === parts.get("file");
      if (isSame) return row;
    }
    const index = Number(parts.get("index"));
    return parts.has("index") && Number.isSafeInteger(index) ? findRow({ index }) : null;
  }

  // show what the address says; resolves to false if it names no sample of this run
  async function restore() {
    const parts = new URLSearchParams(location.hash.slice(1));
    if (![...parts.keys()].length) return false;
    const row = await readRow(parts).catch(() => null);
    if (row === null && (parts.has("index") || parts.has("file"))) qlae.showMessage(`The ${state.run.observations.one} of this address is not in the sample of this run.`, true);
    const code = parts.has("code") ? readCode(parts.get("code")) : null;
    await qlae.samples.pick(row ?? qlae.samples.firstRow());
    if (code && !state.backend.saved) state.set(code);
    if (parts.get("changes")) qlae.stage.setHighlighting(true);
    const where = parts.has("where") && !state.backend.saved ? readWhere(parts.get("where")) : [];
    if (where.length) qlae.search.setWhere(where);
    const other = Number(parts.get("other"));
    if (parts.get("tab") === "mix" && parts.has("other") && Number.isSafeInteger(other) && !state.backend.saved) {
      const otherRow = await findRow({ index: other }).catch(() => null);
      if (otherRow !== null) await qlae.samples.pickOther(otherRow);
    }
    const tab = parts.get("tab");
    if (["mix", "find"].includes(tab) && !state.backend.saved) qlae.openTab(tab);
    return true;
  }

  function start() {
    const writeSoon = qlae.debounce(150, write);
    for (const event of ["code", "other", "tab", "search", "highlight"]) state.on(event, writeSoon);
    addEventListener("hashchange", () => location.hash !== written && restore());
  }

  qlae.address = { start, restore };
})();
