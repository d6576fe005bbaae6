"""The explorer survives hostile requests: each gets an answer below 500, and the server goes on answering."""

import contextlib
import io
import json
import logging
import shutil
import socket
import threading
import time

import numpy as np
import pytest
from fuzzing import NUM_INPUTS, fuzz
from mutations import ODD_VALUES, damage_bytes, damage_json
from PIL import Image
from starlette.testclient import TestClient

from qlae.explorer import open_run
from qlae.explorer.serve import bind, without_tracebacks
from qlae.explorer.server import build_app

HOST = "127.0.0.1:8642"
BODIES = {
    "/api/decode": {"codes": [[0, 1, 2, 3], [1, 1, 1, 1]]},
    "/api/search?nearest": {"code": [0, 1, 2, 3], "limit": 5},
    "/api/search?where": {"where": [{"latent": 1, "values": [1, 2]}, {"latent": 0, "values": [0]}], "limit": 5},
    "/api/search?file": {"file": "IMG", "limit": 5},
    "/api/search?index": {"index": 3},
    "/api/names": {"latent": 1, "value": None, "name": "floor"},
    "/api/names?value": {"latent": 1, "value": 2, "name": "red"},
}
TYPES = ["application/json", "text/plain", "multipart/form-data; boundary=x", "text/json; charset=utf-16", "", "é"]
ENCODINGS = ["gzip", "deflate", "identity", "x"]
ODD_TEXTS = ["", "-1", "0", "39", "40", "1.5", "1e9", "9" * 30, "٣", "x", "%00", "..", "nan", "1,2", ",", "0x1", "+1"]
PATHS = ["/", "/api/run", "/api/images?rows={}", "/style.css", "/api/{}", "/{}", "/api/images?{}"]
PATHS += ["/api/original/{}", "/api/samples?rows={}", "/api/samples?{}", "/a/{}"]


@pytest.fixture(scope="module")
def exploration(run, tmp_path_factory):
    return open_run(shutil.copytree(run.path, tmp_path_factory.mktemp("explored") / "run"), show=False)


@pytest.fixture(scope="module")
def client(exploration):
    return TestClient(build_app(exploration), base_url=f"http://{HOST}")  # an error that is not handled is raised


def require_answer(response):
    """An answer below 500, which says what is wrong in JSON if something is."""
    assert response.status_code < 500, response.text[:500]
    if response.status_code >= 400:
        assert response.json()["error"], response.text[:500]
    return response


def odd_headers(source):
    headers = {"content-type": source.choice(TYPES).encode()}
    if source.randrange(5) == 0:
        headers["content-encoding"] = source.choice(ENCODINGS).encode()
    if source.randrange(20) == 0:
        headers["content-length"] = source.choice([b"0", b"5", b"-1", b"9" * 30, b"x"])
    return headers


@pytest.mark.parametrize("address", BODIES)
def test_json_bodies(client, address):
    def make(source):
        return damage_json(BODIES[address], source), odd_headers(source)

    def read(request):
        require_answer(client.post(address, content=request[0], headers=request[1]))

    fuzz(address, make, read)
    assert client.get("/api/run").status_code == 200


def picture(form):
    file = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (24, 20, 3)).astype(np.uint8)).save(file, form)
    return file.getvalue()


@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP", "BMP", "GIF", "TIFF"])
def test_pictures(client, form):
    content = picture(form)

    def make(source):
        return damage_bytes(content, source), odd_headers(source)

    def read(request):
        require_answer(client.post("/api/encode", content=request[0], headers=request[1]))

    fuzz(f"/api/encode {form}", make, read)
    assert client.post("/api/encode", content=content).status_code == 200


@pytest.fixture(scope="module")
def table_client(tmp_path_factory):
    """A model of vectors."""
    return number_client(tmp_path_factory.mktemp("vectors"), np.random.default_rng(0).normal(size=(40, 3)))


@pytest.fixture(scope="module")
def series_client(tmp_path_factory):
    """A model of series."""
    return number_client(tmp_path_factory.mktemp("series"), np.random.default_rng(0).normal(size=(40, 9, 2)))


def number_client(folder, array):
    import qlae

    np.save(folder / "data.npy", array)
    data = qlae.load_data(folder / "data.npy")
    options = {"size": "small", "steps": 5, "num_latents": 4, "num_values": 4, "batch_size": 8, "show": False}
    qlae.train("qlae", data, out=folder / "run", **options)
    return TestClient(build_app(open_run(folder / "run", show=False)), base_url=f"http://{HOST}")


TEXTS = {
    "row": b"x0,x1,x2\n1.5,-2,3e5\n",
    "numbers": b"1.5 -2 3",
    "list": b"[1.5, -2, 3]",
    "object": b'{"x0": 1, "x1": [2], "x2": 3}',
    "series": b"x0;x1\n" + b"1;2.5\n" * 9,
    "columns": json.dumps({"x0": [1.0] * 9, "x1": [2] * 9}).encode(),
}


