// Choose a sample: at random, or from the data.
(() => {
  "use strict";
  const qlae = (window.qlae = window.qlae || {});
  const { state, find, make, makeTile } = qlae;
  const THUMBS_PER_PAGE = 48;
  let numShown = 0;
  let onChoice = null; // what the dialog does with the chosen row

  // a saved page has some rows of the sample, a server has all
  const numRows = () => (state.backend.rows ? state.backend.rows.length : state.run.num_samples);
  const rowAt = (i) => (state.backend.rows ? state.backend.rows[i] : i);

  function randomRow() {
    let row = rowAt(Math.floor(Math.random() * numRows()));
    if (row === state.sample?.row && numRows() > 1) row = rowAt((Math.floor(Math.random() * (numRows() - 1)) + 1) % numRows());
    return row;
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
    try {
      const pictures = await state.backend.images(rows);
      const box = find("browse-thumbs");
      box.append(...rows.map((row, i) => makeThumb(row, pictures[i], () => {
        find("browse").close();
        onChoice(row);
      })));
      if (numShown === rows.length) {
        qlae.resetTabStop(box, ".tile");
        box.querySelector(".tile")?.focus();
      }
    } catch (error) {
      qlae.showError(error);
    }
  }

  function makeThumb(row, picture, action, caption = "") {
    const label = `sample ${row}${caption ? `, ${caption}` : ""}`;
    const thumb = makeTile({ onclick: action, "aria-label": label, title: label }, picture);
    if (caption) thumb.append(make("span", { class: "caption" }, caption));
    return thumb;
  }

  function browse(title, action) {
    onChoice = action;
    numShown = 0;
    find("browse-title").textContent = title;
    find("browse-thumbs").replaceChildren();
    find("browse").showModal();
    showMore();
  }

  const countColumns = (box) => getComputedStyle(box).gridTemplateColumns.split(" ").length;

  function start() {
    find("random").addEventListener("click", () => pick(randomRow()));
    find("open-browse").addEventListener("click", () => browse("Choose a sample", pick));
    find("browse-more").addEventListener("click", showMore);
    qlae.addArrowKeys(find("browse-thumbs"), ".tile", () => countColumns(find("browse-thumbs")));
  }

  qlae.samples = { start, firstRow, pick, pickOther, randomRow, browse, makeThumb, countColumns };
})();
