"""The explorer as a process: its port, its address, and its errors when a dependency is missing."""

import socket
import subprocess
import sys
import time
import urllib.request

import pytest

from qlae.cli import main
from qlae.explorer.serve import ADDRESS, bind


def test_a_taken_port_gives_a_free_one():
    with socket.socket() as taken:
        taken.bind((ADDRESS, 0))
        taken.listen()
        with bind(taken.getsockname()[1]) as bound:
            assert bound.getsockname()[0] == "127.0.0.1"
            assert bound.getsockname()[1] != taken.getsockname()[1]


def test_a_free_port_is_taken():
    with bind(0) as first:
        port = first.getsockname()[1]
    with bind(port) as second:
        assert second.getsockname() == (ADDRESS, port)


def test_an_invalid_port_is_an_error():
    with pytest.raises(ValueError, match="port must lie between 0 and 65535, got 70000"):
        bind(70_000)


def test_the_command_serves_until_it_is_stopped(run_path):
    command = [sys.executable, "-m", "qlae", "explore", str(run_path), "--port", "0", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            line = process.stdout.readline()
            address = line.split(" at ")[1].split()[0]
            assert address.startswith("http://127.0.0.1:")
            with urllib.request.urlopen(address) as page:
                assert b"qlae explorer" in page.read()
        finally:
            process.send_signal(2)
            errors = process.communicate(timeout=20)[1]
    assert process.returncode == 130
    assert "Traceback" not in errors


def test_a_client_that_disconnects_is_ignored(exploration, serve, capfd):
    host, _, port = serve(exploration).removeprefix("http://").strip("/").partition(":")
    request = f"POST /api/encode HTTP/1.1\r\nHost: {host}\r\nContent-Length: 5000\r\n\r\nabc"
    with socket.create_connection((host, int(port))) as caller:
        caller.sendall(request.encode())
    with urllib.request.urlopen(f"http://{host}:{port}/api/run") as answer:
        assert answer.status == 200
    time.sleep(0.2)
    assert "Traceback" not in capfd.readouterr().err


def test_the_command_saves_a_page(run_path, tmp_path, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["explore", str(run_path), "--export", str(tmp_path / "page"), "--export-samples", "1", "--quiet"])
    assert stop.value.code == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / "page" / "index.html")


def test_missing_dependencies_are_named(run_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(SystemExit) as stop:
        main(["explore", str(run_path)])
    assert stop.value.code == 2
    assert "the explorer needs uvicorn: pip install 'qlae[explorer]'" in capsys.readouterr().err


def test_an_exported_model_cannot_be_explored(run_path, tmp_path, capsys):
    import qlae

    qlae.load(run_path).save_pretrained(tmp_path)
    with pytest.raises(SystemExit) as stop:
        main(["explore", str(tmp_path)])
    assert stop.value.code == 2
    assert "explore the run that it was exported from" in capsys.readouterr().err
