"""The explorer's API: valid requests are answered, others are refused with a clear message, none stops the server."""

import base64
import io
import json
import zlib

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from qlae.explorer import open_run
from qlae.explorer.observation_views import MAX_UPLOAD_BYTES, ImageView
from qlae.explorer.page import SCRIPTS
from qlae.explorer.server import MAX_JSON_BYTES, MAX_PICTURES
from qlae.observations import Observations


def pictures(response, side=16):
    assert response.status_code == 200, response.text
    return np.frombuffer(response.content, np.uint8).reshape(-1, side, side, 3)


def refused(response, status=400) -> str:
    assert response.status_code == status, response.text
    return response.json()["error"]


def png(pixels) -> bytes:
    file = io.BytesIO()
    Image.fromarray(np.asarray(pixels, np.uint8)).save(file, format="PNG")
    return file.getvalue()


def test_the_page_and_its_parts(api):
    page = api.get("/")
    assert page.status_code == 200
    assert page.headers["content-type"].startswith("text/html")
    for name in ("style.css", "icon.svg", *SCRIPTS):
        assert name in page.text
        assert api.get(f"/{name}").status_code == 200
    assert "http://" not in page.text.replace("http://www.w3.org", "")
    assert "https://" not in page.text


def test_it_describes_the_run(api, exploration):
    answer = api.get("/api/run").json()
    assert answer == json.loads(json.dumps(exploration.describe()))
    assert answer["model"] == "qlae"
    assert answer["source_names"] == ["floor hue", "shape"]


def test_a_sample_and_its_image(api, exploration, tiny_data):
    (answer,) = api.get("/api/samples?rows=7").json()["samples"]
    assert answer["code"] == exploration.codes[7].tolist()
    assert answer["sources"] == tiny_data.sources[answer["index"]].tolist()
    np.testing.assert_array_equal(pictures(api.get("/api/images?rows=7,3")), exploration.pictures([7, 3]))


def test_decoding(api, exploration):
    codes = exploration.codes[:3].tolist()
    expected = exploration.model.decode(exploration.codes[:3])
    np.testing.assert_array_equal(pictures(api.post("/api/decode", json={"codes": codes})), expected)


def test_a_picture_of_the_users_own(api, exploration, tiny_data):
    answer = api.post("/api/encode", content=png(tiny_data.images[9])).json()
    assert answer["code"] == exploration.model.encode(tiny_data.images[9:10])[0].tolist()
    seen = np.frombuffer(base64.b64decode(answer["picture"]), np.uint8).reshape(16, 16, 3)
    np.testing.assert_array_equal(seen, tiny_data.images[9])


def test_any_size_and_kind_of_picture_is_fitted(api):
    for shape in ((3, 50, 3), (7, 7), (40, 20, 4)):
        assert api.post("/api/encode", content=png(np.full(shape, 99))).status_code == 200


@pytest.mark.parametrize(("shape", "dtype"), [((10, 30, 3), "uint8"), ((30, 10, 1), "uint8"), ((12, 12, 1), "float32")])
def test_uploads_for_images_that_are_not_square_or_bytes(shape, dtype):
    """A picture with a red and a blue half is scaled to the model's shape, with both halves, in its units."""
    observations = Observations("images", shape, dtype, (), *([()] * 2 if dtype == "uint8" else [(-1.0,), (2.0,)]))
    wide = shape[1] >= shape[0]
    picture = np.zeros((50, 100, 3) if wide else (100, 50, 3), np.uint8)
    halves = (picture[:, :50], picture[:, 50:]) if wide else (picture[:50], picture[50:])
    halves[0][...], halves[1][...] = (255, 0, 0), (255, 255, 255)
    observation, note = ImageView(observations).read(png(picture))
    assert (observation.shape, observation.dtype, note) == (shape, dtype, "")
    first, last = (observation[0, 0], observation[-1, -1])
    white = 255 if dtype == "uint8" else 1.0
    assert (last == white).all()
    assert first[-1] < white


