// Pictures as ImageData: from raw bytes, from sheets, onto canvases.
(() => {
  "use strict";
  const qlae = (window.qlae = window.qlae || {});

  // bytes: red, green, blue of pictures one after another → a list of ImageData
  function fromRaw(bytes, side) {
    const entries = side * side;
    const pictures = [];
    for (let start = 0; start + 3 * entries <= bytes.length; start += 3 * entries) {
      const picture = new ImageData(side, side);
      const out = picture.data;
      for (let i = 0, from = start, to = 0; i < entries; i++, from += 3, to += 4) {
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

  // a sheet of tiles, row by row, in an image at an address → a list of ImageData
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

  // save a picture as PNG, every pixel a square large enough to look at
  function download(picture, name) {
    const times = Math.max(1, Math.round(512 / picture.width));
    const small = document.createElement("canvas");
    draw(small, picture);
    const large = document.createElement("canvas");
    large.width = large.height = picture.width * times;
    const context = large.getContext("2d");
    context.imageSmoothingEnabled = false;
    context.drawImage(small, 0, 0, large.width, large.height);
    large.toBlob((blob) => {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(blob);
      link.download = name;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    });
  }

  qlae.pixels = { fromRaw, fromBase64, fromSheet, draw, download };
})();
