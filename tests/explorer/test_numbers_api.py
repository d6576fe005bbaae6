"""The explorer's API for vectors and series: numbers in the units of the data, and uploads as text."""

import base64
import json

import numpy as np
import pytest
from explored_data import flowers, waves
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qlae._io import read_sealed
from qlae.explorer import save_page
from qlae.explorer.observation_views import MAX_POINTS, MIN_TEXT_BYTES, SeriesView
from qlae.observations import Observations

NAMES = ["width, cm", "height", "area <b>", "constant"]


@pytest.fixture(scope="module")
def vector_api(vectors, client):
    return client(vectors)


@pytest.fixture(scope="module")
def series_api(series, client):
    return client(series)


def numbers(response, dtype, *shape) -> np.ndarray:
    assert response.status_code == 200, response.text
    return np.frombuffer(response.content, dtype).reshape(-1, *shape)


def refused(response, status=400) -> str:
    assert response.status_code == status, response.text
    return response.json()["error"]


def test_features_are_described_in_the_units_of_the_data(vector_api, vectors):
    described = vector_api.get("/api/run").json()
    assert described == json.loads(json.dumps(vectors.describe(), allow_nan=False))
    features = described["observations"]
    data = flowers()
    assert (features["kind"], features["one"], features["size"]) == ("vectors", "vector", "4 features")
    assert features["names"] == NAMES
    assert features["type"] == "float64"
    for key, expected in (("low", data.min(0)), ("high", data.max(0)), ("mean", data.mean(0))):
        np.testing.assert_allclose(features[key], expected)
    np.testing.assert_allclose(features["deviation"], [*data.std(0)[:3], 1])  # a constant is not divided by 0
    assert "R²" in [score["title"] for score in described["scores"]]


def test_vectors_travel_as_they_are(vector_api, vectors):
    shown = numbers(vector_api.get("/api/images?rows=4,2"), "<f8", 4)
    np.testing.assert_array_equal(shown, flowers()[vectors.indices[[4, 2]]])
    decoded = numbers(vector_api.post("/api/decode", json={"codes": vectors.codes[:3].tolist()}), "<f8", 4)
    np.testing.assert_array_equal(decoded, vectors.model.decode(vectors.codes[:3]))


def test_series_travel_as_they_are(series_api, series):
    features = series_api.get("/api/run").json()["observations"]
    assert (features["num_steps"], features["num_points"], features["stride"]) == (24, 24, 1)
    assert features["names"] == ["position", "level"]
    shown = numbers(series_api.get("/api/images?rows=3"), "<f4", 24, 2)
    np.testing.assert_array_equal(shown, waves()[series.indices[[3]]])
    decoded = numbers(series_api.post("/api/decode", json={"codes": series.codes[:3].tolist()}), "<f4", 24, 2)
    np.testing.assert_array_equal(decoded, series.model.decode(series.codes[:3]))


def test_long_series_are_thinned():
    view = SeriesView(Observations("series", (5000, 2), "float32", (), (0.0, 0.0), (1.0, 1.0)))
    described = view.describe(lambda: np.zeros((3, 5000, 2)))
    assert described["num_points"] <= MAX_POINTS
    drawn = view.to_page(np.arange(10_000, dtype=np.float32).reshape(1, 5000, 2))
    assert drawn.shape == (1, described["num_points"], 2)
    np.testing.assert_array_equal(drawn[0, :2, 0], [0, 2 * described["stride"]])


def row_text(form, row) -> str:
    numbers = [str(number) for number in row.tolist()]
    quoted = [json.dumps(name) for name in NAMES]
    return {
        "csv": ",".join(numbers),
        "spaces": "  ".join(numbers),
        "lines": "\n".join(numbers),
        "names": f"{','.join(quoted)}\n{','.join(numbers)}",
        "another order": f"{','.join(quoted[::-1])}\n{','.join(numbers[::-1])}",
        "further columns": f"id,{','.join(quoted)}\n5,{','.join(numbers)}",
        "list": json.dumps(row.tolist()),
        "object": json.dumps(dict(zip(NAMES, row.tolist(), strict=True))),
        "records": json.dumps([dict(zip(NAMES, row.tolist(), strict=True))]),
    }[form]


FORMS = ["csv", "spaces", "lines", "names", "another order", "further columns", "list", "object", "records"]


@pytest.mark.parametrize("form", FORMS)
def test_a_row_of_the_users_own(vector_api, vectors, form):
    row = flowers()[7]
    answer = vector_api.post("/api/encode", content=row_text(form, row)).json()
    assert answer["code"] == vectors.model.encode(row[None])[0].tolist()
    np.testing.assert_array_equal(np.frombuffer(base64.b64decode(answer["picture"]), "<f8"), row)
    assert answer["note"] == ""


