"""Operations with two implementations: plain PyTorch, which is the definition, and a fast one."""
