"""A library call leaves the process as it found it, and is not changed by the settings of its caller."""

import random
import signal
import subprocess
import sys
import warnings

import numpy as np
import pytest
import torch

import qlae
from qlae.runs import checkpoint

OPTIONS = {"size": "small", "batch_size": 8, "steps": 20, "show": False}


def process_state() -> dict[str, object]:
    cudnn = torch.backends.cudnn
    return {
        "cudnn": (cudnn.benchmark, cudnn.deterministic, cudnn.enabled, cudnn.allow_tf32),
        "matmul": (torch.backends.cuda.matmul.allow_tf32, torch.get_float32_matmul_precision()),
        "threads": torch.get_num_threads(),
        "dtype": torch.get_default_dtype(),
        "grad": (torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.is_autocast_enabled()),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "torch generator": torch.get_rng_state().tolist(),
        "numpy generator": np.random.get_state()[1].tolist(),  # noqa: NPY002
        "python generator": random.getstate(),
        "handlers": {s: signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)},
        "warnings": (list(warnings.filters), warnings.showwarning),
        "numpy errors": np.geterr(),
    }


def weights(run) -> dict[str, torch.Tensor]:
    return {name: t for name, t in checkpoint.load(run.path).tensors.items() if name.startswith("weights.")}


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_training_evaluating_and_loading_leave_the_process_as_it_was(tmp_path, tiny_data):
    qlae.train("qlae", tiny_data, out=tmp_path / "first", **OPTIONS)  # libraries add filters when they are imported
    torch.manual_seed(3)
    torch.set_num_threads(2)
    before = process_state()
    try:
        run = qlae.train("qlae", tiny_data, out=tmp_path / "run", threads=1, **OPTIONS)
        assert process_state() == before
        qlae.evaluate(run, data=tiny_data, show=False)
        qlae.load(run.path)
        qlae.resume(run.path, steps=25, data=tiny_data, show=False)
        assert process_state() == before
    finally:
        torch.set_num_threads(1)


def test_a_first_import_leaves_the_generator_of_python():
    code = "import random; before = random.getstate(); import qlae; qlae.train, qlae.evaluate, qlae.describe\n"
    code += "assert 'rich.style' in __import__('sys').modules and random.getstate() == before"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_failed_training_leaves_it_too(tmp_path, tiny_data):
    before = process_state()
    options = OPTIONS | {"evaluate": False, "threads": 1}
    qlae.train("qlae", tiny_data, out=tmp_path / "run", **options)
    with pytest.raises(ValueError, match="more than steps=10"):
        qlae.train("qlae", tiny_data, out=tmp_path / "run", **options | {"steps": 10})
    assert process_state() == before


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("setting", ["float64", "no_grad", "inference_mode", "autocast"])
def test_the_caller_s_settings_do_not_change_the_result(tmp_path, tiny_data, setting):
    expected = weights(qlae.train("qlae", tiny_data, out=tmp_path / "plain", evaluate=False, **OPTIONS))
    contexts = {
        "no_grad": torch.no_grad,
        "inference_mode": torch.inference_mode,
        "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
        "float64": torch.enable_grad,
    }
    if setting == "float64":
        torch.set_default_dtype(torch.float64)
    try:
        with contexts[setting]():
            run = qlae.train("qlae", tiny_data, out=tmp_path / "inside", evaluate=False, **OPTIONS)
    finally:
        torch.set_default_dtype(torch.float32)
    actual = weights(run)
    assert all(torch.equal(expected[name], actual[name]) for name in expected)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_caller_s_settings_change_neither_scores_nor_loaded_weights(tmp_path, tiny_data):
    run = qlae.train("qlae", tiny_data, out=tmp_path / "run", **OPTIONS)
    expected, latents = run.results["averaged"], qlae.load(run.path).latents(tiny_data.images)
    torch.set_default_dtype(torch.float64)
    try:
        with torch.autocast("cpu", torch.bfloat16):
            qlae.evaluate(run, data=tiny_data, show=False)
            model = qlae.load(run.path)
    finally:
        torch.set_default_dtype(torch.float32)
    assert run.results["averaged"] == expected
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    np.testing.assert_array_equal(model.latents(tiny_data.images), latents)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_caller_s_default_device_does_not_matter(tmp_path, tiny_data):
    expected = weights(qlae.train("qlae", tiny_data, out=tmp_path / "plain", **OPTIONS))
    with torch.device("meta"):
        run = qlae.train("qlae", tiny_data, out=tmp_path / "inside", **OPTIONS)
    actual = weights(run)
    assert all(torch.equal(expected[name], actual[name]) for name in expected)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_numpy_s_error_settings_do_not_matter(tmp_path, tiny_data):
    plain = qlae.train("qlae", tiny_data, out=tmp_path / "plain", **OPTIONS)
    with np.errstate(all="raise"):
        run = qlae.train("qlae", tiny_data, out=tmp_path / "run", **OPTIONS)
        qlae.evaluate(run, data=tiny_data, show=False)
        qlae.rescore(run, show=False)
    assert run.results["averaged"] == plain.results["averaged"]


def test_settings_that_change_bits_are_recorded(tmp_path, tiny_data):
    options = OPTIONS | {"evaluate": False}
    run = qlae.train("qlae", tiny_data, out=tmp_path / "run", **options)
    assert checkpoint.load(run.path).state["settings"] == {"float32_matmul_precision": "highest", "mkldnn": True}
    torch.set_float32_matmul_precision("high")
    try:
        with pytest.warns(UserWarning, match="resumed with .*'float32_matmul_precision': 'high'"):
            qlae.resume(run.path, steps=25, data=tiny_data, show=False, evaluate=False)
    finally:
        torch.set_float32_matmul_precision("highest")
