"""Tiny plans, an engine inside this process, and studies written by hand, whose numbers are known in advance."""

import math
import warnings

import numpy as np

from qlae._io import write_json, write_npz
from qlae.data import data_config, load_data
from qlae.resolving import resolve
from qlae.study import Plan, StudyFolder
from qlae.study.folder import write_failure
from qlae.study.worker import run_job

TINY = {
    "size": "small",
    "steps": 20,
    "batch_size": 8,
    "num_samples": 40,
    "metrics": ["infomec"],
    "tune_seeds": 1,
    "rerun_seeds": 2,
    "data": {"shapes3d": {"resolution": 16, "sources": ["floor hue", "shape"]}},
    "models": {"qlae": {"grid": [0.1, 0.3]}, "ae": {"grid": []}},
}

#: A module of a user that registers a preset.
OWN_MODEL = """
from dataclasses import replace

from qlae.presets import MODELS

MODELS["mine"] = replace(MODELS["qlae"], weight_decay=0.2, published=False)
"""


def tiny_plan(**changes) -> Plan:
    return Plan.from_content(TINY | changes, name="tiny")


class InlineEngine:
    """Run jobs one after another in this process, record their names, and optionally stop after some of them."""

    imports = ()
    has_gpu = False

    def __init__(self, stop_after: int | None = None):
        self.stop_after, self.names = stop_after, []

    def run(self, jobs, folder):
        for job in jobs:
            if len(self.names) == self.stop_after:
                raise KeyboardInterrupt
            self.names.append(job.name)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # tiny models may have too few active latents
                run_job(job, folder.run(job.name), device="cpu")
            yield


SEEDS = (2, 3, 4)  # of the 2 to 5 of the plan of `report_folder`
STEPS = 30_000
INFOM = {  # of each seed
    ("shapes3d", "qlae"): (0.90, 0.95, 1.00),
    ("shapes3d", "ae"): (0.40, 0.41, 0.42),
    ("shapes3d", "beta-vae"): (0.60, 0.61, 0.62),
    ("isaac3d", "qlae"): (0.70, 0.75, 0.80),
    ("isaac3d", "ae"): (0.42, 0.42, 0.42),
    ("isaac3d", "beta-vae"): (0.50, 0.51, 0.52),
}
HALF = 4.302653 * 0.05 / math.sqrt(3)  # t of 2 degrees of freedom, deviation 0.05, three seeds


def write_run(folder, name, data, model, seed, infom, *, psnr=30.0, steps=STEPS, **options):
    """Write a run directory with what the report reads; raw weights have an InfoM that is 0.1 lower."""
    random = np.random.default_rng([seed, len(model)])
    run = folder.run(name)
    run.path.mkdir(parents=True)
    sources = random.integers(0, 4, (300, 3))
    latents = (sources @ random.normal(size=(3, 6)) + random.normal(size=(300, 6))).astype(np.float32)
    codes = {"codes": sources[:, [0, 1, 2, 0, 1, 2]]} if model == "qlae" else {}
    write_npz(run.sample_path, sources=sources, latents=latents, **codes)
    write_npz(run.pictures_path, interventions=random.integers(0, 255, (2, 4, 6, 8, 8, 3), dtype=np.uint8))
    rendered = load_data(data)
    scores = {"infom": infom, "infoe": infom, "infoc": 1 - infom, "d": infom**2, "i": 0.5, "c": infom, "psnr": psnr}
    scores |= {"infoe_scalar": infom / 2} if model == "qlae" else {}
    latent = {"active_latents": [True] * 4 + [False] * 2, "informative_latents": [True] * 3 + [False, True, False]}
    latent |= {"nmi": random.random((len(rendered.source_names), 6)).tolist()}
    latent |= {"infoe_input": "one-hot" if model == "qlae" else "scalar"}
    num_sources = len(rendered.source_names)
    run.write_config(resolve(model, data_config(rendered), num_sources, steps=steps, seed=seed, **options))
    write_json(
        run.results_path,
        {
            "model": model,
            "data": rendered.describe(),
            "protocol": "paper",
            "prune": True,
            "versions": {},
            "num_samples": 10_000,
            "seed": seed,
            "steps": steps,
            "seconds": 60.0,
            "warnings": ["averaged weights: a <warning>"] if (model, seed) == ("ae", 2) else [],
            "averaged": scores | latent,
            "raw": scores | latent | {"infom": infom - 0.1},
        },
    )


def write_study(path) -> StudyFolder:
    """Write a finished study of three models on two data sets, with the numbers in `INFOM` and one failed run."""
    study = StudyFolder(path)
    content = {"tune": False, "rerun_seeds": 4, "data": ["shapes3d", "isaac3d"], "models": ["qlae", "beta-vae", "ae"]}
    study.write_plan(Plan.from_content(content | {"steps": STEPS}, name="study"))
    for (data, model), values in INFOM.items():
        for seed, infom in zip(SEEDS, values, strict=True):
            write_run(study, f"{data}/{model}/s{seed}", data, model, seed, infom)
    write_failure(study.run("shapes3d/ae/s5"), "ValueError: <no> luck")
    return study
