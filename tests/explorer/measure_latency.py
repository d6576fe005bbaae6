"""Measure in Chromium how long a picture takes after a latent was moved: ``measure_latency.py RUN``.

The time runs from the input event to the frame that shows the new picture, with the real server. It is measured for
slow key presses, with pauses in which the strips are redrawn, for quick key presses, and for a drag.
"""

import subprocess
import sys
import time

import numpy as np
from chromium import find_chromium
from playwright.sync_api import Page, sync_playwright


def main(run: str) -> None:
    """Serve a run, move its first latent, and print medians and tails."""
    command = [sys.executable, "-m", "qlae.cli", "explore", run, "--port", "0", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server, sync_playwright() as driver:
        try:
            address = server.stdout.readline().split(" at ")[1].split()[0]
            browser = driver.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])
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
    """Move the first latent back and forth with the arrow keys."""
    page.evaluate("qlae.latencies.length = 0")
    page.locator("#panel-latents .slider, #panel-latents select").first.focus()
    for i in range(times):
        page.keyboard.press("ArrowRight" if i // 3 % 2 == 0 else "ArrowLeft")
        time.sleep(pause)
    print_latencies(page, title)


def drag(page: Page) -> None:
    """Drag the first latent back and forth."""
    page.evaluate("qlae.latencies.length = 0")
    box = page.locator("#panel-latents .slider").first.bounding_box()
    left, right, y = box["x"] + 12, box["x"] + box["width"] - 12, box["y"] + box["height"] - 12
    page.mouse.move(left, y)
    page.mouse.down()
    for x in (right, left, right, left):
        page.mouse.move(x, y, steps=60)
    page.mouse.up()
    time.sleep(0.5)
    print_latencies(page, "drag")


def print_latencies(page: Page, title: str) -> None:
    """Print a summary of the latencies since the last call."""
    latencies = np.array(page.evaluate("qlae.latencies.splice(0)"))
    summary = {"median": np.median(latencies), "95%": np.percentile(latencies, 95), "max": latencies.max()}
    times = ", ".join(f"{name} {value:.0f} ms" for name, value in summary.items())
    print(f"{title}: {len(latencies)} pictures, {times}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
