// The page around two runs: it passes the chosen sample from one to the other and keeps the views of both in its address.
(() => {
  "use strict";
  const NAMES = ["a", "b"];
  const frames = Object.fromEntries(NAMES.map((name) => [name, document.getElementById(`frame-${name}`)]));
  const together = document.getElementById("together");
  const addresses = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
  const samples = {}; // the index of the sample that each run shows

  const send = (name, index) => frames[name].contentWindow.postMessage({ qlae: { event: "sample", index } }, location.origin);
  const otherOf = (name) => (name === "a" ? "b" : "a");

  function show(name) {
    document.body.dataset.shown = name;
    for (const button of document.querySelectorAll("[data-show]")) button.setAttribute("aria-pressed", String(button.dataset.show === name));
  }

  function receive(event) {
    const name = NAMES.find((candidate) => frames[candidate].contentWindow === event.source);
    const message = event.data?.qlae;
    if (event.origin !== location.origin || !name || !message) return;
    if (message.event === "address") {
      addresses[name] = String(message.hash).slice(1);
      history.replaceState(null, "", `#${new URLSearchParams(addresses)}`);
    } else if (Number.isSafeInteger(message.index)) {
      samples[name] = message.index;
      const isReady = message.event === "ready";
      // the first run leads when the pages open
      if (together.checked && isReady && samples.a !== undefined && samples.b !== undefined) send("b", samples.a);
      if (together.checked && !isReady) send(otherOf(name), message.index);
    }
  }

  // the themes of the pages, which share their storage with this one
  function setTheme() {
    let theme = null;
    try { theme = localStorage.getItem("qlae-theme"); } catch { /* the theme of the system */ }
    if (theme) document.documentElement.dataset.theme = theme;
  }

  setTheme();
  addEventListener("storage", setTheme);
  addEventListener("message", receive);
  together.addEventListener("change", () => together.checked && samples.a !== undefined && send("b", samples.a));
  for (const button of document.querySelectorAll("[data-show]")) button.addEventListener("click", () => show(button.dataset.show));
  show("a");
  for (const name of NAMES) frames[name].src = `${name}/${addresses[name] ? `#${addresses[name]}` : ""}`;
})();
