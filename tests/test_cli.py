"""The command line: whole jobs, and one clear line with exit code 2 for bad input."""

import dataclasses
import importlib
import inspect
import json
import os
import pkgutil
import shlex
import subprocess
import sys
from typing import get_args, get_type_hints

import numpy as np
import pytest
from tyro.conf import Positional

import qlae.cli
from qlae.cli import COMMANDS, command_class, main
from qlae.cli.help import COMMON, options_of
from qlae.metrics import METRICS, infomec

SMALL = ["--resolution", "16", "--sources", "floor hue", "shape", "--size", "small", "--batch-size", "8", "--quiet"]


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as stop:
        main(list(arguments))
    return stop.value.code


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    out = tmp_path_factory.mktemp("cli") / "run"
    assert run("train", "qlae", *SMALL, "--steps", "100", "--device", "cpu", "--out", str(out)) == 0
    return out


def test_train_makes_a_whole_run_directory(trained):
    names = {path.name for path in trained.iterdir()}
    assert {
        *("config.json", "log.jsonl", "checkpoint.safetensors", "checkpoint.json", "sample.npz", "results.json"),
        *("reconstructions.png", "interventions.png", "interpolations.png", "nmi.png", "curves.png"),
    } <= names


def test_evaluate_and_report(trained, capsys):
    (trained / "results.json").unlink()
    (trained / "nmi.png").unlink()
    assert run("evaluate", str(trained), "--num-samples", "30", "--quiet", "--device", "cpu") == 0
    assert json.loads((trained / "results.json").read_text())["num_samples"] == 30
    (trained / "nmi.png").unlink()
    assert run("report", str(trained)) == 0
    assert (trained / "nmi.png").exists()
    assert "InfoM" in capsys.readouterr().out


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-c", "from qlae.cli import main; main()", *arguments]


def test_a_reader_that_leaves_ends_the_command_quietly(trained):
    process = subprocess.Popen(command("report", str(trained)), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait() == 141


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["score", "--help"], ["score", "nowhere.npz"]])
def test_streams_that_are_closed_make_no_traceback(arguments, tmp_path):
    expected = 2 if "nowhere.npz" in arguments else 0
    for closed, gone in ((">&-", expected), ("2>&-", expected), (">&- 2>&-", expected), ("| true", 0)):
        ended = subprocess.run(
            f"{shlex.join(command(*arguments))} {closed}", shell=True, capture_output=True, text=True, check=False
        )
        assert "Traceback" not in ended.stderr
        assert "Exception ignored" not in ended.stderr
        assert ended.returncode == gone


def test_warnings_as_errors_end_no_command(tmp_path):
    np.savez(tmp_path / "a.npz", sources=np.arange(40)[:, None] % 4, latents=np.zeros((40, 2)))
    strict = os.environ | {"PYTHONWARNINGS": "error"}
    ended = subprocess.run(
        command("score", str(tmp_path / "a.npz")), capture_output=True, text=True, env=strict, check=False
    )
    assert (ended.returncode, "Traceback" in ended.stderr) == (0, False), ended.stderr


def test_several_files_are_scored_side_by_side(tmp_path, rng, capsys):
    sources = rng.integers(0, 4, (200, 2))
    paths = [str(tmp_path / "pca.npz"), str(tmp_path / "ica.npz")]
    for path, noise in zip(paths, (0.1, 1.0), strict=True):
        np.savez(path, sources=sources, latents=sources + noise * rng.normal(size=sources.shape))
    assert run("score", *paths, "--metrics", "mig", "--json") == 0
    together = json.loads(capsys.readouterr().out)
    for path in paths:
        assert run("score", path, "--metrics", "mig", "--json") == 0
        assert json.loads(capsys.readouterr().out) == together[path]
    assert run("score", *paths, "--metrics", "mig") == 0
    assert "…" not in capsys.readouterr().out  # so that long paths do not look alike
    assert "--plot goes with a single file, got 2" in bad(capsys, "score", *paths, "--plot", "x.png")


