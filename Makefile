# Two commands do all the set-up: `make demo` and `make test`.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.installed
TOOLS  := $(VENV)/.installed-dev
SEED   ?= 0

# What `make test` runs: no slow tests, and of those in a browser only a few.
FAST := not slow and (not browser or smoke)

# Fast tests of every package, for `make test-quick`; together less than a minute of CPU time.
QUICK := tests/test_run_lifecycle.py tests/test_architecture.py tests/test_config.py \
	$(addprefix tests/data/test_,batches.py dataset.py published.py image_files.py shapes3d.py solids.py) \
	$(addprefix tests/test_,latents.py networks.py norms.py cross_entropy.py divergences.py adversarial.py) \
	$(addprefix tests/test_,checkpoint.py encoding.py options.py evaluation.py latent_labels.py) \
	$(addprefix tests/metrics/test_,arguments.py inputs.py forest.py ksg.py infomec_edges.py psnr.py scoring.py) \
	tests/study/test_plan.py tests/explorer/test_chromium.py tests/explorer/test_exploration.py \
	tests/test_cli.py::test_version tests/test_cli.py::test_help_teaches \
	tests/test_cli.py::test_bad_input_is_one_clear_line

.DEFAULT_GOAL := help
.PHONY: help install dev demo test test-quick test-slow test-oldest test-gpu test-browser test-fuzz chromium docs dist \
	bench-metrics bench-cpu bench-gpu bench-rendering lint types format clean

help:  ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-16s %s\n", $$1, $$2}'

install: $(READY)  ## Create .venv and install qlae into it

dev: $(TOOLS)  ## Also install what the tests need

$(READY): pyproject.toml tools/constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c tools/constraints.txt -e '.[train,explorer]'
	@touch $@

$(TOOLS): $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c tools/constraints.txt -e '.[dev]'
	@touch $@

demo: install  ## Train a small QLAE and a small AE on rendered Shapes3D, score both and draw pictures
	$(BIN)/qlae demo --seed $(SEED)

test: lint types chromium  ## Everything that CI runs: lint, types, tests
	$(BIN)/python -m pytest -n 2 -m '$(FAST)'

test-quick: dev  ## Fast tests of every package, in about a minute
	$(BIN)/python -m pytest -n 2 -m 'not slow' $(QUICK)

test-slow: dev  ## Only the slow tests: full data sets, Ray, ONNX, kills
	$(BIN)/python -m pytest -m slow

test-oldest:  ## Fast tests with the oldest versions that pyproject.toml allows (Python 3.11), in build/oldest
	$(PYTHON) -m venv build/oldest
	build/oldest/bin/python -m pip install --quiet --disable-pip-version-check -c tools/constraints-oldest.txt -e '.[test]'
	build/oldest/bin/python -m pytest -n 2 -m 'not slow' $(QUICK) tests/estimator/test_estimator.py

test-gpu: dev  ## Tests that need a GPU: kernels, recorded updates, parity with the authors' code
	$(BIN)/python -m pytest tests/test_gpu.py tests/test_kernels.py tests/test_parity.py

test-browser: dev chromium  ## All tests that drive a browser: the explorer, and the page of a study
	$(BIN)/python -m pytest -n 2 -m browser tests

test-fuzz: dev  ## 10,000 damaged inputs for every reader, and as many requests to the explorer
	QLAE_FUZZ=10000 $(BIN)/python -m pytest -n 2 tests/fuzz

chromium:  ## Install Chromium for the browser tests (Debian, as root), or say how to get it
	@$(PYTHON) tests/explorer/chromium.py

docs: $(READY)  ## Build the site into build/site; a warning is an error
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c tools/constraints.txt -e '.[docs]'
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs build/site
	@echo "build/site/index.html"

dist: dev  ## Build the sdist and the wheel into dist/
	$(BIN)/python -m hatchling build -d dist

bench-metrics: install  ## Metrics, compared with the published procedure
	$(BIN)/python benchmarks/metrics.py

bench-cpu: install  ## Training on a CPU, compared with the demo's first version and with plain PyTorch
	$(BIN)/python benchmarks/training.py demo
	$(BIN)/python benchmarks/training.py full
	$(BIN)/python benchmarks/training.py compile --size small

bench-gpu: install  ## Training on a GPU, compared with plain PyTorch; by batch size, resolution and latents
	$(BIN)/python benchmarks/training.py gpu --out results/performance/training.json
	$(BIN)/python benchmarks/scaling.py --device cuda --out results/performance

bench-rendering: install  ## Images per second of the rendered scenes
	for scene in shapes3d mpi3d falcor3d isaac3d dsprites; do $(BIN)/python benchmarks/rendering.py --scene $$scene --images 50000; done

lint: dev  ## Check style, common mistakes (ruff) and spelling (codespell)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell

types: dev  ## Check static types (mypy)
	$(BIN)/mypy

format: dev  ## Format the code (ruff)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:  ## Remove what `make` installed and built; runs stay
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
