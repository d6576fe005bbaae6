"""The page in a real browser: open, pick, move, strips, mix, heatmap, names, search, upload, keys, phone, from disk."""

import json

import numpy as np
import pytest
from phone import PHONE, SLIDERS, scroll_on_a_phone
from PIL import Image

from qlae._io import read_npz, write_npz
from qlae.explorer import open_run, save_page
from qlae.metrics import count_informative


def state(page, expression: str):
    """Something of the page's state."""
    return page.evaluate(f"qlae.state.{expression}")


def pixels(page, selector: str) -> list[int]:
    """The pixels of a canvas, red, green, blue, alpha."""
    script = "canvas => [...canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data]"
    return page.locator(selector).first.evaluate(script)


def shows(page, selector: str, picture) -> None:
    """Wait until a canvas shows a picture (r, r, 3)."""
    alpha = np.full((*picture.shape[:2], 1), 255, np.uint8)
    wanted = np.concatenate([picture, alpha], 2).ravel().tolist()
    page.wait_for_function(
        """([selector, wanted]) => {
            const canvas = document.querySelector(selector);
            const found = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
            return found.length === wanted.length && wanted.every((value, i) => value === found[i]);
        }""",
        arg=[selector, wanted],
    )


def shows_code(page, exploration) -> None:
    """Wait until the large picture is that of the code."""
    shows(page, "#decoded", exploration.decode(exploration.to_code(state(page, "code"))[None])[0])


@pytest.fixture
def page(exploration, serve, open_page):
    return open_page(serve(exploration))


@pytest.mark.smoke
def test_open(page, exploration):
    row = state(page, "sample.row")
    assert page.title() == "run · qlae explorer"
    scores = exploration.results["averaged"]
    header = f"InfoM {scores['infom']:.2f} informative {count_informative(scores)} "
    header += f"InfoE {scores['infoe']:.2f} InfoC {scores['infoc']:.2f}"
    assert " ".join(page.locator("#scores").inner_text().split()) == f"{header} PSNR {scores['psnr']:.1f} dB"
    shows(page, "#original", exploration.pictures([row])[0])
    shows(page, "#decoded", exploration.decode(exploration.codes[[row]])[0])
    assert page.locator(".latent").count() == 4
    control = exploration.controls[0]
    card = page.locator(".latent[data-latent='0']")
    assert card.locator(".tick").count() == control.num_values
    places = card.locator(".tick").evaluate_all(
        "ticks => ticks.map(tick => Number(tick.style.getPropertyValue('--p')))"
    )
    values = np.sort(control.values)
    np.testing.assert_allclose(places, (values - values[0]) / (values[-1] - values[0]), atol=1e-6)
    if control.active and control.nmi is not None:
        name = exploration.results["data"]["source_names"][control.source]
        assert card.locator("h3").inner_text() == f"z0 {name}"
        assert card.locator(".nmi").inner_text() == f"NMI {control.nmi:.2f}"
    for control in exploration.controls:
        is_grey = "inactive" in page.locator(f".latent[data-latent='{control.index}']").get_attribute("class")
        assert is_grey is not control.active
    for j, code in enumerate(state(page, "code")):  # the numbers that tables of codes contain
        assert page.locator(f".latent[data-latent='{j}'] .value").inner_text() == f"code {code}"
    assert page.locator(".tick.dead").count() == sum(c.num_values - c.num_used for c in exploration.controls)


def test_pick(page, exploration):
    first = state(page, "sample.row")
    page.click("#random")
    page.wait_for_function(f"() => qlae.state.sample.row !== {first}")
    shows(page, "#original", exploration.pictures([state(page, "sample.row")])[0])
    page.click("#open-browse")
    page.locator("#browse-thumbs .tile").nth(5).click()
    page.wait_for_selector("#browse:not([open])", state="hidden")
    shows_code(page, exploration)


@pytest.mark.smoke
def test_move_undo_reset(page, exploration):
    before = state(page, "code")
    slider = page.locator(SLIDERS).first
    box = slider.bounding_box()

    def click(share):
        page.mouse.click(box["x"] + share * box["width"], box["y"] + box["height"] - 12)

    click(0.05)
    click(0.95)
    if state(page, "code") == before:  # it was at that end
        click(0.05)
    moved = state(page, "code")
    assert moved != before
    shows_code(page, exploration)
    page.click("#undo")
    shows_code(page, exploration)
    page.click("#redo")
    assert state(page, "code") == moved
    page.click("#reset")
    assert state(page, "code") == before
    assert page.locator("#reset").is_disabled()
    shows_code(page, exploration)


