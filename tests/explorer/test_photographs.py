"""Photographs: their names, their originals, what changed, searches over several values, addresses, two runs."""

import io
import json

import numpy as np
import pytest
from explored_data import PHOTOS
from PIL import Image

from qlae.cli import main
from qlae.data import load_data
from qlae.explorer import Exploration, explore, open_run, save_page
from qlae.explorer.exploration import MAX_SIDE, Condition, Originals, find_matching
from qlae.explorer.server import build_app

ROWS = range(len(PHOTOS))


def state(page, expression: str):
    """Something of the page's state."""
    return page.evaluate(f"qlae.state.{expression}")


@pytest.fixture(scope="module")
def photo_api(photos, client):
    return client(photos)


def refused(response, status=400) -> str:
    assert response.status_code == status, response.text
    return response.json()["error"]


# ---- files


def test_samples_have_file_names(photo_api, photos):
    described = photo_api.get("/api/run").json()
    assert (described["has_files"], described["has_originals"]) == (True, True)
    samples = photo_api.get("/api/samples?rows=0,1,2,3").json()["samples"]
    assert [sample["file"] for sample in samples] == [photos.file_names[index] for index in photos.indices]
    assert samples[2] == photos.sample(2)
    assert {sample["file"] for sample in samples} == set(PHOTOS)


def test_originals_have_their_own_size(photo_api, photos):
    for row in ROWS:
        name = photos.sample(row)["file"]
        response = photo_api.get(f"/api/original/{row}")
        assert response.headers["content-type"] == ("image/jpeg" if name.endswith("jpg") else "image/png")
        assert response.headers["x-content-type-options"] == "nosniff"
        assert Image.open(io.BytesIO(response.content)).size == PHOTOS[name]


@pytest.mark.parametrize(
    "path", ["-1", "4", "x", "99999999999999999999", "..%2f..%2fsecret.txt", "secret.txt", "0/../../secret.txt"]
)
def test_no_other_file_is_served(photo_api, path):
    response = photo_api.get(f"/api/original/{path}")
    assert response.status_code in (400, 404), response.text
    assert b"not an image" not in response.content


def test_runs_without_files_have_no_originals(exploration, client):
    api = client(exploration)
    assert "are not files on this machine" in refused(api.get("/api/original/0"))
    assert "have no file names" in refused(api.post("/api/search", json={"file": "x"}))
    assert exploration.sample(0)["file"] is None


def test_large_originals_are_scaled_down_upright_and_without_metadata(tmp_path):
    image = Image.new("RGB", (5000, 3000), (200, 10, 10))
    exif = image.getexif()
    exif[0x0112] = 6  # rotated by 90°
    exif[0x010F] = "Camera"
    image.save(tmp_path / "large.jpg", exif=exif)
    content, media_type = Originals(tmp_path, ["large.jpg"]).read(0)
    shown = Image.open(io.BytesIO(content))
    assert media_type == "image/jpeg"
    assert max(shown.size) == MAX_SIDE
    assert shown.height > shown.width
    assert not dict(shown.getexif())


@pytest.mark.parametrize("change", ["removed", "damaged", "replaced"])
def test_an_original_that_is_gone(tmp_path, change):
    path = tmp_path / "a.png"
    Image.new("RGB", (9, 9)).save(path)
    files = Originals(tmp_path, ["a.png"])
    {
        "removed": path.unlink,
        "damaged": lambda: path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"\x00" * 50),
        "replaced": lambda: path.write_text("secret"),
    }[change]()
    with pytest.raises(ValueError, match=r"the original of a.png cannot be shown: \w+"):
        files.read(0)


@pytest.mark.parametrize("name", ["../outside.png", "/tmp/outside.png", "a/../../outside.png"])
def test_names_that_lead_out_of_the_data_set(tmp_path, name):
    (tmp_path / "album").mkdir()
    Image.new("RGB", (9, 9)).save(tmp_path / "outside.png")
    with pytest.raises(ValueError, match="its name leads out of the data set"):
        Originals(tmp_path / "album", [name]).read(0)


def test_a_data_set_that_is_gone(tmp_path):
    with pytest.raises(ValueError, match=r"the original of a.png cannot be shown"):
        Originals(tmp_path / "album.zip", ["a.png"]).read(0)


def test_originals_in_a_zip(tmp_path, monkeypatch):
    import zipfile

    monkeypatch.setenv("QLAE_CACHE", str(tmp_path / "cache"))
    with zipfile.ZipFile(tmp_path / "album.zip", "w") as archive:
        for i in range(3):
            file = io.BytesIO()
            Image.new("RGB", (20 + i, 30), (i * 50, 0, 0)).save(file, "PNG")
            archive.writestr(f"{i}.png", file.getvalue())
    from qlae.explorer.exploration import find_originals

    originals = find_originals(load_data(tmp_path / "album.zip", resolution=16))
    with pytest.raises(ValueError, match=r"the original of other.png cannot be shown: .* no item named"):
        Originals(originals.path, ["other.png"]).read(0)
    assert Image.open(io.BytesIO(originals.read(2)[0])).size == (22, 30)


