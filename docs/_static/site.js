// The frames of the explorer follow the theme of the site, pictures open at their full size, and tables keep numbers, or
// all cells if they have many columns, on one line.
(() => {
  "use strict";

  // An explorer listens to changes of this entry; anything but light and dark is the theme of the system.
  const copyTheme = () => {
    try { localStorage.setItem("qlae-theme", document.body.dataset.theme || "auto"); } catch { /* its own theme */ }
  };

  const openPictures = () => {
    for (const picture of document.querySelectorAll("article img")) {
      if (picture.closest("a")) continue;
      picture.classList.add("opens");
      picture.title = picture.title || "Open at full size";
      picture.addEventListener("click", () => window.open(picture.src, "_blank", "noopener"));
    }
  };

  const markWideTables = () => {
    for (const table of document.querySelectorAll("article table.docutils")) {
      table.classList.toggle("many-columns", table.rows[0].cells.length > 8);
      for (const cell of table.querySelectorAll("td")) {
        cell.classList.toggle("number", /^[\d.]+( ± [\d.]+)?$/.test(cell.textContent.trim()));
      }
    }
  };

  document.addEventListener("DOMContentLoaded", () => {
    copyTheme();
    new MutationObserver(copyTheme).observe(document.body, { attributeFilter: ["data-theme"] });
    openPictures();
    markWideTables();
  });
})();
