"""The page of a study in a browser: it fits desktops and phones, and its dots link to runs."""

import shutil

import pytest

from qlae.study.report import report_study

pytestmark = pytest.mark.slow

OVERFLOWING = """() => [...document.querySelectorAll("body *")]
    .filter(e => !e.closest(".wide") && !e.closest("svg") && e.getBoundingClientRect().right > innerWidth + 1)
    .map(e => e.outerHTML.slice(0, 80))"""


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="browser tests left out: pip install playwright")
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if path is None:
        pytest.skip("there is no Chromium to open the page in")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_overflows_and_nothing_is_logged(folder, browser, width):
    path = report_study(folder, show=False).resolve()
    page = browser.new_page(viewport={"width": width, "height": 800})
    messages = []
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.goto(path.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert page.evaluate(OVERFLOWING) == []
    assert messages == []
    dots = page.locator("#seeds a")
    assert dots.count() == 2 * 7 * 9 + 2 * 3  # data sets × scores × runs, and the second InfoE of three runs
    target = path.parent / dots.first.get_attribute("href")
    assert (target / "results.json").is_file()
    page.close()
