// How series are shown: a panel with curves for each channel, small curves in tiles, and the curves of a latent's values
// laid over each other.
(() => {
  "use strict";
  const qlae = (window.qlae = window.qlae || {});
  const { find, make, charts } = qlae;
  qlae.views = qlae.views || {};
  const TILE_CHANNELS = 4;
  const STRIP_CHANNELS = 2; // in the strip of a latent: those that it changes most
  const MIN_CHANGE = 0.25; // of the change of the channel that changes most; channels that change less are left out
  const MIN_ZOOM = 0.2; // of a channel's range in the data: the least that the axis of such a strip covers
  const MAX_PANELS = 24;

  class SeriesView extends qlae.NumberView {
    uploadWord = "Your series";
    uploadHint = "Encode your own series (U), or drop a CSV anywhere on the page";
    help = [
      "Each channel has a panel: the original is grey, the decoded curve is coloured, and the dashed curve is what was decoded before a latent was changed. Point at a curve to read its numbers.",
      "The card of a latent shows the curves at all of its values over each other, from dark to bright, for the channels that change most.",
    ];
    #panels = [];
    #shown = null;

    get length() {
      return this.num_points * this.names.length;
    }

    get uploadExample() {
      return `${this.num_steps.toLocaleString("en")} lines with one number per channel, with or without a line of names: CSV or JSON`;
    }

    channel(series, channel) {
      const numbers = new Array(this.num_points);
      for (let i = 0; i < this.num_points; i++) numbers[i] = series[i * this.names.length + channel];
      return numbers;
    }

    toText(series) {
      const width = this.names.length;
      const lines = Array.from({ length: this.num_points }, (_, i) =>
        [...series.subarray(i * width, (i + 1) * width)].map((number) => this.toCell(number)).join(","));
      return `${this.header}\n${lines.join("\n")}\n`;
    }

    // ---- tiles: the first channels over each other, each in its own range

    makePicture(properties = {}) {
      return charts.makeDrawing({ ...properties, class: "picture curves" });
    }

    draw(element, series) {
      const channels = this.names.slice(0, TILE_CHANNELS).map((_, channel) => channel);
      element.replaceChildren(...channels.map((channel) =>
        charts.makeCurve(`channel-${channel % 10}`, this.channel(series, channel), this.low[channel], this.high[channel])));
    }

    // ---- the stage: a panel for each channel

    startStage(box) {
      box.classList.add("chart");
      const key = (name, ...text) => make("span", { class: `key ${name}` }, ...text);
      this.#panels = this.names.slice(0, MAX_PANELS).map((name, channel) => this.#makePanel(name, channel));
      const hidden = this.names.length - this.#panels.length;
      const notes = [
        this.stride > 1 ? `Every ${this.stride}${this.stride === 2 ? "nd" : this.stride === 3 ? "rd" : "th"} of ${this.num_steps.toLocaleString("en")} time steps is drawn.` : "",
        hidden ? `${hidden} further channels are not drawn.` : "",
      ].join(" ").trim();
      box.append(
        make("div", { class: "chart-tools" },
          make("span", { class: "legend" }, key("original", make("span", { id: "original-caption" }, "original")), key("start", "before the change"), key("decoded", "decoded")),
          make("output", { id: "latency", class: "hint", title: "Time from input to the new curves" })),
        make("div", { class: "panels" }, ...this.#panels.map(({ element }) => element)),
        make("p", { class: "hint axis" }, make("span", {}, "0"), make("span", { id: "series-status", role: "status" }, "time step"), make("span", {}, String(this.num_steps - 1))),
        notes ? make("p", { class: "hint" }, notes) : "");
    }

    #makePanel(name, channel) {
      const drawing = charts.makeDrawing({ class: "panel-drawing", role: "img", "aria-label": name });
      const [top, bottom] = [make("span"), make("span")];
      const line = make("i", { class: "cursor", hidden: true });
      const area = make("div", { class: "panel-area" }, drawing, line);
      area.addEventListener("pointermove", (event) => this.#point(event));
      area.addEventListener("pointerleave", () => this.#point(null));
      const element = make("div", { class: `panel-row channel-${channel % 10}`, "data-channel": channel },
        make("span", { class: "panel-name", title: name }, name), this.#makePlot(top, bottom, area));
      return { channel, name, element, drawing, area, top, bottom, line };
    }

    // a drawing with the ends of its axis at the left
    #makePlot(top, bottom, area) {
      return make("div", { class: "plot" }, make("div", { class: "plot-axis" }, top, bottom), area);
    }

    show(shown) {
      this.#shown = shown;
      for (const panel of this.#panels) this.#drawPanel(panel);
    }

    #drawPanel({ channel, drawing, top, bottom }) {
      const { original, start, decoded, isChanged } = this.#shown;
      const all = { original, start: isChanged ? start : null, decoded };
      const curves = Object.entries(all).filter(([, series]) => series).map(([name, series]) => [name, this.channel(series, channel)]);
      const finite = curves.flatMap(([, numbers]) => numbers).filter(Number.isFinite);
      const low = finite.reduce((a, b) => Math.min(a, b), this.low[channel]);
      const high = finite.reduce((a, b) => Math.max(a, b), this.high[channel]);
      drawing.replaceChildren(...curves.map(([name, numbers]) => charts.makeCurve(name, numbers, low, high)));
      top.textContent = this.format(channel, high);
      bottom.textContent = this.format(channel, low);
    }

    // show the numbers under the pointer; null hides them
    #point(event) {
      const status = find("series-status");
      if (!event || !this.#shown?.decoded) {
        for (const { line } of this.#panels) line.hidden = true;
        status.textContent = "time step";
        return;
      }
      const { left, width } = event.currentTarget.getBoundingClientRect();
      const share = Math.min(1, Math.max(0, (event.clientX - left) / width));
      const i = Math.round(share * (this.num_points - 1));
      for (const { line } of this.#panels) {
        line.hidden = false;
        line.style.setProperty("--p", this.num_points > 1 ? i / (this.num_points - 1) : 0);
      }
      const { channel, name } = this.#panels.find(({ area }) => area === event.currentTarget);
      const at = (series) => this.format(channel, series[i * this.names.length + channel]);
      status.textContent = `${name} at step ${i * this.stride}: ${at(this.#shown.original)}, decoded ${at(this.#shown.decoded)}`;
    }

    // ---- strips: the curves at all values of the latent over each other, for the channels that change most

    startStrip(card) {
      card.fan = make("div", { class: "fan", "aria-hidden": "true" });
      card.strip.before(card.fan);
      card.strip.classList.add("curve-strip");
      const last = Math.max(1, card.tiles.length - 1);
      card.tiles.forEach((tile, i) => tile.style.setProperty("--tone", charts.ramp(i / last)));
    }

    drawStrip(card, list) {
      const known = list.flatMap((series, i) => (series ? [{ series, i }] : []));
      if (!known.length) return;
      const last = Math.max(1, list.length - 1);
      const channels = this.#mostChanged(known.map(({ series }) => series));
      const ranges = channels.map((channel) =>
        this.#zoom(channel, known.flatMap(({ series }) => this.channel(series, channel)).filter(Number.isFinite)));
      card.fan.replaceChildren(...channels.map((channel, k) => {
        const drawing = charts.makeDrawing({ class: "panel-drawing" });
        const curves = known.map(({ series, i }) => ({ i, numbers: this.channel(series, channel) }));
        const [low, high] = ranges[k];
        drawing.append(...curves.map(({ i, numbers }) => {
          const path = charts.makeCurve("step", numbers, low, high);
          path.style.stroke = charts.ramp(i / last);
          path.dataset.step = i;
          return path;
        }));
        const [top, bottom] = [high, low].map((end) => make("span", {}, this.format(channel, end)));
        return make("div", { class: "fan-panel" }, make("span", { class: "panel-name", title: this.names[channel] }, this.names[channel]),
          this.#makePlot(top, bottom, drawing));
      }));
      known.forEach(({ series, i }) => {
        card.tiles[i].picture.replaceChildren(charts.makeCurve("step", this.channel(series, channels[0]), ...ranges[0]));
      });
      card.markTile(qlae.state.code[card.j]);
    }

    // the channels whose curves lie farthest apart, farthest first
    #mostChanged(list) {
      const changes = this.names.map((_, channel) => ({ channel, change: this.#spread(list, channel) })).sort((a, b) => b.change - a.change);
      return changes.slice(0, STRIP_CHANNELS).filter(({ change }) => change >= MIN_CHANGE * changes[0].change).map(({ channel }) => channel);
    }

    // the range of numbers, widened if it is a small part of what the data cover
    #zoom(channel, numbers) {
      const low = numbers.reduce((a, b) => Math.min(a, b), Infinity);
      const high = numbers.reduce((a, b) => Math.max(a, b), -Infinity);
      if (low > high) return [this.low[channel], this.high[channel]];
      const missing = Math.max(0, MIN_ZOOM * (this.high[channel] - this.low[channel]) - (high - low));
      return [low - missing / 2, high + missing / 2];
    }

    // how far the curves of a channel lie apart, in standard deviations
    #spread(list, channel) {
      let spread = 0;
      for (let i = 0; i < this.num_points; i++) {
        const numbers = list.map((series) => series[i * this.names.length + channel]);
        spread += Math.max(...numbers) - Math.min(...numbers);
      }
      return spread / this.deviation[channel] || 0;
    }

    // draw the curve of one step above the others; -1 for none
    markStep(card, step) {
      for (const path of card.fan.querySelectorAll("path")) {
        const isMarked = Number(path.dataset.step) === step;
        path.classList.toggle("marked", isMarked);
        if (isMarked) path.parentNode.append(path);
      }
    }
  }

  qlae.views.series = SeriesView;
})();
