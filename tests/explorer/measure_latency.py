"""How long a picture takes after a latent was moved, measured in Chromium: ``measure_latency.py RUN``.

From the input event to the frame that shows the new picture, over the real server: key presses with pauses in which the
strips are drawn again, key presses without, and a drag.
"""

import shutil
import subprocess
import sys
import time

import numpy as np
from playwright.sync_api import Page, sync_playwright


def main(run: str) -> None:
    """Serve a run, move its first latent, and print medians and tails."""
    command = [sys.executable, "-m", "qlae.cli", "explore", run, "--port", "0", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server, sync_playwright() as driver:
        try:
            address = server.stdout.readline().split(" at ")[1].split()[0]
            browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": 1280, "height": 800})
            page.goto(address)
            page.wait_for_selector("html[data-ready]")
            time.sleep(2)
            press(page, times=40, pause=0.6, title="keys, one every 0.6 s")
            press(page, times=60, pause=0.12, title="keys, one every 0.12 s")
            drag(page)
            browser.close()
        finally:
            server.send_signal(2)


def press(page: Page, *, times: int, pause: float, title: str) -> None:
    """Arrow keys on the first latent, back and forth."""
    page.evaluate("qlae.latencies.length = 0")
    page.locator("#panel-latents .slider, #panel-latents select").first.focus()
    for i in range(times):
        page.keyboard.press("ArrowRight" if i // 3 % 2 == 0 else "ArrowLeft")
        time.sleep(pause)
    tell(page, title)


def drag(page: Page) -> None:
    """The first latent dragged back and forth."""
    page.evaluate("qlae.latencies.length = 0")
    box = page.locator("#panel-latents .slider").first.bounding_box()
    left, right, y = box["x"] + 12, box["x"] + box["width"] - 12, box["y"] + box["height"] - 12
    page.mouse.move(left, y)
    page.mouse.down()
    for x in (right, left, right, left):
        page.mouse.move(x, y, steps=60)
    page.mouse.up()
    time.sleep(0.5)
    tell(page, "drag")


def tell(page: Page, title: str) -> None:
    """The latencies since the last time."""
    found = np.array(page.evaluate("qlae.latencies.splice(0)"))
    shares = {"median": np.median(found), "95 %": np.percentile(found, 95), "max": found.max()}
    told = ", ".join(f"{name} {value:.0f} ms" for name, value in shares.items())
    print(f"{title}: {len(found)} pictures, {told}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
