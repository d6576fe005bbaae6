"""Measure in Chromium how long a picture takes after a latent was moved.

    python benchmarks/explorer_latency.py shapes3d-qlae runs/sensors runs/pendulum

The time runs from the input event to the frame that shows the new picture, with the real server. It is measured for
slow key presses, with pauses in which the strips are redrawn, for quick key presses, and for a drag. Each line has the
median, the 95th percentile and the maximum in milliseconds. playwright and a Chromium are needed (`make dev chromium`).
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from playwright.sync_api import Browser, Page, sync_playwright

sys.path.append(str(Path(__file__).parents[1] / "tests" / "explorer"))
from chromium import find_chromium


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", metavar="RUN", help="run directories, or models that come with qlae")
    options = parser.parse_args()
    chromium = find_chromium()
    if chromium is None:
        parser.error("no Chromium found; `make chromium` installs it on Debian")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for run in options.runs:
            measure(run, browser)
        browser.close()


def measure(run: str, browser: Browser) -> None:
    """Serve a run, move its first latent, and print medians and tails."""
    command = [sys.executable, "-m", "qlae", "explore", run, "--port", "0", "--no-browser", "--quiet"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            address = server.stdout.readline().split(" at ")[1].split()[0]
            page = browser.new_page(viewport={"width": 1280, "height": 800})
            page.goto(address)
            page.wait_for_selector("html[data-ready]")
            time.sleep(2)
            print(f"{run} (load of the machine: {os.getloadavg()[0]:.1f})", flush=True)
            press(page, times=40, pause=0.6, title="keys, one every 0.6 s")
            press(page, times=60, pause=0.12, title="keys, one every 0.12 s")
            drag(page)
            page.close()
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
    if not latencies.size:
        print(f"  {title}: no picture was drawn", flush=True)
        return
    times = ", ".join(f"{value:.0f}" for value in (*np.percentile(latencies, [50, 95]), latencies.max()))
    print(f"  {title}: {times} ms, {latencies.size} pictures", flush=True)


if __name__ == "__main__":
    main()
