"""Training several seeds and choosing among them, and encoding images that samples lack."""

import json
import shutil
import sys
import warnings

import numpy as np
import pytest
import torch

import qlae
from qlae.cli import main
from qlae.models.latents import FiniteScalarLatent, QuantizedLatent, VectorQuantizedLatent
from qlae.selection.display import print_selection
from qlae.selection.train_seeds import train_with
from qlae.training import TrainingDiverged

OPTIONS = {"size": "small", "steps": 20, "batch_size": 8, "device": "cpu", "threads": 1, "show": False}


@pytest.fixture(scope="module")
def seeds(tmp_path_factory, tiny_data):
    """Three tiny runs of one model, with the seeds 3, 4 and 5."""
    folder = tmp_path_factory.mktemp("seeds") / "runs"
    return folder, qlae.train_seeds("qlae", tiny_data, out=folder, seeds=3, seed=3, **OPTIONS)


def test_runs_have_their_seeds_and_a_choice(seeds):
    folder, selection = seeds
    assert sorted(run.path.name for run in selection.runs) == ["s3", "s4", "s5"]
    assert sorted(run.seed for run in selection.runs) == [3, 4, 5]
    written = json.loads((folder / "selection.json").read_text())
    assert written["take"] == str(selection.best.path)
    assert (folder / "agreement.png").is_file()


def test_the_same_call_keeps_finished_runs_and_trains_missing_ones(seeds, tiny_data):
    folder, selection = seeds
    times = {run.path: (run.path / "checkpoint.json").stat().st_mtime_ns for run in selection.runs}
    again = qlae.train_seeds("qlae", tiny_data, out=folder, seeds=4, seed=3, **OPTIONS)
    assert len(again.runs) == 4
    assert {path: (path / "checkpoint.json").stat().st_mtime_ns for path in times} == times
    assert not (folder / "s7").exists()


def test_an_interrupted_call_goes_on_where_it_stopped(tmp_path, tiny_data, monkeypatch):
    from qlae.selection import train_seeds as module

    def stop_at_seed_1(model, data, *, out, seed, **options):
        if seed == 1:
            raise KeyboardInterrupt("saved")
        return qlae.train(model, data, out=out, seed=seed, **options)

    with monkeypatch.context() as patch:
        patch.setattr(module, "train", stop_at_seed_1)
        with pytest.raises(KeyboardInterrupt):
            qlae.train_seeds("qlae", tiny_data, out=tmp_path, seeds=2, **OPTIONS)
    assert not (tmp_path / "selection.json").exists()
    before = (tmp_path / "s0" / "results.json").stat().st_mtime_ns
    assert len(qlae.train_seeds("qlae", tiny_data, out=tmp_path, seeds=2, **OPTIONS).runs) == 2
    assert (tmp_path / "s0" / "results.json").stat().st_mtime_ns == before


def test_a_seed_that_diverges_is_left_out(tmp_path, tiny_data, monkeypatch):
    from qlae.selection import train_seeds as module

    def diverge_at_seed_1(model, data, *, out, seed, **options):
        if seed == 1:
            raise TrainingDiverged("the loss is not finite")
        return qlae.train(model, data, out=out, seed=seed, **options)

    monkeypatch.setattr(module, "train", diverge_at_seed_1)
    with pytest.warns(UserWarning, match="s1 is left out: the loss is not finite"):
        selection = qlae.train_seeds("ae", tiny_data, out=tmp_path / "three", seeds=3, **OPTIONS)
    assert {run.path.name for run in selection.runs} == {"s0", "s2"}
    with (
        pytest.warns(UserWarning, match="left out"),
        pytest.raises(ValueError, match=r"1 of 2 runs in .* finished; agreement needs at least two"),
    ):
        qlae.train_seeds("ae", tiny_data, out=tmp_path / "two", seeds=2, **OPTIONS)


def test_contradictions_are_refused_before_anything_is_trained(seeds, tiny_data, tmp_path):
    folder, _ = seeds
    with pytest.raises(ValueError, match="s3 holds another run"):
        qlae.train_seeds("ae", tiny_data, out=folder, seeds=3, seed=3, **OPTIONS)
    for wrong in (1, 0, -2, True, 2.5):
        with pytest.raises(ValueError, match="seeds must be a whole number of at least 2"):
            qlae.train_seeds("qlae", tiny_data, out=tmp_path / "x", seeds=wrong, **OPTIONS)
    with pytest.raises(ValueError, match="does not go with evaluate=False"):
        qlae.train_seeds("qlae", tiny_data, out=tmp_path / "x", seeds=2, evaluate=False, **OPTIONS)
    with pytest.raises(ValueError, match="seed must be a whole number of at least 0, got 'x'"):
        qlae.train_seeds("qlae", tiny_data, out=tmp_path / "x", seeds=2, seed="x", **OPTIONS)
    with pytest.raises(
        ValueError, match=r"s3 is itself a run directory, and the runs of several seeds need a separate folder"
    ):
        qlae.train_seeds("qlae", tiny_data, out=folder / "s3", seeds=2, **OPTIONS)
    assert not (tmp_path / "x").exists()
    assert not (folder / "s3" / "s0").exists()


