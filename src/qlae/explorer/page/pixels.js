// Pictures as ImageData: read from raw bytes and from sheets, drawn on canvases, downloaded as PNG.
(() => {
  "use strict";
  const qlae = (window.qlae = window.qlae || {});

  // bytes (red, green, blue per pixel, one picture after another) → a list of ImageData
  function fromRaw(bytes, side) {
    const numPixels = side * side;
    const pictures = [];
    for (let start = 0; start + 3 * numPixels <= bytes.length; start += 3 * numPixels) {
      const picture = new ImageData(side, side);
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

  function fromBase64(text, side) {
    return fromRaw(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)), side)[0];
  }

  // the address of an image with tiles arranged row by row → a list of ImageData
  async function fromSheet(address, side, count) {
    const image = new Image();
    image.src = address;
    await image.decode();
    const canvas = document.createElement("canvas");
    canvas.width = image.width;
    canvas.height = image.height;
    const context = canvas.getContext("2d", { willReadFrequently: true });
    context.drawImage(image, 0, 0);
    const columns = image.width / side;
    return Array.from({ length: count }, (_, i) =>
      context.getImageData((i % columns) * side, Math.floor(i / columns) * side, side, side));
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
    const scale = Math.max(1, Math.round(512 / picture.width));
    const original = document.createElement("canvas");
    draw(original, picture);
    const enlarged = document.createElement("canvas");
    enlarged.width = enlarged.height = picture.width * scale;
    const context = enlarged.getContext("2d");
    context.imageSmoothingEnabled = false;
    context.drawImage(original, 0, 0, enlarged.width, enlarged.height);
    enlarged.toBlob((blob) => {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(blob);
      link.download = name;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    });
  }

  qlae.pixels = { fromRaw, fromBase64, fromSheet, draw, download };
})();
