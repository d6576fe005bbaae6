// How images are shown: as pictures on canvases.
//
// A view draws observations of one kind. Each has: unpack, unpackSaved, makePicture, draw, startStage, show, startStrip,
// drawStrip, markStep and download, and words for buttons. The page itself does not know what an observation is.
(() => {
  "use strict";
  const qlae = (window.qlae = window.qlae || {});
  const { find, make, pixels } = qlae;
  qlae.views = qlae.views || {};

  const MAX_RATIO = 3; // of the sides of a tile; in longer ones the image leaves space

  class ImageView {
    uploadWord = "Your picture";
    uploadHint = "Encode your own picture (U), or drop one anywhere on the page";
    downloadHint = "Download the decoded picture as PNG (D)";
    help = ["Changes fades every pixel that is as it was before the first latent was changed."];
    takesText = false;
    canHighlight = true;

    constructor({ width, height }) {
      Object.assign(this, { width, height });
      const ratio = Math.min(MAX_RATIO, Math.max(1 / MAX_RATIO, width / height));
      document.documentElement.style.setProperty("--ratio", ratio);
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

    // the original at its own resolution, where it is known
    #makePhoto() {
      const image = make("img", {
        id: "photo",
        alt: "the original at its own resolution",
        onload: () => (find("photo-caption").textContent = `${image.naturalWidth}×${image.naturalHeight} pixels`),
        onerror: () => (find("photo-figure").hidden = true), // a format that the browser does not show
      });
      return make("figure", { id: "photo-figure", hidden: true },
        make("button", { type: "button", class: "photo-button", "aria-label": "Show the original in full size", onclick: () => this.#openPhoto() }, image),
        make("figcaption", {}, "original", make("span", { id: "photo-caption" })));
    }

    #openPhoto() {
      const { sample } = qlae.state;
      find("photo-title").textContent = sample.file || sample.name || "Original";
      find("photo-full").src = sample.photo;
      find("photo-size").textContent = `original, ${find("photo-caption").textContent}`;
      pixels.draw(find("photo-seen"), sample.picture);
      find("photo-dialog").showModal();
    }

    #showPhoto(photo) {
      const image = find("photo");
      find("photo-figure").hidden = !photo;
      find("full-size").hidden = !photo;
      if (!photo) return;
      find("original-caption").textContent = "what the model sees";
      if (image.getAttribute("src") !== photo) image.src = photo;
    }

    startStage(box) {
      const figure = (id, label, ...caption) =>
        make("figure", {}, this.makePicture({ id, role: "img", "aria-label": label }), make("figcaption", {}, ...caption));
      const fullSize = make("button", { type: "button", id: "full-size", class: "link", hidden: true, onclick: () => this.#openPhoto() }, "full size");
      box.append(this.#makePhoto(),
        figure("original", "original", make("span", { id: "original-caption" }, "original"), fullSize),
        figure("decoded", "decoded from the code", "decoded ", make("output", { id: "latency", title: "Time from input to the new picture" })));
    }

    show({ original, decoded, start, highlight, photo }) {
      pixels.draw(find("original"), original);
      this.#showPhoto(photo);
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
