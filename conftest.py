"""What is no place for doctests: kernels where Triton is absent, and a script that must not import Triton before tests
say that it interprets."""

import importlib.util

collect_ignore = ["tests/compile_kernels.py"]
collect_ignore_glob = [] if importlib.util.find_spec("triton") else ["src/qlae/ops/kernels/*"]
