// Pictures as ImageData: read from raw bytes and from sheets, compared, drawn on canvases, downloaded as PNG.
(() => {
  "use strict";
  const qlae = (window.qlae = window.qlae || {});
  const FAINT = 0.18; // how much of an unchanged pixel is left where changes are highlighted
  const CLEAR_CHANGE = 40; // of 255: changes of this size and more are shown in full

  // bytes (red, green, blue per pixel, one picture after another) → a list of ImageData
  function fromRaw(bytes, width, height) {
    const numPixels = width * height;
    const pictures = [];
    for (let start = 0; start + 3 * numPixels <= bytes.length; start += 3 * numPixels) {
      const picture = new ImageData(width, height);
      const out = picture.data;
      for (let i = 0, from = start, to = 0; i < numPixels; i++, from += 3, to += 4) {
        out[to] = bytes[from];
        out[to + 1] = bytes[from + 1];
        out[to + 2] = bytes[from + 2];
        out[to + 3] = 255;
      }
      pictures.push(picture);
    }
    return pictures;
  }

  // the address of an image with tiles arranged row by row → a list of ImageData
  async function fromSheet(address, width, height, count) {
    const image = new Image();
    image.src = address;
    await image.decode();
    const canvas = document.createElement("canvas");
    canvas.width = image.width;
    canvas.height = image.height;
    const context = canvas.getContext("2d", { willReadFrequently: true });
    context.drawImage(image, 0, 0);
    const columns = image.width / width;
    return Array.from({ length: count }, (_, i) =>
      context.getImageData((i % columns) * width, Math.floor(i / columns) * height, width, height));
  }

  // the picture in full where it differs from another one, and faint where it does not
  function highlightChanges(picture, other) {
    const result = new ImageData(picture.width, picture.height);
    const [now, before, out] = [picture.data, other.data, result.data];
    for (let i = 0; i < now.length; i += 4) {
      const change = Math.max(...[0, 1, 2].map((k) => Math.abs(now[i + k] - before[i + k])));
      const share = Math.min(1, FAINT + (1 - FAINT) * (change / CLEAR_CHANGE));
      out.set(now.subarray(i, i + 3), i);
      out[i + 3] = Math.round(255 * share);
    }
    return result;
  }

  function draw(canvas, picture) {
    if (canvas.width !== picture.width || canvas.height !== picture.height) {
      canvas.width = picture.width;
      canvas.height = picture.height;
    }
    canvas.getContext("2d").putImageData(picture, 0, 0);
  }

  // save a picture as PNG, enlarged to about 512 pixels without smoothing
  function download(picture, name) {
    const scale = Math.max(1, Math.round(512 / Math.max(picture.width, picture.height)));
    const original = document.createElement("canvas");
    draw(original, picture);
    const enlarged = document.createElement("canvas");
    enlarged.width = picture.width * scale;
    enlarged.height = picture.height * scale;
    const context = enlarged.getContext("2d");
    context.imageSmoothingEnabled = false;
    context.drawImage(original, 0, 0, enlarged.width, enlarged.height);
    enlarged.toBlob((blob) => qlae.saveFile(blob, name));
  }

  qlae.pixels = { fromRaw, fromSheet, highlightChanges, draw, download };
})();