def test_a_drag_is_undone_as_a_whole(page):
    before = state(page, "code")
    box = page.locator(SLIDERS).first.bounding_box()
    y = box["y"] + box["height"] - 12
    page.mouse.move(box["x"] + 12, y)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 12, y, steps=15)
    page.mouse.move(box["x"] + box["width"] / 2, y, steps=15)
    page.mouse.up()
    page.click("#undo")
    assert state(page, "code") == before


def test_copy_and_download(exploration, serve, open_page, tmp_path):
    page = open_page(serve(exploration), permissions=["clipboard-read", "clipboard-write"])
    page.click("#copy")
    page.wait_for_selector("#toast:not([hidden])")
    assert json.loads(page.evaluate("navigator.clipboard.readText()")) == state(page, "code")
    shows_code(page, exploration)
    with page.expect_download() as download:
        page.click("#download")
    download.value.save_as(tmp_path / "picture.png")
    saved = np.asarray(Image.open(tmp_path / "picture.png").convert("RGB"))
    assert saved.shape == (512, 512, 3)
    np.testing.assert_array_equal(
        saved[::32, ::32], exploration.decode(exploration.codes[[state(page, "sample.row")]])[0]
    )


def test_strips(page, exploration):
    j = next(control.index for control in exploration.controls if control.active)
    code, steps = state(page, "code"), exploration.controls[j].steps
    for i, step in enumerate(steps):
        moved = exploration.to_code([step if k == j else entry for k, entry in enumerate(code)])
        shows(page, f".latent[data-latent='{j}'] .tile:nth-child({i + 1}) canvas", exploration.decode(moved[None])[0])
    other = next(i for i, step in enumerate(steps) if step != code[j])
    page.locator(f".latent[data-latent='{j}'] .tile").nth(other).click()
    assert state(page, "code")[j] == steps[other]
    shows_code(page, exploration)


def test_mix(page, exploration):
    page.click("#tab-mix")
    page.wait_for_function("() => qlae.state.other !== null")
    mine, theirs = state(page, "sample.code"), state(page, "other.code")
    page.click("#mix-all-b")
    assert state(page, "code") == theirs
    j = next((k for k, (a, b) in enumerate(zip(mine, theirs, strict=True)) if a != b), 0)
    page.locator(f".mix-row[data-latent='{j}'] .tile").first.click()
    assert state(page, "code") == [mine[k] if k == j else b for k, b in enumerate(theirs)]
    shows_code(page, exploration)
    page.click("#mix-all-a")
    assert state(page, "code") == mine
    page.click("#mix-swap")
    assert (state(page, "sample.code"), state(page, "other.code")) == (theirs, mine)


def test_heatmap(page, exploration):
    cells = page.locator("#heatmap .cell")
    assert cells.count() == 2 * 4
    cells.nth(5).hover()  # shape, z1
    status = page.locator("#heatmap-status").inner_text()
    assert status.startswith(f"NMI of z1 and shape: {exploration.results['averaged']['nmi'][1][1]:.2f}")
    assert "highlighted" in page.locator(".latent[data-latent='1']").get_attribute("class")
    assert "highlighted" in page.locator("#about [data-source='1']").get_attribute("class")
    code = state(page, "code")
    cells.nth(5).click()
    page.wait_for_function(
        "() => !document.querySelector('.latent[data-latent=\"1\"]').matches('.highlighted')"
    )  # the sweep is over
    assert state(page, "code") == code
    shows_code(page, exploration)


def test_an_nmi_of_1_is_written_out(page):
    page.evaluate("() => { qlae.state.run.nmi[0][0] = 1; qlae.heatmap.start(); }")
    assert page.locator("#heatmap .cell").first.inner_text() == "1.00"


@pytest.mark.smoke
def test_names_and_reload(run_copy, serve, open_page):
    page = open_page(serve(open_run(run_copy, show=False)))
    page.locator(".latent[data-latent='2'] button[aria-label^='Name']").click()
    page.fill("#naming-latent", "<i>ground</i>")
    page.locator("#naming-values input").first.fill("red")
    page.keyboard.press("Enter")
    page.wait_for_selector("#naming", state="hidden")
    page.reload()
    page.wait_for_selector("html[data-ready]")
    assert page.locator(".latent[data-latent='2'] h3").inner_text() == "z2 <i>ground</i>"  # text, never markup
    assert page.locator(".latent[data-latent='2'] .caption").first.inner_text() == "red"
    assert json.loads((run_copy / "names.json").read_text())["latents"] == {"2": "<i>ground</i>"}