def test_files_are_found_by_part_of_their_name(photo_api, photos):
    matches = photo_api.post("/api/search", json={"file": "BEACH"}).json()
    assert matches["total"] == 2
    assert all("beach" in photos.sample(row)["file"] for row in matches["rows"])
    exact = photo_api.post("/api/search", json={"file": "forest/02.png", "limit": 1}).json()
    assert [photos.sample(row)["file"] for row in exact["rows"]] == ["forest/02.png"]
    assert photo_api.post("/api/search", json={"file": "nothing"}).json() == {"rows": [], "distances": [], "total": 0}
    assert "length <= 200" in refused(photo_api.post("/api/search", json={"file": "x" * 201}))


def test_an_index_is_found(photo_api, photos):
    index = int(photos.indices[2])
    assert photo_api.post("/api/search", json={"index": index}).json()["rows"] == [2]
    for other in (-1, 99, 10**30):
        assert photo_api.post("/api/search", json={"index": other}).json()["rows"] == []


# ---- several values


def test_several_values_of_several_latents():
    codes = np.array([[0, 1], [1, 1], [2, 0], [1, 2], [2, 1]])
    assert find_matching(codes, [Condition(0, [1, 2])], 9).rows == [1, 2, 3, 4]
    assert find_matching(codes, [Condition(0, [1, 2]), Condition(1, [1])], 9).rows == [1, 4]
    few = find_matching(codes, [Condition(0, [0, 1, 2])], 2)
    assert (few.rows, few.total) == ([0, 4], 5)
    assert find_matching(codes, [Condition(0, [0]), Condition(0, [1])], 9).rows == []
    latents = np.array([[0.0, 5.0], [1.0, 5.0], [2.0, 7.0]])
    assert find_matching(latents, [Condition(0, low=0.5, high=2.0), Condition(1, low=4.0, high=6.0)], 9).rows == [1]


def test_conditions_are_checked(exploration, client):
    api = client(exploration)
    found = api.post("/api/search", json={"where": [{"latent": 0, "values": [0, 1]}, {"latent": 2, "values": [3]}]})
    expected = np.isin(exploration.codes[:, 0], [0, 1]) & (exploration.codes[:, 2] == 3)
    assert found.json()["total"] == expected.sum()
    for where, message in (
        ([], "body.where is wrong (Expected a list of length >= 1)"),
        ("x", "where must be a list"),
        ([5], "body.where[0] must be an object, got 5"),
        ([{"values": [0]}], "body.where[0] is incomplete: it has no 'latent'"),
        ([{"latent": 0}], "a condition on z0 must have values"),
        ([{"latent": 0, "values": []}], "body.where[0].values is wrong"),
        ([{"latent": 0, "values": ["x"]}], "values[0] must be int or float"),
        ([{"latent": 0, "values": [5]}], "from 0 to 4, got 5"),
        ([{"latent": 9, "values": [0]}], "latents run from 0 to 3, got 9"),
        ([{"latent": 0, "low": 0, "high": 1}], "must have values"),
    ):
        assert message in refused(api.post("/api/search", json={"where": where}))


def test_ranges_of_continuous_latents(folder_path, client):
    explored = open_run(folder_path, show=False)
    api = client(explored)
    low, high = np.quantile(explored.codes[:, 1], [0.2, 0.6]).tolist()
    found = api.post("/api/search", json={"where": [{"latent": 1, "low": low, "high": high}]}).json()
    assert found["total"] == ((explored.codes[:, 1] >= low) & (explored.codes[:, 1] <= high)).sum()
    assert "must have low and high" in refused(api.post("/api/search", json={"where": [{"latent": 1, "low": 0}]}))


# ---- the page


@pytest.fixture
def page(photos, serve, open_page):
    return open_page(serve(photos), viewport={"width": 1920, "height": 1080})


def test_the_original_is_shown_beside_what_the_model_sees(page, photos):
    name = state(page, "sample.file")
    assert name in page.locator("#about").inner_text()
    page.wait_for_function("() => document.getElementById('photo').naturalWidth > 0")
    assert page.evaluate("(({ naturalWidth: w, naturalHeight: h }) => [w, h])(document.getElementById('photo'))") == [
        *PHOTOS[name]
    ]
    page.wait_for_selector("#photo-caption:not(:empty)")
    assert page.inner_text("#photo-caption") == "{}×{} pixels".format(*PHOTOS[name])
    assert page.inner_text("#original-caption") == "what the model sees"
    page.click("#full-size")
    assert page.inner_text("#photo-title") == name
    assert page.locator("#photo-seen").evaluate("canvas => canvas.width") == 16
    page.keyboard.press("Escape")