def test_models_of_other_channels_take_no_pictures():
    view = ImageView(Observations("images", (12, 12, 5), "uint8"))
    with pytest.raises(ValueError, match="only grey and coloured images can be uploaded"):
        view.read(png(np.zeros((9, 9, 3))))


def test_uploads_are_not_stored(api, run_path):
    before = sorted((path.name, path.stat().st_mtime_ns) for path in run_path.rglob("*"))
    assert api.post("/api/encode", content=png(np.zeros((9, 9, 3)))).status_code == 200
    assert sorted((path.name, path.stat().st_mtime_ns) for path in run_path.rglob("*")) == before


def test_search(api, exploration):
    value = int(exploration.codes[4, 1])
    matches = api.post("/api/search", json={"where": [{"latent": 1, "values": [value]}]}).json()
    assert matches["total"] == (exploration.codes[:, 1] == value).sum()
    assert all(exploration.codes[row, 1] == value for row in matches["rows"])
    nearest = api.post("/api/search", json={"code": exploration.codes[4].tolist(), "limit": 3}).json()
    assert len(nearest["rows"]) == 3
    assert nearest["distances"][0] == 0


def test_names_are_stored_with_the_run(run_copy, client):
    first = client(open_run(run_copy, show=False))
    first.post("/api/names", json={"latent": 1, "value": None, "name": "floor"})
    answer = first.post("/api/names", json={"latent": 1, "value": 2, "name": "<b>red</b>"}).json()
    assert answer == {"latents": {"1": "floor"}, "values": {"1": {"2": "<b>red</b>"}}}
    assert client(open_run(run_copy, show=False)).get("/api/run").json()["names"] == answer


@pytest.mark.parametrize(
    ("latent", "value", "name", "message"),
    [
        (0, None, "floor", "'floor' stands for z1 in tables of codes; choose another name"),
        (0, None, " z1 ", "'z1' stands for z1"),
        (0, None, "file", "'file' stands for the files"),
        (0, None, "image", "'image' stands for the images"),
        (1, 0, "red", "'red' stands for value 2"),
        (1, 0, "3", "'3' stands for value 3"),
    ],
)
def test_names_that_stand_for_something_else(run_copy, client, latent, value, name, message):
    api = client(open_run(run_copy, show=False))
    api.post("/api/names", json={"latent": 1, "value": None, "name": "floor"})
    before = api.post("/api/names", json={"latent": 1, "value": 2, "name": "red"}).json()
    assert message in refused(api.post("/api/names", json={"latent": latent, "value": value, "name": name}))
    assert json.loads((run_copy / "names.json").read_text()) == before
    for own in ((1, None, "z1"), (1, None, "floor"), (1, 2, "2"), (1, 2, "red"), (0, 0, "red")):
        fields = dict(zip(("latent", "value", "name"), own, strict=True))
        assert api.post("/api/names", json=fields).status_code == 200


def test_names_that_cannot_be_written_are_an_error(run_copy, client, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device", "names.json")

    monkeypatch.setattr("qlae.runs.latent_names.write_json", full)
    response = client(open_run(run_copy, show=False)).post("/api/names", json={"latent": 0, "name": "x"})
    assert refused(response, 500) == "names.json: No space left on device"


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ([0], "has 4 entries, got 1"),
        ([0] * 5, "has 4 entries, got 5"),
        ([0, 0, 0, 5], "z3 are integers from 0 to 4, got 5"),
        ([0, 0, 0, -1], "from 0 to 4, got -1"),
        ([0, 0, 0, 0.5], "from 0 to 4, got 0.5"),
        ([0, 0, 0, 10**30], "from 0 to 4"),
        ([0, 0, 0, True], "must be int or float, got True"),
        ([0, 0, 0, None], "must be int or float, got None"),
        ([0, 0, 0, "1"], "must be int or float, got '1'"),
        ([0, 0, 0, [0]], "must be int or float, got [0]"),
        ("0000", "must be a list"),
    ],
)
def test_bad_codes(api, code, message):
    assert message in refused(api.post("/api/decode", json={"codes": [code]}))
    assert message in refused(api.post("/api/search", json={"code": code}))


