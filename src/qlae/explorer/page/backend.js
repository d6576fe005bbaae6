// The source of all answers: the server of this page, or the content that was saved with it.
(() => {
  "use strict";
  const qlae = (window.qlae = window.qlae || {});

  async function request(address, options) {
    let response;
    try {
      response = await fetch(address, options);
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Error("The server does not respond. Is “qlae explore” still running?");
    }
    if (response.ok) return response;
    const answer = await response.json().catch(() => ({}));
    throw new Error(answer.error || `The server responded with status ${response.status}.`);
  }

  const post = (address, body, signal) =>
    request(address, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
      signal,
    });

  class Server {
    saved = false;

    async describe() {
      return (await request("api/run")).json();
    }

    async sample(row) {
      const [[sample], [picture]] = await Promise.all([this.samples([row]), this.images([row])]);
      return { ...sample, picture, photo: qlae.state.run.has_originals ? `api/original/${row}` : null };
    }

    // the data of rows of the sample, without their pictures
    async samples(rows) {
      return (await (await request(`api/samples?rows=${rows.join(",")}`)).json()).samples;
    }

    async images(rows, signal) {
      return this.#pictures(await request(`api/images?rows=${rows.join(",")}`, { signal }));
    }

    async decode(codes, signal) {
      return this.#pictures(await post("api/decode", { codes }, signal));
    }

    // a file, or text
    async encode(content) {
      const { code, picture, note } = await (await request("api/encode", { method: "POST", body: content })).json();
      const [observation] = qlae.view.unpack(qlae.toBytes(picture).buffer);
      const photo = content.type?.startsWith("image/") ? URL.createObjectURL(content) : null;
      return { row: null, name: content.name || "", file: null, code, sources: null, picture: observation, photo, note };
    }

    async search(body) {
      return (await post("api/search", body)).json();
    }

    async rename(latent, value, name) {
      return (await post("api/names", { latent, value, name })).json();
    }

    async #pictures(response) {
      return qlae.view.unpack(await response.arrayBuffer());
    }
  }

  // A saved page contains some samples and, for each, the pictures with one latent changed.
  class Saved {
    saved = true;
    #places = new Map(); // code → [number of the sample, number of the tile]
    #tiles = new Map(); // number of a sample → its tiles, once unpacked

    constructor(content) {
      this.content = content;
      content.samples.forEach((sample, number) => {
        let tile = 0;
        this.#places.set(String(sample.code), [number, tile]);
        content.run.latents.forEach((latent, j) => {
          for (const step of latent.steps) {
            tile += 1;
            const key = String(sample.code.with(j, step));
            if (!this.#places.has(key)) this.#places.set(key, [number, tile]);
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

    async #unpack(number) {
      if (!this.#tiles.has(number)) {
        this.#tiles.set(number, qlae.view.unpackSaved(this.content.samples[number]));
      }
      return this.#tiles.get(number);
    }

    async sample(row) {
      const number = this.content.samples.findIndex((sample) => sample.row === row);
      const { code, sources, index, file, fidelity } = this.content.samples[number];
      const tiles = await this.#unpack(number);
      return { row, index, file, code, sources, fidelity, picture: tiles[tiles.length - 1], photo: null };
    }

    async samples(rows) {
      return rows.map((row) => this.content.samples.find((sample) => sample.row === row));
    }

    // by index or by part of a file's name, as far as the page has it
    async search({ index, file, limit = Infinity }) {
      const matches = this.content.samples.filter((sample) =>
        file === undefined ? sample.index === index : sample.file?.toLowerCase().includes(file.toLowerCase()));
      return { rows: matches.slice(0, limit).map(({ row }) => row), total: matches.length };
    }

    async images(rows) {
      return Promise.all(rows.map(async (row) => (await this.sample(row)).picture));
    }

    // null for codes that were not saved
    async decode(codes) {
      return Promise.all(codes.map(async (code) => {
        const place = this.#places.get(String(code));
        return place === undefined ? null : (await this.#unpack(place[0]))[place[1]];
      }));
    }
  }

  qlae.connect = () => (window.qlaeSaved ? new Saved(window.qlaeSaved) : new Server());
})();
