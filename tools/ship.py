"""Add the model of a run to those that come with the package (``src/qlae/shipped``), for maintainers.

    python tools/ship.py runs/shapes3d-qlae-small-s0 shapes3d-qlae --about "QLAE on rendered Shapes3D, 32×32"

The weights are stored in half precision with 1,000 rows of the evaluation sample. The model card gets the line of
``--about``, and ``models.json`` that line and the SHA-256 of every file. Names given to
latents in the explorer go with the model.
"""

import argparse
import hashlib
import shutil
from pathlib import Path

from qlae._io import read_json, write_json
from qlae.runs.directory import SHIPPED_INDEX
from qlae.runs.export import export_run

FOLDER = Path(__file__).parents[1] / "src" / "qlae" / "shipped"
NUM_SAMPLES = 1000
MAX_BYTES = 3 * 2**20


def describe(folder: Path, about: str) -> None:
    """Write what a model is and how it was chosen into its model card."""
    card = folder / "README.md"
    before, heading, after = card.read_text().partition("## Scores\n")
    card.write_text(f"{before}{about}.\n\n{heading}{after}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="the run directory, trained and scored")
    parser.add_argument("name", help="such as shapes3d-qlae")
    parser.add_argument("--about", required=True, help="one line: the model, the data, how it was chosen")
    arguments = parser.parse_args()
    folder = FOLDER / arguments.name
    shutil.rmtree(folder, ignore_errors=True)
    export_run(arguments.run, folder, half=True, num_samples=NUM_SAMPLES)
    describe(folder, arguments.about)
    size = sum(path.stat().st_size for path in folder.iterdir())
    if size > MAX_BYTES:
        shutil.rmtree(folder)
        raise SystemExit(f"{arguments.name} would take {size / 2**20:.1f} MiB; at most {MAX_BYTES / 2**20:.0f} ship")
    files = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}
    index = read_json(FOLDER / SHIPPED_INDEX) | {arguments.name: {"about": arguments.about, "files": files}}
    write_json(FOLDER / SHIPPED_INDEX, dict(sorted(index.items())))
    print(f"{folder}: {size / 2**10:.0f} KiB")


if __name__ == "__main__":
    main()
