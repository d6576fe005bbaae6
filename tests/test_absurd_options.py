"""Every numeric option of every command answers absurd numbers at once, in one line, without a traceback."""

import contextlib
import shutil
import signal

import numpy as np
import pytest

from qlae.cli import main

FEW = ["-1", "nan", "1" + "0" * 30]
MANY = ["0", "inf", "-inf", "1e400", "1e30", "-0.5", "1e-320", "-1" + "0" * 30, "9" * 5000]
SECONDS = 30  # of the processor, since other programs may use it too
DATA = ["--sources", "floor hue", "shape"]
TRAIN = ["train", "qlae", "--size", "small", "--resolution", "16", "--steps", "2", "--batch-size", "8", "--quiet"]
#: Options by command, with a template where the number is a part of a value.
OPTIONS = {
    "train": [
        *("steps", "batch-size", "learning-rate", "decay-steps", "floor", "learning-rate-warm-up", "weight-decay"),
        *("warm-up", "num-latents", "num-values", "seed", "threads", "checkpoint-seconds", "score-every"),
        *("resolution", "num-images", "noise", "weights reconstruct={}", "weight-schedules quantize={}:1"),
        *("weight-schedules quantize=0:{}", "weight-decay-schedule {}:1", "weight-decay-schedule 0:{}"),
    ],
    "correlated": ["correlated scale,orientation,{}"],
    "evaluate": ["num-samples", "bootstrap", "jobs", "max-features"],
    "rescore": ["bootstrap", "jobs", "max-features"],
    "score": ["null-encoder", "bootstrap", "jobs", "seed", "max-features"],
    "explore": ["export-samples", "port"],
    "study": ["workers", "threads", "gpus-per-run", "cpus-per-run"],
    "render": ["resolution", "num-images", "noise"],
    "prepare": ["resolution"],
}
CASES = [(command, option) for command, options in OPTIONS.items() for option in options]


@contextlib.contextmanager
def time_limit(what):
    """Raise an error if the block takes too long."""

    def stop(number, frame):
        raise AssertionError(f"{what} took more than {SECONDS} s")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("absurd") / "run"
    with pytest.raises(SystemExit, match="0"):
        main([*TRAIN, *DATA, "--out", str(folder)])
    return folder


def command_line(command, run, folder, *, with_dci):
    """Return a command that works, without the option."""
    if command in ("train", "correlated"):
        return [
            *TRAIN,
            *(["--num-images", "60"] if command == "correlated" else DATA),
            "--no-evaluate",
            "--out",
            str(folder / "out"),
        ]
    if command in ("evaluate", "rescore"):
        copy = shutil.copytree(run, folder / "run")
        return [
            "evaluate",
            str(copy),
            "--quiet",
            *(["--metrics", "dci"] * with_dci),
            *(["--from-sample"] * (command == "rescore")),
        ]
    if command == "score":
        rng = np.random.default_rng(0)
        np.savez(folder / "x.npz", sources=rng.integers(0, 3, (40, 2)), latents=rng.integers(0, 3, (40, 3)))
        return ["score", str(folder / "x.npz"), "--metrics", "infomec", *(["dci"] * with_dci)]
    if command == "explore":
        return ["explore", str(run), "--export", str(folder / "page"), "--quiet"]
    if command == "study":
        return ["study", "paper-quick", "--dry-run", "--out", str(folder / "study")]
    if command == "render":
        return ["data", "render", "shapes3d", *DATA, "--resolution", "8", "--out", str(folder / "x.npz")]
    np.save(folder / "x.npy", np.zeros((4, 8, 8, 3), np.uint8))
    return ["data", "prepare", "x", "--from", str(folder / "x.npy")]


def run_command(arguments):
    """Run a command; return its exit status, which an error that is not handled does not have."""
    try:
        main(arguments)
    except SystemExit as stop:
        return stop.code or 0
    return 0


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("command", "option"), CASES, ids=str)
@pytest.mark.parametrize("numbers", [FEW, pytest.param(MANY, marks=pytest.mark.slow)], ids=["few", "many"])
def test_numbers(run, tmp_path, monkeypatch, capsys, command, option, numbers):
    monkeypatch.setenv("QLAE_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    name, _, template = option.partition(" ")
    for number, text in enumerate(numbers):
        folder = tmp_path / str(number)
        folder.mkdir()
        arguments = [
            *command_line(command, run, folder, with_dci=name == "max-features"),
            f"--{name}",
            (template or "{}").format(text),
        ]
        with time_limit(f"{name} {text[:40]}"):
            code = run_command(arguments)
        printed = capsys.readouterr()
        assert code in (0, 1, 2), (text[:40], code)
        assert "Traceback" not in printed.err, text[:40]
        if code:
            assert printed.err.strip() or printed.out.strip(), text[:40]
            assert len(max(printed.err.splitlines(), key=len, default="")) < 2000, text[:40]
