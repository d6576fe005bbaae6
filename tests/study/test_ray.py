"""A study, and seeds of a model, on a local Ray cluster with two nodes, one of which is killed; no run is lost."""

import json

import numpy as np
import pytest
from study_fixtures import OWN_MODEL, tiny_plan

import qlae
from qlae._imports import import_modules
from qlae.selection.train_seeds import train_with
from qlae.study import ray_engine, run_study
from qlae.study.ray_engine import RayEngine

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),
]


@pytest.fixture
def cluster(monkeypatch):
    ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'qlae[ray]'")
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    ray_cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    ray_cluster.nodes = [ray_cluster.add_node(num_cpus=1), ray_cluster.add_node(num_cpus=1)]
    ray_cluster.wait_for_nodes()
    yield ray_cluster
    ray.shutdown()
    ray_cluster.shutdown()


@pytest.mark.parametrize("in_place", [True, False], ids=["shared folder", "sent back"])
def test_a_node_killed_mid_study_loses_nothing(cluster, tmp_path, monkeypatch, in_place):
    if not in_place:  # as on nodes that do not see the folder
        monkeypatch.setattr(ray_engine, "_token", lambda folder: "another")
    plan = tiny_plan(steps=600, rerun_seeds=3, models={"qlae": {"grid": []}, "ae": {"grid": []}})
    killed = []

    def kill_a_node(index):
        done = sum(entry.state == "done" for entry in index.runs.values())
        if done >= 1 and not killed:
            killed.append(len(index.runs) - done)
            cluster.remove_node(cluster.nodes[0], allow_graceful=False)

    engine = RayEngine(cluster.address, device="cpu")
    index = run_study(plan, tmp_path / "study", engine, show=kill_a_node)
    assert killed[0] >= 3  # more runs were left than the two nodes had started
    assert {name: (entry.state, entry.error) for name, entry in index.runs.items()} == dict.fromkeys(
        index.runs, ("done", None)
    )
    assert len(index.runs) == 6
    for name in index.runs:
        results = json.loads((tmp_path / "study" / "runs" / name / "results.json").read_text())
        assert results["steps"] == 600
    # The same command once more finds everything finished.
    again = run_study(plan, tmp_path / "study", RayEngine(cluster.address, device="cpu"))
    assert all(entry.state == "done" for entry in again.runs.values())


def test_tasks_import_the_modules_of_the_driver(cluster, tmp_path, monkeypatch, own_presets):
    (tmp_path / "ray_models.py").write_text(OWN_MODEL)
    monkeypatch.chdir(tmp_path)
    import_modules(["ray_models"])
    plan = tiny_plan(rerun_seeds=1, models={"mine": {"grid": []}})
    engine = RayEngine(cluster.address, device="cpu", imports=["ray_models"])
    index = run_study(plan, tmp_path / "study", engine)
    assert {name: (entry.state, entry.error) for name, entry in index.runs.items()} == {
        "shapes3d/mine/s1": ("done", None)
    }


SEEDS = {"size": "small", "steps": 600, "batch_size": 8, "num_latents": 3, "show": False}


def tiny_data():
    return qlae.load_data("shapes3d", resolution=16, sources=["floor hue", "shape"])


@pytest.mark.parametrize("in_place", [True, False], ids=["shared folder", "sent back"])
def test_seeds_survive_a_killed_node_and_are_those_of_one_process(cluster, tmp_path, monkeypatch, in_place):
    if not in_place:
        monkeypatch.setattr(ray_engine, "_token", lambda folder: "another")

    killed = []

    class Killer(RayEngine):
        def train(self, configs, execution):
            for ended in super().train(configs, execution):
                if ended is not None and not killed:
                    killed.append(ended)
                    cluster.remove_node(cluster.nodes[0], allow_graceful=False)
                yield ended

    engine = Killer(cluster.address, device="cpu")
    options = SEEDS | {"device": "cpu", "threads": 1}
    selection = qlae.train_seeds("qlae", tiny_data(), out=tmp_path / "ray", seeds=4, engine=engine, **options)
    assert killed
    assert sorted(run.seed for run in selection.runs) == [0, 1, 2, 3]
    alone = qlae.train("qlae", tiny_data(), out=tmp_path / "alone", seed=2, **options)
    samples = [np.load(run.sample_path)["codes"] for run in (alone, qlae.Run(tmp_path / "ray" / "s2"))]
    assert np.array_equal(*samples)
    times = [(tmp_path / "ray" / f"s{seed}" / "results.json").stat().st_mtime_ns for seed in range(4)]
    again = qlae.train_seeds("qlae", tiny_data(), out=tmp_path / "ray", seeds=4, engine=engine, **options)
    assert len(again.runs) == 4
    assert times == [(tmp_path / "ray" / f"s{seed}" / "results.json").stat().st_mtime_ns for seed in range(4)]


def test_a_seed_that_fails_on_its_node_is_left_out_with_the_reason(cluster, tmp_path):
    engine = RayEngine(cluster.address, device="cuda:9")
    configuration = qlae.configure("qlae", tiny_data(), **{k: v for k, v in SEEDS.items() if k != "show"})
    run = qlae.Run(tmp_path / "s0")
    with pytest.warns(UserWarning, match="s0 is left out: .*cuda:9"):
        assert train_with(engine, {run: configuration.config}, configuration.execution, show=False) == []
