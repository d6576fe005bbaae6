"""Triton kernels: operations that would go over memory many times, each in one pass.

``ops.dispatch`` decides whether they run. Each computes the same as a plain form in ``ops``.
"""