def test_pictures_are_large(photos, serve, open_page):
    wide = open_page(serve(photos), viewport={"width": 1920, "height": 1080})
    assert wide.locator("#decoded").bounding_box()["width"] > 280
    phone = open_page(serve(photos), viewport={"width": 390, "height": 844}, is_mobile=True, has_touch=True)
    assert phone.locator("#decoded").bounding_box()["width"] > 170


def test_names_in_browse_and_find(page):
    page.click("#open-browse")
    page.locator("#browse-thumbs .tile").nth(3).wait_for()
    assert set(page.locator("#browse-thumbs .caption.file").all_inner_texts()) == set(PHOTOS)
    page.fill("#browse-filter", "img 2")
    page.wait_for_selector("#browse-status:not(:empty)")
    assert page.inner_text("#browse-status") == "1 name contains “img 2”."
    page.wait_for_function("() => document.querySelectorAll('#browse-thumbs .tile').length === 1")
    assert page.locator("#browse-thumbs .tile").get_attribute("title") == "beach/IMG 2.jpg"
    page.locator("#browse-thumbs .tile").click()
    page.wait_for_function("() => qlae.state.sample.file === 'beach/IMG 2.jpg'")
    page.click("#tab-find")
    page.wait_for_selector("#find-thumbs .caption.file")
    assert set(page.locator("#find-thumbs .caption.file").all_inner_texts()) == set(PHOTOS)


def test_an_upload_shows_its_own_original(page, tmp_path):
    Image.new("RGB", (70, 50), (9, 99, 9)).save(tmp_path / "mine.png")
    page.set_input_files("#upload", tmp_path / "mine.png")
    page.wait_for_function("() => document.getElementById('photo').naturalWidth === 70")
    assert state(page, "sample.row") is None
    assert "index" not in page.evaluate("location.hash")


def alpha(page, selector: str) -> np.ndarray:
    """How opaque the pixels of a canvas are."""
    script = "canvas => [...canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data]"
    return np.array(page.locator(selector).first.evaluate(script)).reshape(-1, 4)[:, 3]


def test_changes_are_highlighted(exploration, serve, open_page):
    page = open_page(serve(exploration))
    page.wait_for_selector("#latency:not(:empty)")
    assert (alpha(page, "#decoded") == 255).all()
    page.click("#highlight")
    assert alpha(page, "#decoded").max() < 60  # nothing has changed yet
    control = max(exploration.controls, key=lambda c: c.num_used)
    before = state(page, "code")
    for tile in page.locator(f".latent[data-latent='{control.index}'] .tile").all():
        tile.click()
        page.wait_for_timeout(300)
        start, now = exploration.decode(np.stack([exploration.to_code(c) for c in (before, state(page, "code"))]))
        change = np.abs(now.astype(int) - start).max(-1).ravel()
        opacity = alpha(page, "#decoded")
        assert (opacity[change >= 40] == 255).all()
        assert (opacity[change == 0] < 60).all()
    page.keyboard.press("h")
    assert (alpha(page, "#decoded") == 255).all()


@pytest.mark.smoke
def test_the_address_restores_the_view(photos, serve, open_page):
    address = serve(photos)
    page = open_page(address)
    page.evaluate("() => { qlae.state.sample = null; }")  # the page may have begun with the sample that is chosen here
    page.click("#open-browse")
    page.locator("#browse-thumbs .tile[title='forest/02.png']").click()
    page.wait_for_function("() => qlae.state.sample?.file === 'forest/02.png'")
    code = [(value + 1) % 3 for value in state(page, "code")]
    page.evaluate("(code) => qlae.state.set(code)", code)
    page.click("#highlight")
    page.click("#tab-find")
    page.click("#by-value")
    page.locator(".value-chip[aria-pressed=false]").first.click()
    page.wait_for_function("() => location.hash.includes('where=')")
    page.wait_for_timeout(400)
    shared = page.url
    assert "file=forest/02.png" in shared
    assert "code=" in shared, shared
    where = page.evaluate("qlae.search.where()")
    status = page.inner_text("#find-status")
    for again in (open_page(shared), page):
        again.reload()
        again.wait_for_selector("html[data-ready]")
        assert state(again, "sample.file") == "forest/02.png"
        assert state(again, "code") == code
        assert again.evaluate("qlae.currentTab()") == "find"
        assert again.evaluate("qlae.search.where()") == where
        assert again.locator("#highlight").get_attribute("aria-pressed") == "true"
        again.wait_for_function(f"() => document.getElementById('find-status').textContent === {json.dumps(status)}")


