"""Downloads from a local server that interrupts them on request."""

import hashlib
import http.server
import threading

import pytest

from qlae.data.published import DOWNLOADS, Download, download

CONTENT = bytes(range(256)) * 20_000


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        server = self.server
        server.requests.append(self.headers.get("Range"))
        start = 0
        asked = self.headers.get("Range")
        if asked and server.ranges:
            start = int(asked.removeprefix("bytes=").removesuffix("-"))
        if start >= len(server.content) > 0 and start:
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(server.content)}")
            self.end_headers()
            return
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(server.content) - start))
        if start:
            self.send_header("Content-Range", f"bytes {start + server.shift}-{len(server.content) - 1}/*")
        self.end_headers()
        end = len(server.content) if server.interrupt_at is None else server.interrupt_at
        self.wfile.write(server.content[start:end])


@pytest.fixture
def server(monkeypatch):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.content, server.ranges, server.interrupt_at, server.requests = CONTENT, True, None, []
    server.shift = 0
    threading.Thread(target=server.serve_forever, daemon=True).start()
    digest = hashlib.md5(CONTENT, usedforsecurity=False).hexdigest()
    monkeypatch.setitem(DOWNLOADS, "x", Download(f"http://127.0.0.1:{server.server_port}/set.npz", digest))
    yield server
    server.shutdown()
    server.server_close()


def test_a_complete_download(server, tmp_path):
    seen = []
    path = download("x", tmp_path / "new", progress=lambda *step: seen.append(step))
    assert path.read_bytes() == CONTENT
    assert seen[-1] == (len(CONTENT), len(CONTENT))
    assert [p.name for p in path.parent.iterdir()] == ["set.npz"]
    assert download("x", tmp_path / "new") == path
    assert len(server.requests) == 1


def test_an_interrupted_download_resumes(server, tmp_path):
    server.interrupt_at = 1_000_000
    with pytest.raises(ValueError, match=r"was interrupted .*: run the same command again to resume it"):
        download("x", tmp_path)
    assert not (tmp_path / "set.npz").exists()
    server.interrupt_at = None
    assert download("x", tmp_path).read_bytes() == CONTENT
    assert server.requests == [None, "bytes=1000000-"]


def test_a_download_starts_over_where_it_must(server, tmp_path):
    server.interrupt_at = 500_000
    with pytest.raises(ValueError, match="was interrupted"):
        download("x", tmp_path)
    server.interrupt_at, server.ranges = None, False
    assert download("x", tmp_path).read_bytes() == CONTENT


def test_a_part_of_another_version_is_removed(server, tmp_path):
    (tmp_path / "set.npz.part").write_bytes(b"another version")
    with pytest.raises(ValueError, match="wrong checksum"):
        download("x", tmp_path)
    (tmp_path / "set.npz.part").write_bytes(CONTENT + b"longer")
    with pytest.raises(ValueError, match="run the same command again"):
        download("x", tmp_path)
    assert download("x", tmp_path).read_bytes() == CONTENT


def test_a_wrong_checksum_leaves_nothing(server, tmp_path):
    server.content = CONTENT[:-1] + b"x"
    with pytest.raises(ValueError, match=r"was removed: .* has a wrong checksum"):
        download("x", tmp_path)
    assert not list(tmp_path.iterdir())


def test_an_existing_file_is_verified(server, tmp_path):
    (tmp_path / "set.npz").write_bytes(CONTENT[:-1])
    with pytest.raises(ValueError, match=r"set\.npz has a wrong checksum: remove it"):
        download("x", tmp_path)
    assert (tmp_path / "set.npz").read_bytes() == CONTENT[:-1]
    assert not server.requests


def test_another_range_is_refused(server, tmp_path):
    (tmp_path / "set.npz.part").write_bytes(CONTENT[:1000])
    server.shift = 1
    with pytest.raises(ValueError, match="another range than bytes 1000-"):
        download("x", tmp_path)
    assert download("x", tmp_path).read_bytes() == CONTENT


def test_a_download_has_a_largest_size(server, tmp_path, monkeypatch):
    monkeypatch.setattr("qlae.data.published.MAX_DOWNLOAD", 1_000_000)
    with pytest.raises(ValueError, match="more than 1,000,000 bytes"):
        download("x", tmp_path)
    assert (tmp_path / "set.npz.part").stat().st_size == 0


def test_a_login_page_instead_of_a_file_without_checksum(server, tmp_path, monkeypatch):
    monkeypatch.setitem(DOWNLOADS, "x", DOWNLOADS["x"]._replace(md5=None))
    server.content = b"<html>log in</html>"
    with pytest.raises(ValueError, match=r"was removed: .* is not a data set, perhaps the page of a login"):
        download("x", tmp_path)
    assert not list(tmp_path.iterdir())
    server.content = b"PK" + CONTENT
    assert download("x", tmp_path).read_bytes() == server.content


def test_no_server(tmp_path, monkeypatch):
    monkeypatch.setitem(DOWNLOADS, "x", Download("http://127.0.0.1:9/set.npz"))
    with pytest.raises(ValueError, match="was interrupted"):
        download("x", tmp_path)


def test_names(tmp_path):
    with pytest.raises(ValueError, match="unknown download 'shapes3': did you mean \"shapes3d\""):
        download("shapes3", tmp_path)
    with pytest.raises(ValueError, match="no permanent public address of falcor3d is known; it can be rendered"):
        download("falcor3d", tmp_path)
    with pytest.raises(ValueError, match="choose one of mpi3d-toy"):
        download("mpi3d", tmp_path)
    assert all(p.url.startswith("https://") for p in DOWNLOADS.values())
