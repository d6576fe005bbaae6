"""Spectra of farmland from an aircraft: what varies in 200 bands, before anyone says what grows where?

    pip install tensorly        # brings the Indian Pines scene, 145 by 145 pixels (CC BY 3.0)
    python examples/spectra.py

An agronomist has a hyperspectral scene and no map. Some bands are noisy, neighbouring bands say almost the same, and
neighbouring pixels too: rows held out at random would have their neighbours in the training data. So the scene is cut
into blocks of 12 by 12 pixels, and whole blocks are held out. The map of crops is used only at the end.
"""

import time
from pathlib import Path

import numpy as np
import tensorly
from comparison import compare, parse_arguments

import qlae

FOLDER = Path(tensorly.__file__).parent / "datasets" / "data"
BLOCK = 12  # pixels


def main() -> None:
    arguments = parse_arguments(__doc__.splitlines()[0], "spectra")
    began = time.perf_counter()
    cube = np.load(FOLDER / "Indian_pines_corrected.npy").astype(np.float32)  # (145, 145, 200)
    crops = np.load(FOLDER / "Indian_pines_gt.npy")  # (145, 145), 1 to 16, and 0 where nobody looked
    row, column = np.indices(crops.shape) // BLOCK
    blocks = (row * 100 + column).ravel()
    names = [f"band {number}" for number in range(cube.shape[2])]
    data = qlae.load_data(cube.reshape(-1, cube.shape[2]), feature_names=names, groups=blocks)
    print(data)

    runs, _ = compare(data, {"crop": crops.ravel().astype(int) - 1}, arguments, num_latents=8, num_values=6, steps=3000)
    qlae.describe(runs[0].path, data=data).save(arguments.out / "description")
    print(f"{(time.perf_counter() - began) / 60:.1f} minutes; see {arguments.out / 'description' / 'index.html'}")


if __name__ == "__main__":
    main()
