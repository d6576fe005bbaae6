// Choose a sample: at random, from the data, or a picture of the user's own.
(() => {
  "use strict";
  const qlae = (window.qlae = window.qlae || {});
  const { state, find, make, makeTile } = qlae;
  const THUMBS_PER_PAGE = 48;
  const MEGABYTE = 1024 * 1024;
  const MAX_UPLOAD_MB = 16;
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

  async function encodeFile(file) {
    if (!file) return;
    if (file.size > MAX_UPLOAD_MB * MEGABYTE) {
      qlae.showMessage(`A picture can have at most ${MAX_UPLOAD_MB} MB; this one has ${(file.size / MEGABYTE).toFixed(1)} MB.`, true);
      return;
    }
    try {
      state.show(await state.backend.encode(file));
      qlae.showMessage(`Encoded ${file.name || "the picture"}. It is not stored.`);
    } catch (error) {
      qlae.showError(error);
    }
  }

  function startDropping() {
    const box = find("drop");
    let depth = 0; // dragenter and dragleave also fire for nested elements
    const hasFiles = (event) => [...(event.dataTransfer?.types || [])].includes("Files");
    addEventListener("dragenter", (event) => {
      if (hasFiles(event)) box.hidden = ++depth < 1;
    });
    addEventListener("dragleave", (event) => {
      if (hasFiles(event)) box.hidden = --depth < 1;
    });
    addEventListener("dragover", (event) => hasFiles(event) && event.preventDefault());
    addEventListener("drop", (event) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      depth = 0;
      box.hidden = true;
      encodeFile(event.dataTransfer.files[0]);
    });
    addEventListener("paste", (event) => {
      const picture = [...(event.clipboardData?.files || [])].find((file) => file.type.startsWith("image/"));
      if (picture) encodeFile(picture);
    });
  }

  const countColumns = (box) => getComputedStyle(box).gridTemplateColumns.split(" ").length;

  function start() {
    find("random").addEventListener("click", () => pick(randomRow()));
    find("open-browse").addEventListener("click", () => browse("Choose a sample", pick));
    find("browse-more").addEventListener("click", showMore);
    qlae.addArrowKeys(find("browse-thumbs"), ".tile", () => countColumns(find("browse-thumbs")));
    if (state.backend.saved) {
      find("open-upload").hidden = true;
      return;
    }
    find("open-upload").addEventListener("click", () => find("upload").click());
    find("upload").addEventListener("change", (event) => {
      encodeFile(event.target.files[0]);
      event.target.value = "";
    });
    startDropping();
  }

  qlae.samples = { start, firstRow, pick, pickOther, randomRow, browse, makeThumb, countColumns };
})();
