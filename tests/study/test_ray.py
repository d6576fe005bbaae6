"""A study on a local Ray cluster with two nodes, one of which is killed; no run is lost."""

import json

import pytest
from study_fixtures import OWN_MODEL, tiny_plan

from qlae._imports import import_modules
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
