"""The page of vectors and of series in a real browser: charts, moves, strips, mix, find, names, uploads, from disk."""

import csv
import io
import json

import numpy as np
import pytest
from explored_data import flowers, waves
from phone import PHONE, SLIDERS, scroll_on_a_phone

from qlae.explorer import open_run, save_page

NAMES = ["width, cm", "height", "area <b>", "constant"]


def state(page, expression: str):
    """Something of the page's state."""
    return page.evaluate(f"qlae.state.{expression}")


def decoded(page, exploration) -> np.ndarray:
    """What the model decodes from the code of the page."""
    return exploration.decode(exploration.to_code(state(page, "code"))[None])[0]


def as_number(text: str) -> float:
    return float(text.replace("−", "-"))


def shows_numbers(page, exploration) -> None:
    """Wait until the chart lists the decoded numbers of the code, to the digits that it shows."""
    wanted = decoded(page, exploration).tolist()
    page.wait_for_function(
        """(wanted) => wanted.every((number, i) =>
            document.querySelector(`.feature[data-feature="${i}"] .number.decoded`).textContent
                === qlae.view.format(i, number))""",
        arg=wanted,
    )


def shows_curves(page, exploration) -> None:
    """Wait until the chart draws the decoded series of the code."""
    wanted = decoded(page, exploration)
    page.wait_for_function(
        """(wanted) => wanted.every((numbers, channel) => {
            const path = document.querySelector(`[data-channel="${channel}"] .curve.decoded`);
            if (!path) return false;
            const ys = path.getAttribute("d").split(/[ML]/).slice(1).map((pair) => Number(pair.split(" ")[1]));
            const scale = (list) => list.map((y) => (y - Math.min(...list)) / (Math.max(...list) - Math.min(...list)));
            const [drawn, expected] = [scale(ys), scale(numbers.map((number) => -number))];
            const span = Math.max(...ys) - Math.min(...ys);
            const isNear = (y, i) => Math.abs(y - drawn[i]) < 0.02 + 0.05 / span;
            return ys.length === numbers.length && expected.every(isNear);
        })""",
        arg=wanted.T.astype(float).tolist(),
    )


def move(page, share: float) -> None:
    """Click on the first slider."""
    box = page.locator(SLIDERS).first.bounding_box()
    page.mouse.click(box["x"] + share * box["width"], box["y"] + box["height"] - 12)


@pytest.fixture
def vector_page(vectors, serve, open_page):
    return open_page(serve(vectors))


@pytest.fixture
def series_page(series, serve, open_page):
    return open_page(serve(series))


def test_features_are_listed_with_names_and_numbers(vector_page, vectors):
    page = vector_page
    assert page.locator("#facts").inner_text() == "qlae · flowers, real, 4 features · 200 updates"
    assert page.locator(".feature-name").all_inner_texts() == NAMES  # text, never markup
    original = flowers()[state(page, "sample.index")]
    shown = [as_number(text) for text in page.locator(".feature .number:not(.decoded)").all_inner_texts()]
    np.testing.assert_allclose(shown, original, atol=0.5)
    assert abs(shown[0] - original[0]) < 0.006  # as many digits as the range needs
    shows_numbers(page, vectors)
    assert "Find vectors" in page.locator("#tab-find").inner_text()


@pytest.mark.smoke
def test_moving_a_latent_changes_the_numbers(vector_page, vectors):
    page = vector_page
    before = state(page, "code")
    move(page, 0.05)
    move(page, 0.95)
    if state(page, "code") == before:
        move(page, 0.05)
    shows_numbers(page, vectors)
    start = vectors.decode(vectors.to_code(before)[None])[0]
    changes = np.abs(decoded(page, vectors) - start) / np.asarray(vectors.model.observations.scale)
    marked = [int(row.get_attribute("data-feature")) for row in page.locator(".feature.changed").all()]
    assert marked == [i for i, change in enumerate(changes) if change > 0.1]
    page.select_option("#feature-order", "change")
    first = page.locator("#features .feature").first.get_attribute("data-feature")
    assert int(first) == int(changes.argmax())
    page.click("#reset")
    shows_numbers(page, vectors)
    assert page.locator(".feature.changed").count() == 0


