"""`make test` installs Chromium where it can, and elsewhere says which tests are left out."""

import subprocess

import chromium
import pytest


@pytest.fixture
def machine(monkeypatch):
    """Return a function that sets up a machine without Chromium, on which `apt-get install` may bring it."""
    commands = []

    def set_up(*, debian: bool, root: bool, installs: bool = False) -> list[list[str]]:
        def run(command, **_):
            commands.append([part for part in command if part in ("update", "install", "chromium")])
            return subprocess.CompletedProcess(command, 0 if installs else 100, stderr="E: Unable to locate package\n")

        def find() -> str | None:
            return "/usr/bin/chromium" if installs and ["install", "chromium"] in commands else None

        monkeypatch.setattr(chromium, "find_chromium", find)
        monkeypatch.setattr(chromium, "_is_debian", lambda: debian)
        monkeypatch.setattr(chromium.os, "geteuid", lambda: 0 if root else 1000)
        monkeypatch.setattr(chromium.subprocess, "run", run)
        return commands

    return set_up


def test_on_debian_as_root_it_is_installed_from_fresh_package_lists(machine, capsys):
    commands = machine(debian=True, root=True, installs=True)
    chromium.main()
    assert commands == [["update"], ["install", "chromium"]]
    assert "left out" not in capsys.readouterr().out


@pytest.mark.parametrize(("debian", "root"), [(True, False), (False, True)])
def test_elsewhere_one_line_says_what_is_left_out(machine, capsys, debian, root):
    assert machine(debian=debian, root=root) == []
    chromium.main()
    (line,) = capsys.readouterr().out.splitlines()
    assert "tests/explorer/test_page.py" in line
    assert "make chromium" in line


def test_a_failed_installation_is_explained(machine, capsys):
    machine(debian=True, root=True)
    chromium.main()
    assert capsys.readouterr().out.splitlines()[-1].count("Unable to locate package") == 1


def test_an_installed_chromium_is_used(machine, monkeypatch, capsys):
    commands = machine(debian=True, root=True)
    monkeypatch.setattr(chromium, "find_chromium", lambda: "/usr/bin/chromium")
    chromium.main()
    assert commands == []
    assert capsys.readouterr().out == ""