@pytest.mark.parametrize("form", TEXTS)
def test_numbers_as_text(table_client, series_client, form):
    def make(source):
        is_json = TEXTS[form][:1] in b"[{"
        damage = damage_json(json.loads(TEXTS[form]), source) if is_json and source.randrange(2) else None
        content = damage_bytes(TEXTS[form], source) if damage is None else damage
        return source.choice([table_client, series_client]), content, odd_headers(source)

    def read(request):
        client, content, headers = request
        require_answer(client.post("/api/encode", content=content, headers=headers))

    fuzz(f"/api/encode {form}", make, read)
    right = table_client if form in ("row", "numbers", "list", "object") else series_client
    assert right.post("/api/encode", content=TEXTS[form]).status_code == 200


def test_two_runs(exploration):
    """The pages of two runs are as hard as that of one."""
    client = TestClient(build_app(exploration, exploration), base_url=f"http://{HOST}")

    def make(source):
        path = source.choice(["/a", "/b", "", "/c", "/a/.."]) + source.choice(PATHS).format(source.choice(ODD_TEXTS))
        return source.choice(["GET", "GET", "POST", "HEAD"]), path

    def read(request):
        response = client.request(*request)
        assert response.status_code < 500, response.text[:500]

    fuzz("two runs", make, read)
    assert client.get("/b/api/run").status_code == 200


def test_addresses(client):
    def make(source):
        path = source.choice(PATHS).format(source.choice(ODD_TEXTS))
        return source.choice(["GET", "GET", "GET", "HEAD", "POST", "PUT", "OPTIONS"]), path

    def read(request):
        response = client.request(*request)
        assert response.status_code < 500, response.text[:500]

    fuzz("addresses", make, read)
    assert client.get("/api/run").status_code == 200


def test_continuous_latents(tiny_data, tmp_path):
    """Numbers where the other model has codes."""
    import qlae

    qlae.train("ae", tiny_data, out=tmp_path / "run", size="small", steps=20, num_latents=4, batch_size=8, show=False)
    client = TestClient(build_app(open_run(tmp_path / "run", show=False)), base_url=f"http://{HOST}")

    def make(source):
        code = [source.choice([0.5, -1e6, 1e6, 1e-320, *ODD_VALUES]) for _ in range(source.choice([4, 4, 4, 3, 5, 0]))]
        return source.choice(
            [
                ("/api/decode", {"codes": [code]}),
                ("/api/search", {"code": code}),
                ("/api/search", {"where": [{"latent": 1, "low": source.choice(ODD_VALUES), "high": 1}], "limit": 5}),
                ("/api/names", {"latent": 1, "value": source.choice(ODD_VALUES), "name": source.choice(ODD_VALUES)}),
            ]
        )

    def read(request):
        require_answer(client.post(request[0], content=json.dumps(request[1])))

    fuzz("continuous", make, read)
    assert client.get("/api/run").status_code == 200


@pytest.fixture
def port(exploration):
    """The port of a real server, in a thread."""
    import uvicorn

    bound = bind(0)
    server = uvicorn.Server(uvicorn.Config(build_app(exploration), log_level="warning", ws="none"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
    with without_tracebacks():
        thread.start()
        while not server.started:
            time.sleep(0.01)
        yield bound.getsockname()[1]
        server.should_exit = True
        thread.join()


def exchange(port, content, timeout):
    """Send bytes, and return what comes back until the server closes the connection, or says nothing for a while."""
    answer = b""
    with (
        socket.create_connection(("127.0.0.1", port), timeout=timeout) as connection,
        contextlib.suppress(ConnectionError, TimeoutError),  # it refused to read on, or waits for more
    ):
        connection.sendall(content)
        while block := connection.recv(2**16):
            answer += block
    return answer


def test_bytes_on_the_wire(port, caplog):
    """Damaged requests as they travel: wrong lengths, broken chunks, cut headers."""
    body = json.dumps(BODIES["/api/decode"]).encode()
    head = f"POST /api/decode HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n".encode()
    requests = [
        head + f"Content-Length: {len(body)}\r\n\r\n".encode() + body,
        head + f"Content-Length: {10 * len(body)}\r\n\r\n".encode() + body,
        head + b"Content-Length: 3\r\n\r\n" + body,
        head + b"Transfer-Encoding: chunked\r\n\r\n" + f"{len(body):x}\r\n".encode() + body + b"\r\n0\r\n\r\n",
        head.replace(b"/api/decode", b"/api/encode") + f"Content-Length: {len(body)}\r\n\r\n".encode() + body,
        f"GET /api/images?rows=1,2 HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\n\r\n".encode(),
    ]

    def make(source):
        request = source.choice(requests)
        return damage_bytes(request, source) if source.randrange(4) else request

    def read(request):
        answer = exchange(port, request, 0.1)
        assert not answer.startswith(b"HTTP/1.1 5"), answer[:300]

    with caplog.at_level(logging.WARNING):
        fuzz("wire", make, read, num_inputs=max(20, NUM_INPUTS // 5))
    assert not [record for record in caplog.records if record.exc_info or record.levelno >= logging.ERROR]
    assert exchange(port, requests[0], 60).startswith(b"HTTP/1.1 200")