def test_the_strip_is_a_heatmap_of_the_features_that_change(vector_page, vectors):
    page = vector_page
    j = next(control.index for control in vectors.controls if control.active)
    card = page.locator(f".latent[data-latent='{j}']")
    card.locator(".heat-names span").first.wait_for()
    code, steps = state(page, "code"), vectors.controls[j].steps
    codes = np.stack([vectors.to_code([step if k == j else entry for k, entry in enumerate(code)]) for step in steps])
    spread = np.ptp(vectors.decode(codes), axis=0) / np.asarray(vectors.model.observations.scale)
    names = card.locator(".heat-names span").all_inner_texts()
    assert names[0] == NAMES[int(spread.argmax())]
    assert sorted(names) == sorted(NAMES)
    assert card.locator(".heat").first.locator("rect").count() == 4
    other = next(i for i, step in enumerate(steps) if step != code[j])
    card.locator(".tile").nth(other).click()
    assert state(page, "code")[j] == steps[other]
    shows_numbers(page, vectors)


def test_a_sweep_ends_where_it_began(vector_page, vectors):
    page = vector_page
    code = state(page, "code")
    page.locator(".latent button[aria-label^='Sweep']").first.click()
    page.wait_for_function("() => !document.querySelector('.latent.highlighted')")
    assert state(page, "code") == code
    shows_numbers(page, vectors)


@pytest.mark.parametrize("kind", ["vectors", "series"])
def test_mix_and_find(request, kind, serve, open_page):
    explored = request.getfixturevalue(kind)
    page = open_page(serve(explored))
    page.click("#tab-mix")
    page.wait_for_function("() => qlae.state.other !== null")
    page.click("#mix-all-b")
    assert state(page, "code") == state(page, "other.code")
    page.wait_for_selector(".mix-row .picture path[d]", state="attached")
    page.click("#tab-find")
    page.wait_for_selector("#find-thumbs .tile")
    page.locator("#find-thumbs .tile").last.click()
    page.wait_for_function("() => qlae.state.changed.length === 0")
    page.click("#open-browse")
    page.locator("#browse-thumbs .tile").nth(3).click()
    page.wait_for_selector("#browse", state="hidden")


def test_a_row_can_be_edited_and_encoded(vectors, serve, browser):
    page = browser.new_page()  # refusals are logged in the console, as they should be
    page.goto(serve(vectors))
    page.wait_for_selector("html[data-ready]")
    page.click("#open-upload")
    shown = list(csv.reader(io.StringIO(page.input_value("#numbers-text"))))
    assert shown[0] == NAMES
    np.testing.assert_array_equal(np.array(shown[1], float), flowers()[state(page, "sample.index")])
    page.fill("#numbers-text", "1, 2, 3")
    page.click("#numbers-form button[type=submit]")
    page.wait_for_selector("#numbers-error")
    assert "this model takes 4 numbers" in page.inner_text("#numbers-error")
    row = flowers()[11]
    page.fill("#numbers-text", " ".join(map(str, row.tolist())))
    page.click("#numbers-form button[type=submit]")
    page.wait_for_selector("#numbers", state="hidden")
    assert state(page, "sample.row") is None
    assert state(page, "code") == vectors.model.encode(row[None])[0].tolist()
    assert page.locator("#about").inner_text() == "your row"
    shows_numbers(page, vectors)
    page.close()


def test_a_file_of_numbers(series_page, series, tmp_path):
    page = series_page
    one = waves()[8]
    np.savetxt(tmp_path / "mine.csv", one, delimiter=",", header="position,level", comments="")
    page.set_input_files("#upload", tmp_path / "mine.csv")
    page.wait_for_function("() => qlae.state.sample.row === null")
    assert state(page, "code") == series.model.encode(one[None])[0].tolist()
    assert page.locator("#about").inner_text() == "your series · mine.csv"
    shows_curves(page, series)


@pytest.mark.smoke
def test_curves_follow_the_code(series_page, series):
    page = series_page
    assert page.locator(".panels .panel-name").all_inner_texts() == ["position", "level"]
    shows_curves(page, series)
    assert page.locator(".panels .curve.original").count() == 2
    assert page.locator(".panels .curve.start").count() == 0
    before = state(page, "code")
    move(page, 0.05)
    move(page, 0.95)
    if state(page, "code") == before:
        move(page, 0.05)
    shows_curves(page, series)
    page.wait_for_function("() => document.querySelectorAll('.panels .curve.start').length === 2")
    page.click("#reset")
    page.wait_for_function("() => document.querySelectorAll('.panels .curve.start').length === 0")
    area = page.locator(".panel-area").first.bounding_box()
    page.mouse.move(area["x"] + area["width"] - 1, area["y"] + 20)
    number = page.evaluate("qlae.view.format(0, qlae.state.sample.picture[23 * 2])")
    assert page.inner_text("#series-status").startswith(f"position at step 23: {number}, decoded ")


