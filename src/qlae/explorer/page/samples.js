// Picking a sample: at random, from the data, or a picture of one's own.
(() => {
  "use strict";
  const qlae = (window.qlae = window.qlae || {});
  const { state, find, make, tile } = qlae;
  const PAGE = 48;
  const MAX_BYTES = 16 * 1024 * 1024;
  let shown = 0;
  let chosen = null; // what the dialog does with a row

  const rows = () => state.backend.rows || null;
  const number = () => (rows() ? rows().length : state.run.num_samples);
  const rowAt = (i) => (rows() ? rows()[i] : i);

  function randomRow() {
    let row = rowAt(Math.floor(Math.random() * number()));
    if (row === state.sample?.row && number() > 1) row = rowAt((Math.floor(Math.random() * (number() - 1)) + 1) % number());
    return row;
  }

  async function pick(row) {
    try {
      state.show(await state.backend.sample(row));
    } catch (error) {
      qlae.fail(error);
    }
  }

  async function pickOther(row) {
    try {
      state.showOther(await state.backend.sample(row));
    } catch (error) {
      qlae.fail(error);
    }
  }

  // the sample's rows lie in the order of the data, where neighbours look alike: go through them in large strides
  function spread(i) {
    const n = number();
    let stride = Math.max(1, Math.round(n * 0.618));
    const common = (a, b) => (b ? common(b, a % b) : a);
    while (common(stride, n) !== 1) stride += 1;
    return rowAt((i * stride) % n);
  }

  async function more() {
    const list = Array.from({ length: Math.min(PAGE, number() - shown) }, (_, i) => spread(shown + i));
    shown += list.length;
    find("browse-more").hidden = shown >= number();
    try {
      const pictures = await state.backend.images(list);
      const box = find("browse-thumbs");
      box.append(...list.map((row, i) => thumb(row, pictures[i], () => {
        find("browse").close();
        chosen(row);
      })));
      if (shown === list.length) {
        qlae.rove(box, ".tile");
        box.querySelector(".tile")?.focus();
      }
    } catch (error) {
      qlae.fail(error);
    }
  }

  function thumb(row, picture, action, caption = "") {
    const label = `sample ${row}${caption ? `, ${caption}` : ""}`;
    const button = tile({ onclick: action, "aria-label": label, title: label }, picture);
    if (caption) button.append(make("span", { class: "caption" }, caption));
    return button;
  }

  function browse(title, action) {
    chosen = action;
    shown = 0;
    find("browse-title").textContent = title;
    find("browse-thumbs").replaceChildren();
    find("browse").showModal();
    more();
  }

  async function own(file) {
    if (!file) return;
    if (state.backend.saved) return qlae.toast("A saved page cannot encode pictures: run qlae explore", true);
    if (file.size > MAX_BYTES) return qlae.toast(`At most 16 MB a picture, this one has ${(file.size / 1048576).toFixed(1)}`, true);
    try {
      state.show(await state.backend.encode(file));
      qlae.toast(`Encoded ${file.name || "the picture"}; nothing of it is kept`);
    } catch (error) {
      qlae.fail(error);
    }
  }

  function startDropping() {
    const box = find("drop");
    let depth = 0;
    const files = (event) => [...(event.dataTransfer?.types || [])].includes("Files");
    addEventListener("dragenter", (event) => {
      if (files(event)) box.hidden = ++depth < 1;
    });
    addEventListener("dragleave", (event) => {
      if (files(event)) box.hidden = --depth < 1;
    });
    addEventListener("dragover", (event) => files(event) && event.preventDefault());
    addEventListener("drop", (event) => {
      if (!files(event)) return;
      event.preventDefault();
      depth = 0;
      box.hidden = true;
      own(event.dataTransfer.files[0]);
    });
    addEventListener("paste", (event) => {
      const file = [...(event.clipboardData?.files || [])].find((one) => one.type.startsWith("image/"));
      if (file) own(file);
    });
  }

  function start() {
    find("random").addEventListener("click", () => pick(randomRow()));
    find("open-browse").addEventListener("click", () => browse("Choose a sample", pick));
    find("browse-more").addEventListener("click", more);
    qlae.roving(find("browse-thumbs"), ".tile", () => columnsOf(find("browse-thumbs")));
    if (state.backend.saved) {
      find("open-upload").hidden = true;
      return;
    }
    find("open-upload").addEventListener("click", () => find("upload").click());
    find("upload").addEventListener("change", (event) => {
      own(event.target.files[0]);
      event.target.value = "";
    });
    startDropping();
  }

  const columnsOf = (box) => getComputedStyle(box).gridTemplateColumns.split(" ").length;

  const first = () => spread(state.backend.saved ? 0 : 1);

  qlae.samples = { start, first, pick, pickOther, randomRow, browse, thumb, columnsOf };
})();