def test_the_first_of_several_rows_is_taken(vector_api, vectors):
    answer = vector_api.post("/api/encode", content="1,2,3,4\n5,6,7,8").json()
    assert answer["note"] == "The first of 2 rows is shown."
    assert answer["code"] == vectors.model.encode(np.array([[1.0, 2, 3, 4]]))[0].tolist()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("1,2,3", "takes 4 numbers per line (width, cm, height, area <b>, constant), got 3; give one number"),
        ("1,2,3,4,5", "takes 4 numbers per line (width, cm, height, area <b>, constant), got 5"),
        ("height,constant\n1,2", "missing among the columns height, constant: width, cm, area <b>"),
        ('{"\\ud800": 1}', "cannot be read as JSON"),
        ("1,2,3,x", "'x' in line 1, column 4 is not a finite number"),
        ("1,2,3,", "a number is missing in line 1, column 4"),
        ("", "there are no numbers"),
        ("\x00\x01", "missing among the columns"),
    ],
)
def test_rows_that_are_refused(vector_api, content, message):
    answer = refused(vector_api.post("/api/encode", content=content.encode()))
    assert message in answer or "there are no numbers" in answer


def test_numbers_beyond_the_type(series_api):
    content = "\n".join(["1e300,0"] * 24)
    assert "too large for float32" in refused(series_api.post("/api/encode", content=content))


@pytest.mark.parametrize("form", ["csv", "names", "rows", "columns"])
def test_a_series_of_the_users_own(series_api, series, form):
    one = waves()[5]
    lines = "\n".join(",".join(map(repr, row)) for row in one.tolist())
    content = {
        "csv": lines,
        "names": f"position,level\n{lines}",
        "rows": json.dumps(one.tolist()),
        "columns": json.dumps({"level": one[:, 1].tolist(), "time": list(range(24)), "position": one[:, 0].tolist()}),
    }[form]
    answer = series_api.post("/api/encode", content=content).json()
    assert answer["code"] == series.model.encode(one[None])[0].tolist()
    np.testing.assert_array_equal(np.frombuffer(base64.b64decode(answer["picture"]), "<f4"), one.ravel())


@pytest.mark.parametrize(
    ("rows", "columns", "message"),
    [
        (23, 2, "this model takes series of 24 time steps, got 23 lines of numbers"),
        (24, 3, "this model takes 2 numbers per line (position, level), got 3"),
        (2, 24, "this model takes 2 numbers per line (position, level), got 24"),
    ],
)
def test_series_of_the_wrong_size(series_api, rows, columns, message):
    content = json.dumps(np.zeros((rows, columns)).tolist())
    assert message in refused(series_api.post("/api/encode", content=content))


def test_text_has_a_limit(vector_api):
    assert "at most" in refused(vector_api.post("/api/encode", content=b"1," * MIN_TEXT_BYTES), 413)


def test_search_works_for_vectors(vector_api, vectors):
    nearest = vector_api.post("/api/search", json={"code": vectors.codes[4].tolist(), "limit": 3}).json()
    assert nearest["distances"][0] == 0


def test_without_data_reconstructions_are_shown(table_path, tmp_path):
    import shutil

    from qlae.explorer import open_run

    copy = shutil.copytree(table_path, tmp_path / "run")
    config = read_sealed(copy / "config.json")
    config["data"]["spec"] = None
    (copy / "config.json").write_text(json.dumps(config))
    with pytest.warns(UserWarning, match=r"the vectors of .* are not available, so reconstructions are shown instead"):
        explored = open_run(copy, show=False)
    np.testing.assert_array_equal(explored.pictures([1]), explored.decode(explored.codes[[1]]))
    json.dumps(explored.describe(), allow_nan=False)


def test_a_saved_page_holds_the_numbers(vectors, tmp_path):
    save_page(vectors, tmp_path / "page", num_samples=2, show=False)
    text = (tmp_path / "page" / "saved.js").read_text().removeprefix("window.qlaeSaved = ").removesuffix(";\n")
    (first, _) = json.loads(text)["samples"]
    saved = np.frombuffer(base64.b64decode(first["numbers"]), "<f8").reshape(first["num_tiles"], 4)
    np.testing.assert_allclose(saved[0], vectors.decode(vectors.codes[[first["row"]]])[0], rtol=1e-5)
    np.testing.assert_array_equal(saved[-1], flowers()[first["index"]])


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    content=st.binary(max_size=60)
    | st.text(alphabet='0123456789.,;e-+ \n\t[]{}":ax', max_size=60).map(str.encode)
    | st.lists(st.floats(), min_size=4, max_size=4).map(lambda row: json.dumps(row).encode())
)
def test_no_text_breaks_the_server(vector_api, series_api, content):
    for api in (vector_api, series_api):
        response = api.post("/api/encode", content=content)
        assert response.status_code in (200, 400), response.text
        if response.status_code == 400:
            assert response.json()["error"]