def test_an_unfinished_run_says_how_to_resume_it(seeds, tmp_path, rng):
    folder, _ = seeds
    for seed in (3, 4, 5):
        shutil.copytree(folder / f"s{seed}", tmp_path / f"s{seed}")
    run = qlae.Run(tmp_path / "s5")
    run.results_path.unlink()
    with pytest.raises(ValueError, match=r"s5 has no results yet; run `qlae evaluate "):
        assert run.results
    content = run.config.to_dict()
    run.config_path.write_text(json.dumps(content | {"training": content["training"] | {"steps": 50}}))
    (skip,) = qlae.select(tmp_path, show=False).skipped
    assert (
        skip.reason
        == f"{run.path} is unfinished after 20 of 50 updates; resume it with `qlae train --resume {run.path}`"
    )
    run.config_path.write_text(json.dumps(content | {"data": content["data"] | {"spec": None}}))
    assert run.describe_unfinished(20).endswith(
        f"resume it with `qlae.resume('{run.path}', data=…)` in Python, since its data were in memory"
    )


def test_a_folder_of_seeds_names_the_run_to_take(seeds, tmp_path, capsys):
    folder, _ = seeds
    moved = tmp_path / "moved"
    shutil.copytree(folder, moved)
    taken = moved / json.loads((moved / "selection.json").read_text())["take"].rpartition("/")[2]
    with pytest.raises(ValueError, match=rf"holds runs of several seeds; name one of them, such as {taken}, the one"):
        qlae.Run.open(moved)
    with pytest.raises(SystemExit):
        main(["explore", str(moved), "--export", str(tmp_path / "page"), "--quiet"])
    assert f"{moved} holds runs of several seeds; opening {taken}, the one to take by" in capsys.readouterr().out
    assert (tmp_path / "page" / "index.html").is_file()
    (moved / "selection.json").write_text("{")
    with pytest.raises(ValueError, match=r"moved is not a run directory, but holds runs; name one of them: .*moved/s3"):
        qlae.Run.open(moved)


def test_the_command_trains_and_names_a_run(tmp_path, capsys):
    options = ["--sources", "floor hue", "shape", "--resolution", "16", "--size", "small", "--steps", "10"]
    options += ["--threads", "1", "--quiet", "--out", str(tmp_path / "runs")]
    for seeds in ("2", "2", "3"):  # finished runs are kept
        with pytest.raises(SystemExit) as end:
            main(["train", "qlae", "--seeds", seeds, *options])
        assert end.value.code == 0
        out = capsys.readouterr().out
        assert f"Take {tmp_path / 'runs' / 's'}" in out
        assert f"{tmp_path / 'runs'}: {seeds} runs compared in" in out
    with pytest.raises(SystemExit):
        main(["train", "qlae", "--seeds", "2", *options[:-1], str(tmp_path / "runs" / "s0")])
    assert "is itself a run directory" in capsys.readouterr().err
    for extra, message in (
        (["--no-evaluate"], "leave out --no-evaluate"),
        (["--resume", str(tmp_path / "runs" / "s0")], "leave out MODEL, --seeds"),
    ):
        with pytest.raises(SystemExit):
            main(["train", "qlae", "--seeds", "2", *extra])
        assert message in capsys.readouterr().err


def test_images_that_samples_lack_are_encoded_by_the_models(seeds, tmp_path, tiny_data):
    folder, _ = seeds
    runs = [qlae.Run(folder / f"s{seed}") for seed in (3, 4)]
    direct = qlae.select(runs, show=False)
    arrays = runs[1].arrays(runs[1].sample_path)
    content = runs[1].sample_path.read_bytes()
    try:
        part = {k: v[:10] if v.ndim and len(v) == len(tiny_data) else v for k, v in arrays.items()}
        np.savez(runs[1].sample_path, **part)
        encoded = qlae.select(runs, show=False, data=tiny_data)
        loaded = qlae.select(runs, show=False)
    finally:
        runs[1].sample_path.write_bytes(content)
    assert encoded.num_images == loaded.num_images == len(tiny_data)
    assert encoded.matrix[0, 1] == pytest.approx(direct.matrix[0, 1], abs=1e-9)


def test_latents_say_what_they_round():
    x = torch.randn(5, 6)
    assert torch.equal(QuantizedLatent(6).unrounded(x), x)
    assert torch.equal(VectorQuantizedLatent(2, 8, vector_size=3).unrounded(x), x)
    finite = FiniteScalarLatent(6, 101)
    assert finite.unrounded(x) == pytest.approx(finite(x).z, abs=0.01)


def test_runs_on_vectors_are_called_so(tmp_path, rng, capsys):
    selection = qlae.train_seeds("qlae", rng.normal(size=(40, 4)), out=tmp_path, seeds=2, num_latents=3, **OPTIONS)
    assert selection.kind == "vectors"
    assert all(run.r2 is not None and run.psnr is None for run in selection.runs)
    assert "higher R² decides" in selection.warnings[0]
    assert "compared on only 40 vectors" in selection.warnings[1]
    print_selection(selection)
    out = capsys.readouterr().out
    assert "2 runs, 40 vectors" in out
    assert "R²" in out
    assert not {"PSNR", "images"} & set(out.split())