@pytest.mark.parametrize("entry", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_numbers_that_are_not_finite(folder_path, client, entry):
    api = client(open_run(folder_path, show=False))
    body = f'{{"codes": [[0, 0, 0, {entry}]]}}'
    message = refused(api.post("/api/decode", content=body))
    assert "JSON" in message or "finite" in message
    assert "between −1e+06 and 1e+06" in refused(api.post("/api/decode", json={"codes": [[0, 0, 0, 1e30]]}))
    assert api.post("/api/decode", json={"codes": [[0, 0, 0, 1e6]]}).status_code == 200


@pytest.mark.parametrize(
    "body", [b"", b"{", b"null", b"[]", b'"x"', b"[" * 100_000, b'{"codes": ' + b"[" * 5000, b"\xff\xfe", b"\x00" * 99]
)
@pytest.mark.parametrize("address", ["/api/decode", "/api/search", "/api/names"])
def test_bodies_that_are_not_objects(api, address, body):
    message = refused(api.post(address, content=body))
    assert "JSON" in message or "must be" in message


def test_number_of_pictures(api):
    assert "length >= 1" in refused(api.post("/api/decode", json={"codes": []}))
    many = {"codes": [[0, 0, 0, 0]] * (MAX_PICTURES + 1)}
    assert f"length <= {MAX_PICTURES}" in refused(api.post("/api/decode", json=many))
    for limit in (0, -1, MAX_PICTURES + 1):
        assert "body.limit is wrong" in refused(api.post("/api/search", json={"index": 0, "limit": limit}))


@pytest.mark.parametrize("rows", ["", "x", "-1", "1,", "1,,2", "1.5", "٣", "9" * 5000, ",".join("1" * 200), "../3"])
def test_rows_that_are_not_numbers(api, rows):
    assert "rows" in refused(api.get("/api/images", params={"rows": rows}))


def test_rows_beyond_the_sample(api):
    assert refused(api.get("/api/samples?rows=40")) == "rows run from 0 to 39, got 40"
    assert "got 99" in refused(api.get("/api/images?rows=3,99"))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not an image",
        b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        b"GIF89a" + b"\x00" * 100,
        b"\x89PNG\r\n\x1a\n" + b"\x00" * 100,
        png(np.zeros((30, 30, 3)))[:-40],
        b"\xff\xd8\xff\xe0" + b"\x00" * 500,
        b"%PDF-1.4",
        b"PK\x03\x04" + b"\x00" * 50,
    ],
)
def test_uploads_that_are_not_pictures(api, content):
    assert "cannot be read as a picture (PNG, JPEG, WebP, BMP, GIF or TIFF)" in refused(
        api.post("/api/encode", content=content)
    )


@pytest.mark.parametrize(("side", "message"), [(9_000, "9000×9000 pixels"), (50_000, "2500000000 pixels")])
def test_a_picture_that_would_fill_the_memory(api, side, message):
    def chunk(kind: bytes, content: bytes) -> bytes:
        return len(content).to_bytes(4, "big") + kind + content + zlib.crc32(kind + content).to_bytes(4, "big")

    size = side.to_bytes(4, "big")
    head = chunk(b"IHDR", size + size + b"\x08\x02\x00\x00\x00")
    bomb = b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(b"\x00" * 10_000)) + chunk(b"IEND", b"")
    assert message in refused(api.post("/api/encode", content=bomb))


