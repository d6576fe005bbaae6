"""Operations with several implementations: a plain one in PyTorch, which is the definition, and fast ones.

No other package knows that kernels exist. ``dispatch`` chooses the implementation.
"""
