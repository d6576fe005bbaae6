"""Models on the Hugging Face Hub, on a server on this machine that speaks the part of its protocol that is used."""

import base64
import hashlib
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

import qlae
from qlae.cli import main
from qlae.runs.hub import push_model

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Hub(BaseHTTPRequestHandler):
    """One repository, ``user/model``, in the dictionary ``files``."""

    protocol_version = "HTTP/1.1"

    def reply(self, content: bytes, status: int = 200, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def reply_json(self, content) -> None:
        self.reply(json.dumps(content).encode(), Content_Type="application/json")

    def log_message(self, *_):
        pass

    def body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def do_GET(self):
        path, files = self.path.partition("?")[0], self.server.files
        if match := re.fullmatch(r"/user/model/resolve/[^/]+/(.+)", path):
            if match[1] not in files:
                self.reply(b"", 404, X_Error_Code="EntryNotFound")
                return
            content = files[match[1]]
            etag = hashlib.sha256(content).hexdigest()
            self.reply(content, ETag=f'"{etag}"', X_Repo_Commit=COMMIT)
        elif re.fullmatch(r"/api/models/user/model(/revision/.+)?", path):
            siblings = [{"rfilename": name} for name in files]
            self.reply_json({"id": "user/model", "sha": COMMIT, "siblings": siblings, "private": False, "tags": []})
        elif re.fullmatch(r"/api/models/user/model/tree/.+", path):
            self.reply_json([{"type": "file", "path": name, "size": len(files[name]), "oid": "0"} for name in files])
        else:
            self.reply(b"{}", 404, X_Error_Code="RepoNotFound")

    do_HEAD = do_GET  # noqa: N815

    def do_POST(self):
        body = self.body()
        if self.path == "/api/repos/create":
            self.reply_json({"url": f"{self.server.address}/user/model"})
        elif self.path.endswith("/preupload/main"):
            names = [file["path"] for file in json.loads(body)["files"]]
            modes = [{"path": name, "uploadMode": "regular", "shouldIgnore": False, "oid": None} for name in names]
            self.reply_json({"files": modes})
        elif "/commit/main" in self.path:
            for line in map(json.loads, body.splitlines()):
                if line["key"] == "file":
                    self.server.files[line["value"]["path"]] = base64.b64decode(line["value"]["content"])
            url = f"{self.server.address}/user/model/commit/{COMMIT}"
            self.reply_json({"success": True, "commitOid": COMMIT, "commitUrl": url})
        else:  # such as the check of the model card
            self.reply_json({"errors": [], "warnings": []})


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A server on the loopback interface, the files that it holds, and an empty cache."""
    constants = pytest.importorskip("huggingface_hub.constants")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    server.files, server.address = {}, f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("HF_ENDPOINT", server.address)
    monkeypatch.setenv("HF_TOKEN", "hf_test")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    data = qlae.load_data("shapes3d", resolution=16, sources=["shape", "floor hue"])
    options = {"steps": 3, "batch_size": 4, "size": "small", "device": "cpu", "show": False, "evaluate": False}
    return qlae.train("qlae", data, out=tmp_path_factory.mktemp("hub") / "run", **options)


def test_a_model_is_pushed_and_loaded(hub, run, capsys):
    with pytest.raises(SystemExit) as end:
        main(["push", str(run.path), "user/model", "--samples", "0"])
    assert not end.value.code
    assert "hf://user/model" in capsys.readouterr().out
    assert {"config.json", "model.safetensors", "README.md"} <= hub.files.keys()
    images = qlae.load_data("shapes3d", resolution=16).images[:5]
    expected = qlae.load(run.path).encode(images)
    np.testing.assert_array_equal(qlae.load("hf://user/model").encode(images), expected)


@pytest.mark.parametrize("name", ["model.safetensors", "config.json"])
def test_altered_files_are_refused(hub, run, name):
    push_model(run.path, "user/model")
    content = bytearray(hub.files[name])
    position = len(content) // 2 if name == "model.safetensors" else content.index(b"qlae")
    content[position] ^= 1
    hub.files[name] = bytes(content)
    with pytest.raises(ValueError, match=r"altered|cannot be read"):
        qlae.load("hf://user/model")


def test_files_without_checksums_are_refused(hub, run):
    push_model(run.path, "user/model")
    config = json.loads(hub.files["config.json"])
    del config["sha256"]
    hub.files["config.json"] = json.dumps(config).encode()
    with pytest.raises(ValueError, match="checksum"):
        qlae.load("hf://user/model")


def test_what_is_missing_is_named(hub):
    hub.files["other.bin"] = b"x"
    with pytest.raises(ValueError, match=r"hf://user/model is not a model of qlae: it has no config.json"):
        qlae.load("hf://user/model")
    with pytest.raises(ValueError, match="hf://user/nothing cannot be downloaded"):
        qlae.load("hf://user/nothing")


@pytest.mark.parametrize("address", ["hf://model", "hf://a/b/c", "hf://user/model@"])
def test_wrong_addresses_are_one_clear_error(address):
    with pytest.raises(ValueError, match="a model on the hub is named hf://user/model"):
        qlae.load(address)
