"""Find the Chromium that the browser tests drive; as a script, install it or say how to get it.

`make test` runs the script. On Debian as root it installs Chromium if none is found. Elsewhere, or if that fails, it
prints one line that says which tests are left out, and succeeds.
"""

import os
import shutil
import subprocess
from pathlib import Path

COMMANDS = ("chromium", "chromium-browser", "google-chrome")
APPLICATIONS = (  # on macOS, where they are not on the path
    Path("/Applications/Chromium.app/Contents/MacOS/Chromium"),
    Path("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"),
)
LEFT_OUT = "The browser tests (tests/explorer/test_page.py, test_numbers_page.py, test_photographs.py) are left out:"


def find_chromium() -> str | None:
    """Return the path of an installed Chromium or Chrome, or ``None``."""
    candidates = (*map(shutil.which, COMMANDS), *(str(path) for path in APPLICATIONS if path.is_file()))
    return next((path for path in candidates if path), None)


def main() -> None:
    """Install Chromium if that is possible; print what is left out if not."""
    if find_chromium():
        return
    if not _is_debian() or os.geteuid() != 0:
        print(f"{LEFT_OUT} no Chromium found. Install Chromium or Chrome (on Debian, as root: make chromium).")
        return
    print("Installing Chromium for the browser tests …", flush=True)
    error = _install()
    if not find_chromium():
        print(f"{LEFT_OUT} Chromium could not be installed ({error}). Install it with `apt-get install chromium`.")


def _is_debian() -> bool:
    release = Path("/etc/os-release")
    return release.is_file() and "ID=debian" in release.read_text().splitlines() and shutil.which("apt-get") is not None


def _install() -> str:
    """Run apt-get and return the last line of its errors, if any."""
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    errors = ""
    # The package lists may be missing or out of date. If updating them fails, those that are there may still do.
    for arguments in (["update"], ["install", "--yes", "--no-install-recommends", "chromium"]):
        command = ["apt-get", "-qq", "-o", "DPkg::Lock::Timeout=300", *arguments]
        errors = subprocess.run(command, env=environment, capture_output=True, text=True, check=False).stderr
    return (errors.strip().splitlines() or ["apt-get gave no reason"])[-1]


if __name__ == "__main__":
    main()
