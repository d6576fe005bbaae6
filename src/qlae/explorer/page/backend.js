// Where answers come from: the server of this page, or what was saved with it.
(() => {
  "use strict";
  const qlae = (window.qlae = window.qlae || {});
  const { fromRaw, fromBase64, fromSheet } = qlae.pixels;

  async function ask(address, options) {
    let response;
    try {
      response = await fetch(address, options);
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Error("The server does not answer. Is `qlae explore` still running?");
    }
    if (response.ok) return response;
    const told = await response.json().catch(() => ({}));
    throw new Error(told.error || `The server answered ${response.status}`);
  }

  const post = (address, body, signal) =>
    ask(address, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
      signal,
    });

  class Server {
    saved = false;

    async describe() {
      const run = await (await ask("api/run")).json();
      this.side = run.resolution;
      return run;
    }

    async sample(row) {
      const [sample, [picture]] = await Promise.all([
        ask(`api/sample/${row}`).then((r) => r.json()),
        this.images([row]),
      ]);
      return { ...sample, picture };
    }

    async images(rows, signal) {
      return this.#pictures(await ask(`api/images?rows=${rows.join(",")}`, { signal }));
    }

    async decode(codes, signal) {
      return this.#pictures(await post("api/decode", { codes }, signal));
    }

    async encode(file) {
      const told = await (await ask("api/encode", { method: "POST", body: file })).json();
      return { row: null, name: file.name, code: told.code, sources: null, picture: fromBase64(told.picture, this.side) };
    }

    async search(body) {
      return (await post("api/search", body)).json();
    }

    async rename(latent, value, name) {
      return (await post("api/names", { latent, value, name })).json();
    }

    async #pictures(response) {
      return fromRaw(new Uint8Array(await response.arrayBuffer()), this.side);
    }
  }

  // A saved page knows some samples, and for each what one moved latent makes of it.
  class Saved {
    saved = true;
    #known = new Map(); // code → [sample, tile]
    #tiles = new Map(); // sample → its tiles, once unpacked

    constructor(content) {
      this.content = content;
      this.side = content.run.resolution;
      content.samples.forEach((sample, number) => {
        let tile = 0;
        this.#known.set(String(sample.code), [number, tile]);
        content.run.latents.forEach((latent, j) => {
          for (const step of latent.steps) {
            tile += 1;
            const key = String(sample.code.with(j, step));
            if (!this.#known.has(key)) this.#known.set(key, [number, tile]);
          }
        });
      });
    }

    async describe() {
      return this.content.run;
    }

    get rows() {
      return this.content.samples.map((sample) => sample.row);
    }

    #number(row) {
      return this.content.samples.findIndex((sample) => sample.row === row);
    }

    async #unpacked(number) {
      if (!this.#tiles.has(number)) {
        const { sheet, num_tiles } = this.content.samples[number];
        this.#tiles.set(number, fromSheet(sheet, this.side, num_tiles));
      }
      return this.#tiles.get(number);
    }

    async sample(row) {
      const number = this.#number(row);
      const { code, sources, index } = this.content.samples[number];
      const tiles = await this.#unpacked(number);
      return { row, index, code, sources, picture: tiles[tiles.length - 1] };
    }

    async images(rows) {
      return Promise.all(rows.map(async (row) => (await this.sample(row)).picture));
    }

    knows(code) {
      return this.#known.has(String(code));
    }

    async decode(codes) {
      return Promise.all(codes.map(async (code) => {
        const found = this.#known.get(String(code));
        return found === undefined ? null : (await this.#unpacked(found[0]))[found[1]];
      }));
    }
  }

  qlae.connect = () => (window.qlaeSaved ? new Saved(window.qlaeSaved) : new Server());
})();
