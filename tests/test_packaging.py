"""The distributions hold what an installation needs and little else, and their versions agree with each other.

Building needs hatchling, which `make dev` installs. The workflows, the Dockerfile and environment.yml are only read
here: no runner, Docker or conda is at hand.
"""

import importlib.util
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
MAX_SDIST = 3_000_000


@pytest.fixture(scope="module")
def distributions(tmp_path_factory):
    if importlib.util.find_spec("hatchling") is None:
        pytest.skip("hatchling is not installed: pip install hatchling")
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return next(folder.glob("*.tar.gz")), next(folder.glob("*.whl"))


def package_files() -> set[str]:
    """All files of the package that are under version control, or would be."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "src/qlae"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
    return {name.removeprefix("src/") for name in listed if (ROOT / name).exists()}


def test_the_sdist_is_small_and_whole(distributions):
    sdist, _ = distributions
    assert sdist.stat().st_size <= MAX_SDIST
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {f"src/{name}" for name in package_files()} <= names
    assert {"README.md", "LICENSE", "CHANGELOG.md", "pyproject.toml", "tools/readme_hook.py"} <= names
    assert not any(name.startswith(("results/", "tests/", "docs/", "benchmarks/")) for name in names)


def test_the_wheel_has_pages_plans_tables_and_weights(distributions):
    with zipfile.ZipFile(distributions[1]) as wheel:
        names = set(wheel.namelist())
    assert package_files() <= names
    for needed in (
        "qlae/py.typed",
        "qlae/published_results.csv",
        "qlae/explorer/page/index.html",
        "qlae/study/plans/paper.toml",
        "qlae/shipped/models.json",
        "qlae/shipped/shapes3d-qlae/model.safetensors",
    ):
        assert needed in names
    assert {name.partition("/")[0] for name in names} == {"qlae", f"qlae-{_version()}.dist-info"}


def test_the_readme_of_the_index_has_no_relative_links(distributions):
    with zipfile.ZipFile(distributions[1]) as wheel:
        metadata = wheel.read(f"qlae-{_version()}.dist-info/METADATA").decode()
    targets = re.findall(r"\]\(([^)\s]+)\)", metadata)
    assert len(targets) > 5
    assert [target for target in targets if not target.startswith(("https://", "#"))] == []
    for target in targets:  # files of the repository exist, as addresses too
        for prefix in ("https://raw.githubusercontent.com/qlae/qlae/main/", "https://github.com/qlae/qlae/blob/main/"):
            if target.startswith(prefix):
                assert (ROOT / target.removeprefix(prefix).partition("#")[0]).exists(), target
    assert "Project-URL: Documentation" in metadata


def test_addresses_agree():
    urls = PROJECT["urls"]
    assert f"repository-code: {urls['Homepage']}" in (ROOT / "CITATION.cff").read_text()
    assert f'REPOSITORY = "{urls["Homepage"]}"' in (ROOT / "tools/readme_hook.py").read_text()
    assert urls["Documentation"] in (ROOT / ".github/ISSUE_TEMPLATE/config.yml").read_text()
    assert f"version: {_version()}" in (ROOT / "CITATION.cff").read_text()


def _version() -> str:
    return re.search(r'"(.*)"', (ROOT / "src/qlae/_version.py").read_text())[1]


def pins(file: str) -> dict[str, str]:
    return dict(re.findall(r"^([\w.-]+)==(\S+)$", (ROOT / file).read_text(), re.M))


def test_the_oldest_versions_are_those_of_pyproject():
    """Every lower bound of what qlae imports stands in tools/constraints-oldest.txt, and nothing else does."""
    extras = PROJECT["optional-dependencies"]
    runtime = [*PROJECT["dependencies"]]
    for extra in ("train", "ray", "explorer", "anndata", "parquet", "tensorboard", "onnx", "hub"):
        runtime += [requirement for requirement in extras[extra] if not requirement.startswith("qlae[")]
    bounds = dict(re.match(r"([\w-]+)>=([\d.]+)", requirement).groups() for requirement in runtime)
    bounds["triton"] = next(text for text in extras["test"] if text.startswith("triton")).split(">=")[1].split(";")[0]
    oldest = pins("tools/constraints-oldest.txt")
    assert oldest.keys() == bounds.keys()
    for name, bound in bounds.items():
        assert oldest[name] == bound or oldest[name].startswith(f"{bound}."), name


def test_make_installs_nothing_older_than_allowed():
    def number(text: str) -> tuple[int, ...]:
        return tuple(int(part) for part in re.findall(r"\d+", text))

    newest, oldest = pins("tools/constraints.txt"), pins("tools/constraints-oldest.txt")
    assert all(number(newest[name]) >= number(old) for name, old in oldest.items() if name in newest)


def test_pre_commit_runs_what_make_lint_runs():
    yaml = pytest.importorskip("yaml")
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    makefile = (ROOT / "Makefile").read_text()
    recipe = re.search(r"^lint:.*?\n((?:\t.*\n)+)", makefile, re.M)[1]
    commands = [line.split("/")[1].removesuffix(" .") for line in recipe.splitlines()]
    assert [hook["entry"].replace(" --force-exclude", "") for hook in hooks] == commands
    known = pins("tools/constraints.txt")
    for hook in hooks:
        name, _, version = hook["additional_dependencies"][0].partition("==")
        assert known[name] == version


@pytest.mark.parametrize("path", sorted((ROOT / ".github").rglob("*.yml")), ids=lambda path: path.name)
def test_workflows_and_forms_are_well_formed(path):
    yaml = pytest.importorskip("yaml")
    content = yaml.safe_load(path.read_text())
    if path.parent.name == "workflows":
        assert True in content, "`on:`, which YAML reads as true"
        for job in content["jobs"].values():
            assert job["runs-on"]
            assert all(("run" in step) != ("uses" in step) for step in job["steps"])
            for step in job["steps"]:
                assert "uses" not in step or re.fullmatch(r"[\w-]+/[\w-]+@[\w./]+", step["uses"])
    elif path.name != "config.yml":
        assert {"name", "description", "body"} <= content.keys()
        assert {field["type"] for field in content["body"]} <= {
            "textarea",
            "input",
            "markdown",
            "dropdown",
            "checkboxes",
        }
        assert all(field["attributes"]["label"] for field in content["body"])


def test_workflows_name_what_exists():
    """Files, folders and targets of make that the workflows use."""
    makefile = (ROOT / "Makefile").read_text()
    for path in (ROOT / ".github/workflows").glob("*.yml"):
        text = path.read_text()
        for name in re.findall(r"\btests/[\w./]+|\btools/constraints[\w-]*\.txt", text):
            assert (ROOT / name).exists(), name
        for targets in re.findall(r"run: make ([a-z -]+)$", text, re.M):
            assert all(re.search(rf"^{target}:", makefile, re.M) for target in targets.split())
    for python in re.findall(r'"(3\.\d+)"', (ROOT / ".github/workflows/tests.yml").read_text()):
        assert f"Programming Language :: Python :: {python}" in PROJECT["classifiers"]


def test_make_runs_tests_that_exist():
    """Files and folders of tests in the recipes of the Makefile."""
    command = ["make", "--dry-run", "test-quick", "test-oldest", "test-gpu", "test-fuzz", "test-browser"]
    recipes = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    named = set(re.findall(r"\btests(?:/[\w.]+)*", recipes))
    assert len(named) > 20
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


def test_the_docker_file_copies_what_the_build_needs():
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    words = {line.split()[0] for line in lines if line and not line.startswith("#")}
    assert words <= {"FROM", "ARG", "RUN", "COPY", "USER", "WORKDIR", "ENTRYPOINT", "CMD"}
    copied = [name for line in lines if line.startswith("COPY") for name in line.split()[1:-1]]
    assert {"pyproject.toml", "tools/readme_hook.py", "README.md", "LICENSE", "src"} == set(copied)
    allowed = (ROOT / ".dockerignore").read_text().splitlines()
    assert all(f"!{name}" in allowed and (ROOT / name).exists() for name in copied)
    extras = re.search(r"/source\[([\w,]+)\]", "\n".join(lines))[1].split(",")
    assert set(extras) <= PROJECT["optional-dependencies"].keys()


def test_the_conda_environment_has_what_training_needs():
    yaml = pytest.importorskip("yaml")
    entries = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    names = {re.match(r"[\w-]+", entry)[0].replace("pytorch", "torch") for entry in entries if isinstance(entry, str)}
    assert {"torch", "safetensors", "h5py", "pillow", "numpy", "scipy", "scikit-learn", "matplotlib"} <= names
    assert entries[-1]["pip"] == ["-e .[train,explorer]"]