def test_huge_uploads_are_cut_short(api):
    message = refused(api.post("/api/encode", content=b"\x00" * (MAX_UPLOAD_BYTES + 1)), 413)
    assert message == f"at most {MAX_UPLOAD_BYTES:,} bytes, got {MAX_UPLOAD_BYTES + 1:,}"

    sent = []

    def endless():  # in chunks, without a length
        while True:
            sent.append(1)
            yield b"\x00" * 2**20
            if len(sent) > 40:
                return

    assert "got more" in refused(api.post("/api/encode", content=endless()), 413)
    assert "at most" in refused(api.post("/api/decode", content=b" " * (MAX_JSON_BYTES + 1)), 413)


@pytest.mark.parametrize(
    "path",
    [
        "/config.json",
        "/../config.json",
        "/%2e%2e/config.json",
        "/..%2f..%2fconfig.json",
        "/style.css/../../config.json",
        "//etc/passwd",
        "/page/app.js",
        "/__init__.py",
        "/api",
        "/api/",
        "/api/original/..%2f1",
        "/api/original/-1",
        "/api/original/x",
        "/api/original/1/2",
        "/names.json",
        "/%00",
    ],
)
def test_only_the_page_the_api_and_this_run_are_served(api, path):
    response = api.get(path)
    assert response.status_code in (400, 404), (path, response.text)
    assert "error" in response.json()


def test_methods(api):
    assert api.get("/api/decode").status_code == 405
    assert api.post("/").status_code == 405
    assert api.put("/api/names").status_code == 405
    assert api.options("/api/decode", headers={"origin": "http://127.0.0.1:8642"}).status_code == 405


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8642",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "[::1]:80",
        "0.0.0.0",
        "",
    ],
)
def test_other_hosts_are_refused(api, host):
    """DNS rebinding: a foreign name that points to this machine."""
    for path in ("/", "/api/run", "/app.js"):
        assert "accepts requests to 127.0.0.1 and localhost only" in refused(api.get(path, headers={"host": host}), 403)


@pytest.mark.parametrize("host", ["127.0.0.1:8642", "localhost:9999", "LOCALHOST", "127.0.0.1"])
def test_names_of_this_machine_are_accepted(api, host):
    assert api.get("/api/run", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "null",
        "http://127.0.0.1:3000",
        "http://localhost:8642",
        "https://127.0.0.1:8642",
        "file://",
    ],
)
def test_other_origins_are_refused(api, origin):
    message = refused(api.post("/api/names", json={"latent": 0, "name": "x"}, headers={"origin": origin}), 403)
    assert "its own page only" in message


def test_the_browsers_fetch_metadata_is_checked(api):
    for site in ("cross-site", "same-site"):
        assert api.get("/api/images?rows=1", headers={"sec-fetch-site": site}).status_code == 403
        assert api.get("/", headers={"sec-fetch-site": site}).status_code == 200  # a link to the page
    headers = {"sec-fetch-site": "same-origin", "origin": "http://127.0.0.1:8642"}
    assert api.post("/api/search", json={"index": 0}, headers=headers).status_code == 200


def test_every_answer_is_guarded(api):
    for response in (api.get("/"), api.get("/api/run"), api.get("/nothing"), api.get("/", headers={"host": "x"})):
        assert "default-src 'none'" in response.headers["content-security-policy"]
        assert response.headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in response.headers


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
FIELDS = st.sampled_from(["codes", "code", "latent", "value", "name", "limit"])


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(address=st.sampled_from(["decode", "search"]), body=st.dictionaries(FIELDS, ANY, max_size=4) | ANY)
def test_no_body_breaks_the_server(api, address, body):
    response = api.post(f"/api/{address}", content=json.dumps(body).encode())
    assert response.status_code in (200, 400), response.text


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=300), at=st.integers(0, 80))
def test_no_upload_breaks_the_server(api, content, at):
    picture = png(np.arange(300).reshape(10, 10, 3) % 255)
    response = api.post("/api/encode", content=picture[:at] + content + picture[at + len(content) :])
    assert response.status_code in (200, 400), response.text