def test_the_curves_of_a_latents_values_lie_over_each_other(series_page, series):
    page = series_page
    control = next(control for control in series.controls if control.active)
    card = page.locator(f".latent[data-latent='{control.index}']")
    card.locator(".fan path").first.wait_for(state="attached")
    drawings = card.locator(".fan-panel")
    assert 1 <= drawings.count() <= 2
    assert drawings.first.locator("path").count() == len(control.steps)
    step = control.steps.index(state(page, "code")[control.index])
    assert drawings.first.locator("path.marked").get_attribute("data-step") == str(step)


@pytest.mark.parametrize("kind", ["vectors", "series"])
def test_numbers_are_downloaded_as_csv(request, kind, serve, open_page, tmp_path):
    explored = request.getfixturevalue(kind)
    page = open_page(serve(explored))
    (shows_numbers if kind == "vectors" else shows_curves)(page, explored)
    with page.expect_download() as download:
        page.click("#download")
    download.value.save_as(tmp_path / "decoded.csv")
    with (tmp_path / "decoded.csv").open(newline="") as file:
        names, *rows = list(csv.reader(file))
    assert names == list(explored.model.observations.names)
    wanted = decoded(page, explored).reshape(-1, len(names))
    np.testing.assert_allclose(np.array(rows, float), wanted, rtol=1e-6, atol=1e-6)


def test_names_of_values(table_path, tmp_path, serve, open_page):
    import shutil

    copy = shutil.copytree(table_path, tmp_path / "run")
    page = open_page(serve(open_run(copy, show=False)))
    page.locator(".latent[data-latent='1'] button[aria-label^='Name']").click()
    page.fill("#naming-latent", "size")
    page.locator("#naming-values input").first.fill("small")
    page.keyboard.press("Enter")
    page.wait_for_selector("#naming", state="hidden")
    assert page.locator(".latent[data-latent='1'] h3").inner_text() == "z1 size"
    assert json.loads((copy / "names.json").read_text())["latents"] == {"1": "size"}


@pytest.mark.parametrize("kind", ["vectors", "series"])
def test_a_saved_page_opens_from_disk(request, kind, tmp_path, open_page):
    explored = request.getfixturevalue(kind)
    path = save_page(explored, tmp_path / "page", num_samples=3, show=False)
    page = open_page(path.as_uri(), offline=True)
    shows = shows_numbers if kind == "vectors" else shows_curves
    shows(page, explored)
    control = max(explored.controls, key=lambda c: c.num_used)
    page.locator(f".latent[data-latent='{control.index}'] .tile").last.click()
    shows(page, explored)
    assert page.locator("#open-upload").is_hidden()


@pytest.mark.parametrize("kind", ["vectors", "series"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_has_room(request, kind, scheme, serve, open_page):
    explored = request.getfixturevalue(kind)
    page = open_page(serve(explored), **PHONE, color_scheme=scheme)
    scroll_on_a_phone(page)
    box = page.locator("#stage-pictures").bounding_box()
    assert 0 <= box["y"] < 5  # the chart stays visible while the last latent is moved
    assert box["height"] < 450


def test_many_features_can_be_filtered(vectors, serve, open_page):
    """A model of more features than are listed, made from the description of another."""
    page = open_page(serve(vectors))
    page.wait_for_load_state("networkidle")  # the page has drawn what it shows first
    page.evaluate("() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))")
    page.evaluate(
        """() => {
            const count = 200, list = (value) => Array.from({ length: count }, (_, i) => value(i));
            const box = qlae.find("stage-pictures");
            box.replaceChildren();
            const view = new qlae.views.vectors({ kind: "vectors", type: "float64", names: list((i) => `f${i}`),
                mean: list(() => 0), deviation: list(() => 1), low: list(() => -1), high: list(() => 1) });
            view.startStage(box);
            const start = new Float64Array(count), decoded = start.slice();
            decoded[150] = 0.9;
            view.show({ original: start, decoded, start, isSettled: true });
        }"""
    )
    assert page.locator("#features .feature").count() == 60
    assert page.locator("#features-more").inner_text() == "60 of 200 features are listed."
    assert page.locator("#features .feature").first.inner_text().startswith("f150")
    page.fill("#feature-filter", "F199")
    assert page.locator("#features .feature").count() == 1