def test_a_refused_name_is_explained_in_the_dialog(run_copy, serve, browser):
    page = browser.new_page()  # the refusal is logged in the console, as it should be
    page.goto(serve(open_run(run_copy, show=False)))
    page.wait_for_selector("html[data-ready]")
    page.locator(".latent[data-latent='2'] button[aria-label^='Name']").click()
    page.fill("#naming-latent", "z1")
    page.keyboard.press("Enter")
    page.wait_for_selector("#naming-error")
    assert page.inner_text("#naming-error") == "'z1' stands for z1 in tables of codes; choose another name"
    page.fill("#naming-latent", "ground")
    first, second = (page.locator("#naming-values input").nth(i) for i in range(2))
    second.fill("red")
    page.keyboard.press("Enter")
    page.wait_for_selector("#naming", state="hidden")
    page.locator(".latent[data-latent='2'] button[aria-label^='Name']").click()
    assert page.is_hidden("#naming-error")
    second.fill("")
    first.fill("red")  # from one value to the other
    page.keyboard.press("Enter")
    page.wait_for_selector("#naming", state="hidden")
    assert list(json.loads((run_copy / "names.json").read_text())["values"]["2"].values()) == ["red"]
    page.close()


def test_find(page, exploration):
    page.click("#tab-find")
    page.wait_for_selector("#find-thumbs .tile")
    assert page.locator("#find-thumbs .caption").first.inner_text() == "same code"
    page.click("#tab-latents")
    page.locator(".latent[data-latent='0'] button[aria-label^='Find']").click()
    value = state(page, "code[0]")
    total = int((exploration.codes[:, 0] == value).sum())
    page.wait_for_function(
        f"() => document.getElementById('find-status').textContent.startsWith('{total} of 40 images')"
    )
    assert page.locator("#find-thumbs .tile").count() == total
    page.locator("#find-thumbs .tile").last.click()
    page.wait_for_function("() => qlae.state.sample.row !== null")
    assert state(page, "code[0]") == value


@pytest.mark.smoke
def test_upload(page, exploration, tiny_data, tmp_path):
    Image.fromarray(tiny_data.images[11]).save(tmp_path / "mine.png")
    page.set_input_files("#upload", tmp_path / "mine.png")
    page.wait_for_function("() => qlae.state.sample.row === null")
    assert state(page, "code") == exploration.model.encode(tiny_data.images[11:12])[0].tolist()
    shows(page, "#original", tiny_data.images[11])
    assert page.locator("#about").inner_text() == "your picture · mine.png"


def test_a_dropped_file_that_is_not_a_picture_is_an_error(exploration, serve, browser):
    page = browser.new_page()  # the refusal is logged in the console, as it should be
    page.goto(serve(exploration))
    page.wait_for_selector("html[data-ready]")
    page.evaluate(
        """() => {
            const transfer = new DataTransfer();
            transfer.items.add(new File(["no picture"], "x.png", { type: "image/png" }));
            const options = { dataTransfer: transfer, bubbles: true, cancelable: true };
            for (const kind of ["dragenter", "drop"]) document.body.dispatchEvent(new DragEvent(kind, options));
        }"""
    )
    page.wait_for_selector("#toast.error:not([hidden])")
    assert "cannot be read as a picture" in page.locator("#toast").inner_text()
    assert state(page, "sample.row") is not None
    page.close()


def test_keyboard(page, exploration):
    page.keyboard.press("j")
    first = page.evaluate("qlae.latents.focusedIndex()")
    stops = exploration.controls[first].order
    page.keyboard.press("Home")
    assert state(page, "code")[first] == stops[0]
    page.keyboard.press("ArrowRight")
    assert state(page, "code")[first] == stops[1]
    page.keyboard.press("End")
    assert state(page, "code")[first] == stops[-1]
    shows_code(page, exploration)
    page.keyboard.press("j")
    assert page.evaluate("qlae.latents.focusedIndex()") != first
    page.keyboard.press("k")
    assert page.evaluate("qlae.latents.focusedIndex()") == first
    page.keyboard.press("0")
    assert state(page, "changed") == []
    page.keyboard.press("Control+z")
    assert state(page, "changed") != []
    page.keyboard.press("2")
    assert page.locator("#panel-mix").is_visible()
    page.keyboard.press("1")
    page.keyboard.press("?")
    assert page.locator("#keys").is_visible()
    page.keyboard.press("Escape")
    assert page.locator("#keys").is_hidden()
    page.keyboard.press("b")
    page.wait_for_selector("#browse-thumbs .tile")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.wait_for_selector("#browse", state="hidden")


