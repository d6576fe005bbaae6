"""Run directories written by hand, whose codes are known: disentangled ones, and ones that mix sources."""

import numpy as np

from qlae._io import write_json, write_npz
from qlae.data import data_config, load_data
from qlae.resolving import resolve
from qlae.runs.directory import Run

STEPS = 100


def disentangled(sources, seed):
    """Return codes: each source in one latent, in an order and numbering of their own."""
    random = np.random.default_rng(seed)
    columns = random.permutation(sources.shape[1])
    return np.column_stack([random.permutation(sources[:, c].max() + 1)[sources[:, c]] for c in columns])


def entangled(sources, seed):
    """Return codes: each latent depends on two sources, in a way of its own."""
    random = np.random.default_rng(seed)
    tables = random.integers(4, size=(sources.shape[1], 100))
    pairs = [sources[:, c] + 10 * sources[:, (c + 1) % sources.shape[1]] for c in range(sources.shape[1])]
    return np.column_stack([table[pair] for table, pair in zip(tables, pairs, strict=True)])


def write_run(path, make, seed, *, data=None, rows=None, infom=0.5, psnr=30.0, steps=STEPS, model="qlae", sources=True):
    """Write a run directory with what selection reads; its codes are ``make(sources, seed)``."""
    rendered = data or load_data("shapes3d", resolution=16, sources=["floor hue", "scale", "shape"])
    rows = np.arange(len(rendered)) if rows is None else np.asarray(rows)
    values = rendered.sources[rows]
    config = data_config(rendered)
    codes = make(values, seed)
    run = Run(path)
    run.path.mkdir(parents=True)
    run.write_config(resolve(model, config, len(config.source_names), steps=STEPS, seed=seed, size="small"))
    shown = values if sources else values[:, :0]
    write_npz(
        run.sample_path,
        indices=rows,
        sources=shown,
        codes=codes,
        latents=codes.astype(np.float32),
        step=np.array(steps),
    )
    scores = {"psnr": psnr} | ({"infom": infom} if sources else {})
    description = rendered.describe() | ({} if sources else {"source_names": [], "source_sizes": []})
    write_json(
        run.results_path,
        {
            "model": model,
            "data": description,
            "protocol": "paper",
            "prune": True,
            "versions": {},
            "num_samples": len(rows),
            "seed": seed,
            "steps": steps,
            "seconds": 1.0,
            "warnings": [],
            "averaged": scores,
            "raw": scores,
        },
    )
    return run


def write_mixed(folder, *, num_good=3, num_bad=3, **options):
    """Write disentangled runs ``good0``, … with a low InfoM and entangled ones ``bad0``, … with a high one."""
    good = [write_run(folder / f"good{s}", disentangled, s, infom=0.1, **options) for s in range(num_good)]
    bad = [write_run(folder / f"bad{s}", entangled, 10 + s, infom=0.9, **options) for s in range(num_bad)]
    return good, bad