def test_the_number_of_latents_is_named_once(tmp_path, rng):
    options = {"size": "small", "steps": 3, "batch_size": 8, "show": False}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        qlae.train_seeds("qlae", qlae.load_data(rng.normal(size=(40, 4))), out=tmp_path / "seeds", seeds=2, **options)
    assert sum("so the model gets 4 latents" in str(warning.message) for warning in caught) == 1


def as_tensor(images):
    return torch.from_numpy(images).permute(0, 3, 1, 2)


def test_runs_of_different_arrays_are_refused(tmp_path, rng):
    images = rng.integers(256, size=(40, 16, 16, 3), dtype=np.uint8)
    options = OPTIONS | {"num_latents": 3, "steps": 3}
    qlae.train_seeds("qlae", images, out=tmp_path / "seeds", seeds=2, **options)
    other = qlae.train("qlae", 255 - images, out=tmp_path / "other", **options)
    with pytest.raises(ValueError, match=r"are of different data: the images differ, although they have the same"):
        qlae.select([tmp_path / "seeds", other], show=False)
    same = qlae.train("qlae", as_tensor(images), out=tmp_path / "tensor", seed=2, **options)
    assert len(qlae.select([tmp_path / "seeds", same], show=False).runs) == 3


def test_a_run_is_not_resumed_with_another_array(tmp_path, rng):
    images = rng.integers(256, size=(40, 16, 16, 3), dtype=np.uint8)
    options = OPTIONS | {"num_latents": 3, "steps": 3, "evaluate": False}
    run = qlae.train("qlae", images, out=tmp_path / "run", **options)
    with pytest.raises(ValueError, match=r"holds another run: data\.checksum is"):
        qlae.train("qlae", 255 - images, out=run.path, **options | {"steps": 5})
    with pytest.raises(ValueError, match="the run was started with other images than those in data=…: pass the same"):
        qlae.resume(run.path, data=255 - images, steps=5, evaluate=False, show=False)
    qlae.resume(run.path, data=as_tensor(images), steps=5, device="cpu", evaluate=False, show=False)
    qlae.train("qlae", images, out=run.path, **options | {"steps": 7})
    assert run.config.data.checksum is not None
    assert qlae.load(run.path).encode(images).shape == (40, 3)


def test_ray_gets_the_runs_and_its_options(tmp_path, capsys, monkeypatch):
    """Without a cluster: the work of a task is done here, in a temporary folder, and sent back."""
    from qlae.study import ray_engine

    engines = []

    class Here(ray_engine.RayEngine):
        def __init__(self, address, **options):
            engines.append((address, options))
            self.device, self.threads, self.imports = options["device"], options["threads"], options["imports"]

        def _run_tasks(self, works, runs):
            for run, work in works.items():
                state, files = ray_engine.work_on_node(work, run.path.name, str(runs), "another folder")
                assert state == "done"
                assert "checkpoint.safetensors" in files
                for name, content in files.items():
                    (run.path / name).write_bytes(content)
                yield run

    options = ["--sources", "floor hue", "shape", "--resolution", "16", "--size", "small", "--steps", "10"]
    command = ["train", "qlae", "--seeds", "2", *options, "--quiet", "--out", str(tmp_path / "runs")]
    with monkeypatch.context() as patch:
        patch.setattr(ray_engine, "RayEngine", Here)
        with pytest.raises(SystemExit) as end:
            main([*command, "--engine", "ray", "--address", "auto", "--cpus-per-run", "2", "--device", "cpu"])
    assert end.value.code == 0
    assert "2 runs compared in" in capsys.readouterr().out
    ((address, given),) = engines
    assert (address, given["cpus_per_run"], given["threads"], given["device"]) == ("auto", 2.0, 2, "cpu")
    monkeypatch.setitem(sys.modules, "ray", None)
    for extra, message in (
        (["--engine", "ray"], "Ray, which is not installed: pip install 'qlae[ray]'"),
        (["--engine", "ray", "--workers", "2"], "leave out --workers"),
        (["--address", "auto"], "add --engine ray, or leave them out"),
    ):
        with pytest.raises(SystemExit):
            main([*command, *extra])
        assert message in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["train", "qlae", *options, "--engine", "ray"])
    assert "add --consensus N or --seeds N" in capsys.readouterr().err


def test_a_run_that_an_engine_cannot_train_is_left_out(tmp_path):
    class Engine:
        def train(self, configs, execution):
            for run in configs:
                yield run, "the node has no such file" if run.path.name == "s1" else ""

    configuration = qlae.configure("qlae", "mixtures", size="small")
    runs = [qlae.Run(tmp_path / name) for name in ("s0", "s1")]
    with pytest.warns(UserWarning, match="s1 is left out: the node has no such file"):
        finished = train_with(Engine(), dict.fromkeys(runs, configuration.config), configuration.execution, show=False)
    assert finished == runs[:1]
    assert runs[1].config == configuration.config
