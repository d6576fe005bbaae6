// How images are shown: as pictures on canvases.
//
// A view draws observations of one kind. Each has: unpack, unpackSaved, makePicture, draw, startStage, show, startStrip,
// drawStrip, markStep and download, and words for buttons. The page itself does not know what an observation is.
(() => {
  "use strict";
  const qlae = (window.qlae = window.qlae || {});
  const { find, make, pixels } = qlae;
  qlae.views = qlae.views || {};

  class ImageView {
    uploadWord = "Your picture";
    uploadHint = "Encode a picture of your own (U), or drop one anywhere on the page";
    downloadHint = "Download the decoded picture as PNG (D)";
    takesText = false;
    canHighlight = true;

    constructor({ width, height }) {
      Object.assign(this, { width, height });
    }

    unpack(buffer) {
      return pixels.fromRaw(new Uint8Array(buffer), this.width, this.height);
    }

    unpackSaved({ sheet, num_tiles }) {
      return pixels.fromSheet(sheet, this.width, this.height, num_tiles);
    }

    makePicture(properties = {}) {
      return make("canvas", { ...properties, class: "picture" });
    }

    draw(element, picture) {
      pixels.draw(element, picture);
    }

    startStage(box) {
      const figure = (id, label, ...caption) =>
        make("figure", {}, this.makePicture({ id, role: "img", "aria-label": label }), make("figcaption", {}, ...caption));
      box.append(
        figure("original", "original", make("span", { id: "original-caption" }, "original")),
        figure("decoded", "decoded from the code", "decoded ", make("output", { id: "latency", title: "Time from input to the new picture" })));
      box.style.setProperty("--ratio", this.width / this.height);
    }

    show({ original, decoded, start, highlight }) {
      pixels.draw(find("original"), original);
      if (!decoded) return;
      pixels.draw(find("decoded"), highlight && start ? pixels.highlightChanges(decoded, start) : decoded);
    }

    startStrip() {}

    drawStrip({ tiles }, pictures, { start, highlight }) {
      pictures.forEach((picture, i) =>
        picture && pixels.draw(tiles[i].picture, highlight && start ? pixels.highlightChanges(picture, start) : picture));
    }

    markStep() {}

    download(picture, name) {
      pixels.download(picture, `${name}.png`);
    }
  }

  qlae.views.images = ImageView;
})();
