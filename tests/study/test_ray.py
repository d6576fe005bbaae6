"""A study on Ray: two nodes of a local cluster really start, one of them is killed mid-study, and nothing is lost."""

import json

import pytest
from study_fixtures import tiny_plan

from qlae.study import run_study
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
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    made.nodes = [made.add_node(num_cpus=1), made.add_node(num_cpus=1)]
    made.wait_for_nodes()
    yield made
    ray.shutdown()
    made.shutdown()


@pytest.mark.parametrize("in_place", [True, False], ids=["shared folder", "sent back"])
def test_a_node_killed_mid_study_loses_nothing(cluster, tmp_path, in_place):
    plan = tiny_plan(steps=600, rerun_seeds=3, models={"qlae": {"grid": []}, "ae": {"grid": []}})
    killed = []

    def kill_a_node(index):
        done = sum(entry.state == "done" for entry in index.runs.values())
        if done >= 1 and not killed:
            killed.append(len(index.runs) - done)
            cluster.remove_node(cluster.nodes[0], allow_graceful=False)

    engine = RayEngine(cluster.address, device="cpu", in_place=in_place)
    index = run_study(plan, tmp_path / "study", engine, show=kill_a_node)
    assert killed[0] >= 3  # when more runs were left than the two nodes had begun
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