def test_the_address_of_a_saved_page(photos, tmp_path, open_page):
    path = save_page(photos, tmp_path / "page", num_samples=4, show=False)
    page = open_page(f"{path.as_uri()}#file=forest/02.png", offline=True)
    assert state(page, "sample.file") == "forest/02.png"
    assert page.locator("#photo-figure").is_hidden()
    page.click("#open-browse")
    page.fill("#browse-filter", "beach")
    page.wait_for_function("() => document.querySelectorAll('#browse-thumbs .tile').length === 2")


@pytest.mark.parametrize(
    "part",
    [
        "index=999",
        "file=../x&index=-1",
        "code=9,9,9",
        "code=1",
        "tab=x",
        "where=9:1",
        "where=0:~",
        "%00&=&#",
        "code=NaN,0,0",
    ],
)
def test_an_address_that_means_nothing(photos, serve, open_page, part):
    page = open_page(f"{serve(photos)}#{part}")
    assert state(page, "sample.row") is not None
    assert state(page, "changed") == []
    page.click("#tab-find")
    page.wait_for_selector("#find-thumbs .tile")


def test_a_search_over_several_values(exploration, serve, open_page):
    page = open_page(serve(exploration))
    page.locator(".latent[data-latent='1'] button[aria-label^='Find']").click()
    page.wait_for_selector("#find-thumbs .tile")
    page.locator(".value-chip[aria-pressed=false]").first.click()
    page.click("#add-condition")
    where = page.evaluate("qlae.search.where()")
    assert [len(condition["values"]) for condition in where] == [2, 1]
    total = np.all([np.isin(exploration.codes[:, c["latent"]], c["values"]) for c in where], axis=0).sum()
    page.wait_for_function(
        f"() => document.getElementById('find-status').textContent.startsWith('{total} of 40 images match')"
    )
    assert page.locator("#find-thumbs .tile").count() == total
    page.locator("button[aria-label='Remove this condition']").last.click()
    assert len(page.evaluate("qlae.search.where()")) == 1


# ---- two runs


@pytest.fixture(scope="module")
def other(photos_path) -> Exploration:
    return open_run(photos_path.parent / "other", show=False)


def test_two_runs_have_pages_of_their_own(photos, other, client):
    from starlette.testclient import TestClient

    api = TestClient(build_app(photos, other), base_url="http://127.0.0.1:8642", raise_server_exceptions=False)
    assert api.get("/a/api/run").json()["run"] == "run"
    assert api.get("/b/api/run").json()["run"] == "other"
    assert "frame-ancestors 'self'" in api.get("/a/").headers["content-security-policy"]
    assert api.get("/api/run").status_code == 404
    assert "rows run from" in refused(api.get("/b/api/samples?rows=99"))
    for path in ("/a/", "/b/api/run"):
        assert api.get(path, headers={"host": "evil.example"}).status_code == 403
        assert api.get(path, headers={"sec-fetch-site": "cross-site"}).status_code == 403
    assert "frame-ancestors 'none'" in client(photos).get("/").headers["content-security-policy"]


@pytest.mark.smoke
def test_two_runs_side_by_side_show_the_same_sample(photos, other, serve, browser):
    page = browser.new_page(viewport={"width": 1920, "height": 1000})
    problems = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(serve(photos, other))
    for name in "ab":
        page.frame_locator(f"#frame-{name}").locator("html[data-ready]").wait_for()
    first, second = (next(f for f in page.frames if f.url.split("#")[0].endswith(f"/{name}/")) for name in "ab")
    for frame, follower in ((first, second), (second, first)):
        before = frame.evaluate("qlae.state.sample.index")
        frame.click("#random")
        frame.wait_for_function(f"() => qlae.state.sample.index !== {before}")
        index = frame.evaluate("qlae.state.sample.index")
        follower.wait_for_function(f"() => qlae.state.sample.index === {index}")
    page.uncheck("#together")
    kept = second.evaluate("qlae.state.sample.index")
    first.click("#random")
    first.wait_for_function(f"() => qlae.state.sample.index !== {kept}")
    page.wait_for_timeout(400)
    assert second.evaluate("qlae.state.sample.index") == kept
    page.reload()  # the address of the page has both views
    page.frame_locator("#frame-b").locator("html[data-ready]").wait_for()
    assert "a=" in page.url
    assert problems == []
    page.close()


def test_runs_of_other_data_are_refused(photos_path, run_path):
    with pytest.raises(ValueError, match=r"must have the same data: the name is album and .*shapes3d"):
        explore(photos_path, run_path, browser=False, show=False)


def test_a_page_for_disk_has_one_run(photos_path, tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["explore", str(photos_path), str(photos_path.parent / "other"), "--export", str(tmp_path / "page")])
    assert "--export writes the page of one run" in capsys.readouterr().err
