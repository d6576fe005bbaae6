"""What needs Triton has no doctests to collect where Triton is absent."""

import importlib.util

collect_ignore_glob = [] if importlib.util.find_spec("triton") else ["src/qlae/kernels/*"]