def test_a_terminal_without_unicode_gets_question_marks(trained):
    ascii_only = os.environ | {"PYTHONIOENCODING": "ascii:strict", "PYTHONUTF8": "0"}
    for arguments, text in ((["report", str(trained)], b"16?16"), (["evaluate", "--help"], b"")):
        ended = subprocess.run(command(*arguments), capture_output=True, env=ascii_only, check=False)
        assert ended.returncode == 0
        assert b"Traceback" not in ended.stderr
        assert text in ended.stdout


def test_protocol_is_named_in_the_results(trained):
    assert run("evaluate", str(trained), "--protocol", "official-standalone", "--quiet", "--device", "cpu") == 0
    assert json.loads((trained / "results.json").read_text())["protocol"] == "official-standalone"


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache of its own."""
    monkeypatch.setenv("QLAE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_render_is_kept_listed_found_and_cleared(cache, tmp_path, capsys):
    assert run("data", "render", "shapes3d", "--resolution", "8", "--sources", "shape") == 0
    assert run("data", "list") == 0
    listed = capsys.readouterr().out
    assert f"Cached in {cache}" in listed
    assert "shapes3d-rendered-8-" in listed
    assert run("data", "clear", "shapes3d") == 0
    assert "freed" in capsys.readouterr().out
    assert run("data", "clear", "shapes3d") == 0
    assert "nothing of shapes3d was cached" in capsys.readouterr().out


def test_a_folder_of_one_s_own_from_images_to_pictures(cache, tmp_path, rng):
    from PIL import Image

    folder = tmp_path / "holiday"
    (folder / "deep").mkdir(parents=True)
    for i in range(12):
        side = 20 + i
        image = Image.fromarray(rng.integers(0, 255, (side, 30, 3), dtype=np.uint8))
        image.save(folder / ("deep" if i % 2 else "") / f"{i}.png")
    out = tmp_path / "run"
    options = ["--resolution", "16", "--size", "small", "--num-latents", "4", "--steps", "3", "--quiet"]
    assert run("train", "qlae", "--data", str(folder), *options, "--out", str(out)) == 0
    results = json.loads((out / "results.json").read_text())
    assert results["data"]["origin"] == "real"
    assert "infom" not in results["averaged"]
    assert run("evaluate", str(out), "--quiet") == 0  # the run knows where its images are
    assert run("data", "inspect", str(folder), "--resolution", "16", "--out", str(tmp_path / "sheet.png")) == 0
    assert (tmp_path / "sheet.png").exists()


def test_runs_inside_the_data_are_no_data(cache, tmp_path, rng, monkeypatch):
    from PIL import Image

    folder = tmp_path / "my.photos 2023"
    (folder / "more").mkdir(parents=True)
    (folder / "more" / "config.json").write_text('{"model": "of a camera"}')  # no run, only called alike
    (folder / "more" / "results.json").write_text("{}")
    for name in ("a.png", "more/b.png", "more/c.png"):
        Image.fromarray(rng.integers(0, 255, (16, 16, 3), dtype=np.uint8)).save(folder / name)
    monkeypatch.chdir(folder)
    options = ["--resolution", "16", "--size", "small", "--num-latents", "4", "--steps", "3", "--quiet"]
    assert run("train", "ae", "--data", ".", *options) == 0
    out = folder / "runs" / "my.photos_2023-ae-small-s0"
    assert list(out.glob("*.png"))
    assert run("evaluate", str(out), "--quiet") == 0
    assert run("train", "ae", "--data", ".", *options, "--seed", "1") == 0
    config = json.loads((folder / "runs" / "my.photos_2023-ae-small-s1" / "config.json").read_text())
    assert config["data"]["num_images"] == 3


def test_prepare_an_array_of_one_s_own(cache, tmp_path, capsys, rng):
    path = tmp_path / "mine.npz"
    np.savez(path, images=rng.integers(0, 255, (20, 8, 8, 3), dtype=np.uint8), sources=rng.integers(0, 3, (20, 2)))
    assert run("data", "prepare", "mine", "--from", str(path), "--resolution", "16") == 0
    assert "20 images of 16×16" in capsys.readouterr().out


def test_what_no_file_can_do(cache, tmp_path, capsys):
    """Continuous, correlated and noisy sources, trained on, scored, and found again by the run."""
    out = tmp_path / "run"
    options = ["--resolution", "16", "--sources", "scale", "orientation", "--num-images", "60", "--noise", "0.1"]
    options += ["--continuous", "--correlated", "scale,orientation,0.8"]
    assert run("train", "qlae", *options, "--size", "small", "--steps", "3", "--quiet", "--out", str(out)) == 0
    results = json.loads((out / "results.json").read_text())
    with np.load(out / "sample.npz", allow_pickle=False) as sample:
        assert np.corrcoef(sample["sources"].T)[0, 1] > 0.5
        assert len(np.unique(sample["sources"][:, 0])) > 50
    assert results["data"]["noise"] == 0.1
    assert "infoe" in results["averaged"]
    assert run("evaluate", str(out), "--quiet") == 0
    assert json.loads((out / "results.json").read_text())["averaged"] == results["averaged"]
    capsys.readouterr()
    assert "source,source,number" in bad(capsys, "train", "qlae", "--correlated", "scale=1")


def test_get_says_what_can_be_had(capsys, tmp_path):
    assert "shapes3d" in bad(capsys, "data", "get", "shapes3", "--to", str(tmp_path))


def test_data_list_and_render(tmp_path, capsys):
    assert run("data", "list") == 0
    assert "shapes3d" in capsys.readouterr().out
    out = tmp_path / "small.npz"
    assert run("data", "render", "shapes3d", "--resolution", "8", "--sources", "shape", "--out", str(out)) == 0
    with np.load(out, allow_pickle=False) as content:
        assert content["images"].shape == (4, 8, 8, 3)
        assert content["sources"].tolist() == [[0], [1], [2], [3]]
        assert content["source_names"].tolist() == ["shape"]


@pytest.mark.parametrize("options", [[], ["--out", "shapes3d.png"]])
def test_inspect_overwrites_nothing(tmp_path, capsys, monkeypatch, options):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shapes3d.png").write_bytes(b"mine")
    line = bad(capsys, "data", "inspect", "shapes3d", "--resolution", "8", "--sources", "shape", *options)
    assert "shapes3d.png exists already" in line
    assert (tmp_path / "shapes3d.png").read_bytes() == b"mine"


def test_score_a_file_made_elsewhere(tmp_path, capsys, rng):
    sources = rng.integers(0, 4, (300, 2))
    path = tmp_path / "codes.npz"
    np.savez(path, sources=sources, latents=sources[:, ::-1])
    plot = tmp_path / "nmi.png"
    assert run("score", str(path), "--metrics", "infomec", "mig", "--json", "--plot", str(plot)) == 0
    scores = json.loads(capsys.readouterr().out)
    assert scores["infomec"]["infom"] > 0.95
    assert scores["mig"]["mig"] > 0.95
    assert plot.exists()
    assert run("score", str(path), "--plot") == 0
    assert "0.9" in capsys.readouterr().out
    assert (tmp_path / "codes-nmi.png").exists()


def test_score_by_kinds_that_types_do_not_tell(tmp_path, capsys, rng):
    sources = rng.integers(0, 4, (300, 2))
    path = tmp_path / "codes.npz"
    np.savez(path, sources=sources, latents=sources[:, ::-1].astype(float))

    def scores(*options):
        assert run("score", str(path), "--json", *options) == 0
        found = json.loads(capsys.readouterr().out)["infomec"]
        return [found[name] for name in ("infom", "infoe", "infoc")]

    def wanted(latents, **kinds):
        found = infomec(sources, latents, **kinds)
        return pytest.approx([found.infom, found.infoe, found.infoc], abs=1e-6)

    codes, mixed = sources[:, ::-1], ["discrete", "continuous"]
    assert scores() == wanted(codes.astype(float))
    assert scores() != wanted(codes)
    assert scores("--latent-kind", "codes") == wanted(codes)
    assert scores("--source-kinds", *mixed) == wanted(codes.astype(float), source_kinds=mixed)
    capsys.readouterr()  # warnings of floats that look like codes
    wrong = ["--latent-kind", "codes", "--source-kinds", *mixed, "auto"]
    assert "3 entries for 2 sources" in bad(capsys, "score", str(path), *wrong)


def test_score_passes_options_to_dci(tmp_path, capsys):
    sources = np.random.default_rng(0).integers(0, 3, size=(120, 2))
    path = tmp_path / "codes.npz"
    np.savez(path, sources=sources, latents=sources)
    options = ["--metrics", "dci", "--max-features", "all", "--dci-split", "honest"]
    assert run("score", str(path), "--json", *options) == 0
    result = json.loads(capsys.readouterr().out)["dci"]
    assert (result["max_features"], result["split"]) == ("all", "honest")
    assert result["d"] == pytest.approx(1.0)
    assert "give 'sqrt', 'log2', 'all'" in bad(capsys, "score", str(path), "--metrics", "dci", "--max-features", "half")


def test_score_notes_and_intervals(tmp_path, capsys, rng):
    sources = np.column_stack([rng.integers(0, 4, (300, 2)), np.ones(300, int)])
    path = tmp_path / "codes.npz"
    np.savez(path, sources=sources, latents=sources[:, :2])
    assert run("score", str(path), "--json", "--bootstrap", "2") == 0
    shown = capsys.readouterr()
    assert set(json.loads(shown.out)["bootstrap"]["intervals"]) == set(METRICS["infomec"].score_keys)
    assert "qlae: warning: constant sources are left out" in shown.err
    plot = str(tmp_path / "nmi.png")
    assert "add infomec" in bad(capsys, "score", str(path), "--metrics", "mig", "--plot", plot)


def test_score_a_run_s_sample(trained, capsys):
    assert run("score", str(trained / "sample.npz")) == 0
    assert "sample.npz" in capsys.readouterr().out


def test_evaluate_with_dci(trained):
    assert run("evaluate", str(trained), "--metrics", "infomec", "dci", "--quiet", "--device", "cpu") == 0
    assert {"d", "i", "c", "infom"} <= json.loads((trained / "results.json").read_text())["averaged"].keys()


def test_version(capsys):
    main(["--version"])
    assert capsys.readouterr().out.startswith("qlae 0.")


DATA_COMMANDS = [f"data {name}" for name in ("list", "render", "prepare", "get", "inspect", "clear")]


@pytest.mark.parametrize("command", [*COMMANDS, *DATA_COMMANDS])
def test_help_teaches(command, capsys):
    assert run(*command.split(), "--help") == 0
    text = capsys.readouterr().out
    assert "usage: qlae" in text
    assert "For example:" in text or command == "data list" or "• render" in text
    words = " ".join(text.replace("│", " ").split())
    for uninformative in ("None", "", "True", "False", "preset", "{}", "()", "[]"):
        assert f"(default: {uninformative})" not in words
    assert "{None" not in words


@pytest.mark.parametrize("command", [*COMMANDS, *DATA_COMMANDS])
def test_help_fits_on_a_screen_and_help_all_has_every_option(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    run(*command.split(), "--help")
    short = capsys.readouterr().out
    lines = [line for line in short.splitlines() if not line.startswith(" ---")]  # of boxes in ASCII
    assert len(lines) <= 45
    run(*command.split(), "--help-all")
    text = capsys.readouterr().out
    name, *rest = command.split()
    options = _flags(command_class(name).subcommands()[rest[0]] if rest else command_class(name))
    assert [option for option in options if f"{option} " not in text] == []
    assert ("--help-all` shows" in short) == any(f"{option} " not in short for option in options)


def test_the_help_names_options_that_exist():
    for command, shown in COMMON.items():
        name, *rest = command.split()
        options = options_of(command_class(name).subcommands()[rest[0]] if rest else command_class(name))
        assert shown.keys() <= {option.name for option in options}


def _flags(described):
    """Return the flags of a command by its fields, without its positional arguments and subcommands."""
    hints, flags = get_type_hints(described, include_extras=True), []
    for field in dataclasses.fields(described):
        hint = hints[field.name]
        if dataclasses.is_dataclass(hint):
            flags += _flags(hint)
        elif Positional not in get_args(hint) and field.name != "command":
            renamed = {"imports": "--import", "path": "--from"}.get(field.name)
            negated = f"--no-{field.name.replace('_', '-')}" if field.default is True else None
            flags.append(renamed or negated or f"--{field.name.replace('_', '-')}")
    return flags


CLI_MODULES = [f"cli.{module.name}" for module in pkgutil.iter_modules(qlae.cli.__path__)]


@pytest.mark.parametrize("module", ["options", *CLI_MODULES])
def test_texts_of_options_are_paragraphs(module):
    """In help, a line of a description that starts with anything but a letter would start a new line."""
    classes = vars(importlib.import_module(f"qlae.{module}")).values()
    for described in filter(dataclasses.is_dataclass, classes):
        attributes = inspect.getdoc(described).partition("Attributes:")[2]
        continued = [line.strip() for line in attributes.splitlines() if line.startswith(" " * 8)]
        assert [line for line in continued if not line[0].isalpha()] == []


def bad(capsys, *arguments: str) -> str:
    """Run what must fail: exit code 2, and its one line."""
    assert run(*arguments) == 2
    line = capsys.readouterr().err
    assert line.startswith("qlae: ")
    assert line.count("\n") == 1
    return line


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "qlea"], "unknown model 'qlea': did you mean \"qlae\"?"),
        (["train", "qlae", "--data", "shapes3"], 'did you mean "shapes3d"?'),
        (["train", "qlae", "--data", "H2"], "there is no folder or file 'H2' either"),
        (["train", "qlae", "--sources", "shap"], 'did you mean "shape"?'),
        (["train", "qlae", "--steps", "-5"], "steps must be a whole number of at least 1, got -5"),
        (["train", "qlae", "--weight-decay", "-0.1"], "weight_decay must be a finite number of at least 0, got -0.1"),
        (["train", "qlae", "--resolution", "-64"], "got -64"),
        (["train", "qlae", "--resolution", "7"], "resolution must be an integer from 8 to 1024, got 7"),
        (["train", "qlae", *SMALL, "--steps", "1", "--device", "gpu"], "no such device: 'gpu'; this machine has cpu"),
        (["evaluate", "nowhere"], "nowhere is not a run directory: it does not exist"),
        (["report"], "name at least one run directory"),
        (["score", "nowhere.npz"], "nowhere.npz is not a file"),
        (["data", "render", "shapes3d", "--out", "images.txt"], "--out must end in .npz"),
        (["data", "inspect", "shapes3d", "--out", "sheet.jpg"], "--out must end in .png, got sheet.jpg"),
    ],
)
def test_bad_input_is_one_clear_line(capsys, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert message in bad(capsys, *arguments)


@pytest.mark.parametrize("options", [["--weights", "entropy"], ["--steps", "many"], ["--wieghts", "kl=1"]])
def test_errors_point_to_the_help_of_the_command(capsys, options):
    with pytest.raises(SystemExit):
        main(["train", "qlae", *options])
    message = capsys.readouterr().err
    assert "qlae train --help" in message
    assert "qlae --help" not in message
    assert "qlae select" not in message  # which has an option of a similar name


def test_bad_names_leave_no_directory_behind(capsys, tmp_path):
    bad(capsys, "train", "qlea", "--out", str(tmp_path / "run"))
    bad(capsys, "train", "qlae", "--steps", "-5", "--out", str(tmp_path / "run"))
    bad(capsys, "train", "qlae", "--resolution", "7", "--out", str(tmp_path / "run"))
    bad(capsys, "train", "qlae", "--device", "gpu", "--out", str(tmp_path / "run"))
    assert not (tmp_path / "run").exists()


def test_existing_render_is_not_overwritten(capsys, tmp_path):
    out = tmp_path / "mine.npz"
    out.write_text("precious")
    assert "exists already" in bad(capsys, "data", "render", "shapes3d", "--out", str(out))
    assert out.read_text() == "precious"


def test_unwritable_folder(capsys):
    assert "/proc/nowhere" in bad(capsys, "train", "qlae", *SMALL, "--steps", "1", "--out", "/proc/nowhere")


def test_a_file_in_the_way(capsys, tmp_path):
    (tmp_path / "run").write_text("a file")
    line = bad(capsys, "train", "qlae", *SMALL, "--steps", "1", "--out", str(tmp_path / "run"))
    assert "is a file, not a folder" in line


def test_another_configuration(capsys, trained):
    line = bad(capsys, "train", "ae", *SMALL, "--steps", "100", "--out", str(trained))
    assert "holds another run: model is 'qlae', asked for 'ae'" in line


def test_a_file_of_a_run_is_no_run(capsys, trained):
    line = bad(capsys, "evaluate", str(trained / "config.json"))
    assert f"config.json is a file, not a run directory; give the folder, such as {trained}\n" in line


def test_damaged_config(capsys, tmp_path):
    (tmp_path / "config.json").write_text('{"model": "qlae"')
    assert "config.json" in bad(capsys, "evaluate", str(tmp_path))


def test_disk_that_fills_up(tmp_path):
    """A checkpoint that no longer fits: one line, exit code 2, and no part of it left."""
    resource = pytest.importorskip("resource")
    out = tmp_path / "run"
    command = [sys.executable, "-m", "qlae", "train", "qlae", *SMALL, "--steps", "20", "--out", str(out)]

    def small_files_only():
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))

    done = subprocess.run(
        command,
        preexec_fn=small_files_only,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 2
    assert done.stderr == f"qlae: {out / 'next.safetensors'}: File too large\n"
    assert {path.name for path in out.iterdir()} == {".lock", "config.json", "log.jsonl"}


def test_a_reader_that_has_seen_enough():
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "qlae", "data", "list"], stdout=writing, stderr=subprocess.PIPE, text=True
        )
    finally:
        os.close(writing)
    assert done.returncode != 0
    assert not done.stderr


def test_ctrl_c_while_arguments_are_read(monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("tyro.cli", stop)
    assert run("data", "list") == 130


def test_the_overview_fits_a_screen_and_names_every_command(capsys):
    assert all(dataclasses.is_dataclass(command_class(name)) for name in COMMANDS)
    for arguments in ([], ["--help"], ["-h"]):
        main(arguments)
        lines = capsys.readouterr().out.splitlines()
        assert len(lines) <= 32
        assert max(map(len, lines)) <= 80


def test_a_misspelt_command_is_told(capsys):
    assert run("trian", "qlae") == 2
    assert "unknown command 'trian': did you mean \"train\"?" in capsys.readouterr().err


def test_tables_in_a_pipe_are_whole_and_plain(tmp_path, rng):
    """Without a terminal there are no colours, and columns are wide enough to leave no word out."""
    np.savez(tmp_path / "a.npz", sources=rng.integers(0, 3, (200, 2)), latents=rng.normal(size=(200, 2)))
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    command = [sys.executable, "-m", "qlae", "score", "a.npz", "--metrics", "infomec", "mig"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, cwd=tmp_path)
    assert "disentanglement_lib" in done.stdout
    assert "…" not in done.stdout
    assert "\x1b" not in done.stdout
    narrow = subprocess.run(
        command, capture_output=True, text=True, check=True, env=environment | {"COLUMNS": "60"}, cwd=tmp_path
    )
    assert max(map(len, narrow.stdout.splitlines())) <= 60


def test_dry_run_shows_every_value_and_writes_nothing(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("qlae.configuring.TIMED_SECONDS", 0.0)
    options = ["--size", "small", "--resolution", "16", "--learning-rate", "0.125", "--threads", "1", "--dry-run"]
    assert run("train", "qlae", *options) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "training.optimizer.learning_rate 0.125 your option --learning-rate" in lines
    assert "training.batch_size 64 size small" in lines
    assert lines[-1].startswith("Time: about ")
    assert not list(tmp_path.iterdir())
    assert "config.json" in bad(capsys, "train", "--resume", "runs/x", "--dry-run")


def test_errors_of_the_library_name_flags(capsys, tmp_path):
    (tmp_path / "taken").write_text("")
    line = bad(capsys, "train", "qlae", "--size", "small", "--resolution", "16", "--out", str(tmp_path / "taken"))
    assert "--out" in line
    assert "out=" not in line
