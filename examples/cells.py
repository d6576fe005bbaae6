"""Blood cells: which part of a code is the type of a cell, and which its place in the cell cycle?

    pip install 'qlae[train,anndata]' scanpy    # scanpy brings 700 cells of 10x Genomics' PBMC 68k
    python examples/cells.py

A biologist has 700 cells and 765 genes, already normalised and scaled, in an old ``.h5ad``. The annotation (type and
phase of the cell cycle) is used only at the end. This is little: 630 cells to learn from, more genes than cells.
"""

import time
from pathlib import Path

import anndata
import numpy as np
import scanpy
from comparison import compare, parse_arguments

import qlae

FILE = Path(scanpy.__file__).parent / "datasets" / "10x_pbmc68k_reduced.h5ad"


def main() -> None:
    arguments = parse_arguments(__doc__.splitlines()[0], "cells")
    began = time.perf_counter()
    data = qlae.load_data(str(FILE))
    print(data)

    cells = anndata.read_h5ad(FILE)
    labels = {"type": cells.obs["bulk_labels"].cat.codes, "phase": cells.obs["phase"].cat.codes}
    labels = {name: np.asarray(codes, int) for name, codes in labels.items()}
    runs, _ = compare(data, labels, arguments, num_latents=8, steps=500)
    qlae.add_codes(cells, runs[0].path)
    print(f"obsm['X_qlae'] is {cells.obsm['X_qlae'].shape}")
    qlae.describe(runs[0].path).save(arguments.out / "description")
    print(f"{(time.perf_counter() - began) / 60:.1f} minutes; see {arguments.out / 'description' / 'index.html'}")


if __name__ == "__main__":
    main()
