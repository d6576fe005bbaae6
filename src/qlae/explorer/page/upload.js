// Encode input of the user: a file that is chosen, dropped or pasted, or numbers that are typed into a dialog.
(() => {
  "use strict";
  const qlae = (window.qlae = window.qlae || {});
  const { state, find } = qlae;
  const MEGABYTE = 1024 * 1024;
  const MAX_UPLOAD_MB = 16;

  // returns whether it worked; report(message) is called if it did not
  async function encode(content, report = (message) => qlae.showMessage(message, true)) {
    if (!content) return false;
    const size = content.size ?? content.length;
    if (size > MAX_UPLOAD_MB * MEGABYTE) {
      report(`A file can have at most ${MAX_UPLOAD_MB} MB; this one has ${(size / MEGABYTE).toFixed(1)} MB.`);
      return false;
    }
    try {
      const sample = await state.backend.encode(content);
      state.show(sample);
      qlae.showMessage(`Encoded ${content.name || qlae.view.uploadWord.toLowerCase()}. It is not stored. ${sample.note}`.trim());
      return true;
    } catch (error) {
      report(error.message);
      return false;
    }
  }

  // ---- the dialog for numbers

  function openDialog() {
    find("numbers-error").hidden = true;
    find("numbers-text").value = state.sample ? qlae.view.toText(state.sample.picture) : "";
    find("numbers").showModal();
    find("numbers-text").select();
  }

  function showDialogError(message) {
    find("numbers-error").textContent = message;
    find("numbers-error").hidden = false;
  }

  async function submit(event) {
    event.preventDefault();
    if (await encode(find("numbers-text").value.trim() || " ", showDialogError)) find("numbers").close();
  }

  function startDialog() {
    find("numbers-title").textContent = qlae.view.uploadWord;
    find("numbers-hint").textContent = `Give ${qlae.view.uploadExample}. The field holds the numbers of the current sample, which you can edit.`;
    find("numbers-form").addEventListener("submit", submit);
    find("numbers-cancel").addEventListener("click", () => find("numbers").close());
    find("numbers-file").addEventListener("click", () => find("upload").click());
  }

  // ---- files

  async function encodeFile(file) {
    const dialog = find("numbers");
    if (!dialog.open) await encode(file);
    else if (await encode(file, showDialogError)) dialog.close();
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
  }

  function startPasting() {
    addEventListener("paste", (event) => {
      if (event.target.closest?.("input, textarea") || document.querySelector("dialog[open]")) return;
      const files = [...(event.clipboardData?.files || [])];
      if (qlae.view.takesText) encode(files[0] || event.clipboardData?.getData("text"));
      else encode(files.find((file) => file.type.startsWith("image/")));
    });
  }

  function start() {
    const button = find("open-upload");
    if (state.backend.saved) {
      button.hidden = true;
      return;
    }
    const { uploadWord, uploadHint, takesText } = qlae.view;
    button.textContent = uploadWord;
    button.title = uploadHint;
    find("drop").textContent = takesText ? "Drop a table to encode it" : "Drop a picture to encode it";
    find("upload").accept = takesText ? ".csv,.tsv,.txt,.json" : "image/png,image/jpeg,image/webp,image/bmp,image/gif,image/tiff";
    if (takesText) startDialog();
    button.addEventListener("click", () => (takesText ? openDialog() : find("upload").click()));
    find("upload").addEventListener("change", (event) => {
      encodeFile(event.target.files[0]);
      event.target.value = "";
    });
    startDropping();
    startPasting();
  }

  qlae.upload = { start };
})();
