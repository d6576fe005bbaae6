"""``python -m qlae`` is the command ``qlae``."""

from .cli import main

if __name__ == "__main__":
    main()