def test_every_control_can_be_reached_and_has_a_label(page):
    nameless = page.evaluate(
        """() => [...document.querySelectorAll("button, select, input, [role=slider]")]
            .filter((element) => element.checkVisibility() && !element.getAttribute("aria-label"))
            .filter((element) => !element.textContent.trim() && !element.labels?.length)
            .map((element) => element.outerHTML)"""
    )
    assert nameless == []
    seen = set()
    for _ in range(80):
        page.keyboard.press("Tab")
        seen.add(page.evaluate("document.activeElement.id || document.activeElement.getAttribute('aria-label') || ''"))
    assert {"random", "open-browse", "open-upload", "copy", "download", "tab-latents", "order"} <= seen
    assert len([name for name in seen if name.startswith("z")]) >= 4  # every slider


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_phone(exploration, serve, open_page, scheme):
    page = open_page(serve(exploration), **PHONE, color_scheme=scheme)
    scroll_on_a_phone(page)
    box = page.locator("#decoded").bounding_box()
    assert box["y"] >= 0  # the picture stays visible while the last latent is moved
    page.locator(SLIDERS).last.tap()
    shows_code(page, exploration)


def test_light_and_dark(page):
    colours = set()
    for _ in range(2):
        page.click("#theme")
        colours.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert len(colours) == 2


def test_continuous_latents_of_a_folder_without_sources(folder_path, serve, open_page):
    explored = open_run(folder_path, show=False)
    page = open_page(serve(explored))
    assert "No sources are known" in page.locator("#notice").inner_text()
    assert page.locator("#heatmap-card").is_hidden()
    box = page.locator(SLIDERS).first.bounding_box()
    page.mouse.click(box["x"] + 0.8 * box["width"], box["y"] + box["height"] - 12)
    assert len(state(page, "changed")) == 1
    shows_code(page, explored)
    page.click("#tab-find")
    page.wait_for_selector("#find-thumbs .tile")


@pytest.fixture(scope="module")
def vector_run(tmp_path_factory, tiny_data):
    from qlae.pipeline import train

    path = tmp_path_factory.mktemp("vectors") / "run"
    train("vq-vae", tiny_data, out=path, size="small", steps=2, batch_size=8, device="cpu", show=False)
    trained = open_run(path, show=False)
    codes = np.random.default_rng(0).integers(0, 5, trained.codes.shape)  # so short a training uses one vector only
    write_npz(trained.run.sample_path, **read_npz(trained.run.sample_path) | {"codes": codes})
    return open_run(path, show=False)


def test_vectors_are_picked_from_a_list(vector_run, serve, open_page):
    page = open_page(serve(vector_run))
    control = vector_run.controls[1]
    assert control.num_used == 5
    select = page.locator(f".latent[data-latent='{control.index}'] select")
    assert select.locator("option").count() == control.num_used
    page.keyboard.press("j")
    first = page.evaluate("qlae.latents.focusedIndex()")
    page.keyboard.press("j")  # from one list to the next
    assert page.evaluate("qlae.latents.focusedIndex()") != first
    other = next(code for code in control.order if code != state(page, "code")[control.index])
    select.select_option(str(other))
    assert state(page, "code")[control.index] == other
    shows_code(page, vector_run)


@pytest.mark.parametrize("kind", ["values", "range", "vectors"])
@pytest.mark.smoke
def test_a_saved_page_opens_from_disk_without_a_network(request, kind, tmp_path, open_page):
    explored = {
        "values": lambda: request.getfixturevalue("exploration"),
        "range": lambda: open_run(request.getfixturevalue("folder_path"), show=False),
        "vectors": lambda: request.getfixturevalue("vector_run"),
    }[kind]()
    path = save_page(explored, tmp_path / "page", num_samples=3, show=False)
    page = open_page(path.as_uri(), offline=True)
    assert "This saved page shows 3 samples and moves one latent at a time" in page.locator("#notice").inner_text()
    row = state(page, "sample.row")
    shows(page, "#original", explored.pictures([row])[0])
    control = max(explored.controls, key=lambda c: c.num_used)
    tiles = page.locator(f".latent[data-latent='{control.index}'] .tile")
    tiles.nth(tiles.count() - 1).click()
    shows_code(page, explored)
    other = next(c for c in explored.controls if c.index != control.index)
    page.locator(f".latent[data-latent='{other.index}'] .tile").last.click()
    assert len(state(page, "changed")) <= 1  # the first latent was restored
    shows_code(page, explored)
    page.click("#random")
    page.wait_for_function(f"() => qlae.state.sample.row !== {row}")
    assert page.locator("#tab-mix").is_hidden()
    assert page.locator("#open-upload").is_hidden()
