// A page in a frame next to that of another run: both show the same sample, and the page around them knows what they show.
(() => {
  "use strict";
  const qlae = (window.qlae = window.qlae || {});
  const { state } = qlae;
  let following = false; // whether the sample was chosen by the other page

  const tell = (message) => parent.postMessage({ qlae: message }, location.origin);

  async function follow({ index }) {
    if (state.sample?.row !== null && state.sample?.index === index) return;
    try {
      const { rows } = await state.backend.search({ index });
      if (!rows.length) {
        qlae.showMessage(`The ${state.run.observations.one} ${index} is not in the sample of this run.`);
        return;
      }
      following = true;
      await qlae.samples.pick(rows[0]);
    } catch (error) {
      qlae.showError(error);
    } finally {
      following = false;
    }
  }

  function start() {
    if (parent === window || state.backend.saved) return;
    state.on("sample", () => {
      if (!following && state.sample.row !== null) tell({ event: "sample", index: state.sample.index });
    });
    state.on("address", () => tell({ event: "address", hash: location.hash }));
    addEventListener("message", (event) => {
      if (event.origin !== location.origin || event.source !== parent) return;
      if (event.data?.qlae?.event === "sample") follow(event.data.qlae);
    });
    tell({ event: "ready", index: state.sample?.row === null ? null : state.sample?.index });
  }

  qlae.companion = { start };
})();
