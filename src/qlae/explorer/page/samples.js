// Choose a sample: at random, or from the data.
(() => {
  "use strict";
  const qlae = (window.qlae = window.qlae || {});
  const { state, find, make, makeTile } = qlae;
  const THUMBS_PER_PAGE = 48;
  let numShown = 0;
  let numListed = 0; // requests of the dialog, of which only the newest counts
  let onChoice = null; // what the dialog does with the chosen row

  // a saved page has some rows of the sample, a server has all
  const numRows = () => (state.backend.rows ? state.backend.rows.length : state.run.num_samples);
  const rowAt = (i) => (state.backend.rows ? state.backend.rows[i] : i);

  function randomRow() {
    const n = numRows();
    const draw = (count) => Math.floor(Math.random() * count);
    const i = draw(n);
    const isShown = rowAt(i) === state.sample?.row && n > 1;
    return rowAt(isShown ? (i + 1 + draw(n - 1)) % n : i); // one of the others
  }

  async function pick(row) {
    try {
      state.show(await state.backend.sample(row));
    } catch (error) {
      qlae.showError(error);
    }
  }

  async function pickOther(row) {
    try {
      state.showOther(await state.backend.sample(row));
    } catch (error) {
      qlae.showError(error);
    }
  }

  // The rows are in the order of the data, where neighbours look alike: visit all of them in large strides.
  function spreadRow(i) {
    const n = numRows();
    const gcd = (a, b) => (b ? gcd(b, a % b) : a);
    let stride = Math.max(1, Math.round(n * 0.618));
    while (gcd(stride, n) !== 1) stride += 1;
    return rowAt((i * stride) % n);
  }

  const firstRow = () => spreadRow(state.backend.saved ? 0 : 1);

  async function showMore() {
    const rows = Array.from({ length: Math.min(THUMBS_PER_PAGE, numRows() - numShown) }, (_, i) => spreadRow(numShown + i));
    numShown += rows.length;
    find("browse-more").hidden = numShown >= numRows();
    const isFirst = numShown === rows.length;
    await appendThumbs(rows, ++numListed);
    if (isFirst) find("browse-thumbs").querySelector(".tile")?.focus();
  }

  // list further rows, unless something else was asked for in the meantime
  async function appendThumbs(rows, request) {
    try {
      const thumbs = await makeThumbs(rows, (row) => {
        find("browse").close();
        onChoice(row);
      });
      if (request !== numListed) return;
      find("browse-thumbs").append(...thumbs);
      qlae.resetTabStop(find("browse-thumbs"), ".tile");
    } catch (error) {
      qlae.showError(error);
    }
  }

  // samples whose file name contains the text of the field
  async function filterFiles() {
    const text = find("browse-filter").value.trim();
    const request = ++numListed;
    find("browse-status").textContent = "";
    if (!text) {
      numShown = 0;
      find("browse-thumbs").replaceChildren();
      const rows = Array.from({ length: Math.min(THUMBS_PER_PAGE, numRows()) }, (_, i) => spreadRow(i));
      numShown = rows.length;
      find("browse-more").hidden = numShown >= numRows();
      await appendThumbs(rows, request);
      return;
    }
    try {
      const { rows, total } = await state.backend.search({ file: text, limit: THUMBS_PER_PAGE });
      if (request !== numListed) return;
      find("browse-thumbs").replaceChildren();
      find("browse-more").hidden = true;
      find("browse-status").textContent = `${total.toLocaleString("en")} ${total === 1 ? "name contains" : "names contain"} “${text}”${total > rows.length ? `; ${rows.length} are shown` : ""}.`;
      if (rows.length) await appendThumbs(rows, request);
    } catch (error) {
      qlae.showError(error);
    }
  }

  // tiles for rows of the sample, with file names if there are any; caption(i) returns a text for the i-th
  async function makeThumbs(rows, action, caption = () => "") {
    const [pictures, samples] = await Promise.all([
      state.backend.images(rows),
      state.run.has_files ? state.backend.samples(rows) : rows.map(() => ({ file: null })),
    ]);
    return rows.map((row, i) => {
      const { file } = samples[i];
      const label = [file || `sample ${row}`, caption(i)].filter(Boolean).join(", ");
      const thumb = makeTile({ onclick: () => action(row), "aria-label": label, title: label }, pictures[i]);
      if (file) thumb.append(make("span", { class: "caption file" }, make("bdi", {}, file)));
      if (caption(i)) thumb.append(make("span", { class: "caption" }, caption(i)));
      return thumb;
    });
  }

  function browse(title, action) {
    onChoice = action;
    numShown = 0;
    find("browse-title").textContent = title;
    find("browse-filter").value = "";
    find("browse-status").textContent = "";
    find("browse-thumbs").replaceChildren();
    find("browse").showModal();
    showMore();
  }

  const countColumns = (box) => getComputedStyle(box).gridTemplateColumns.split(" ").length;

  function start() {
    find("random").addEventListener("click", () => pick(randomRow()));
    find("open-browse").addEventListener("click", () => browse("Choose a sample", pick));
    find("browse-more").addEventListener("click", showMore);
    find("browse-filter").hidden = !state.run.has_files;
    find("browse-filter").addEventListener("input", qlae.debounce(200, filterFiles));
    qlae.addArrowKeys(find("browse-thumbs"), ".tile", () => countColumns(find("browse-thumbs")));
  }

  qlae.samples = { start, firstRow, pick, pickOther, randomRow, browse, makeThumbs, countColumns };
})();
