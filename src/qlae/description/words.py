"""Sentences and numbers of a description, for people."""

from collections.abc import Sequence

import numpy as np


def number(value: float) -> str:
    """Return a number with three digits that count.

    >>> number(0.012345), number(1234.6), number(0.0), number(-2.5)
    ('0.0123', '1,235', '0', '−2.5')
    """
    if value == 0 or not np.isfinite(value):
        return "0" if value == 0 else str(value)
    decimals = max(0, 2 - int(np.floor(np.log10(abs(value)))))
    text = f"{abs(value):,.{decimals}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return f"−{text}" if value < 0 else text


def signed(value: float) -> str:
    """Return a number with its sign.

    >>> signed(1.204), signed(-0.5)
    ('+1.2', '−0.5')
    """
    text = number(value)
    return text if text.startswith("−") else f"+{text}"


def percent(share: float) -> str:
    """Return a share in percent.

    >>> percent(0.5), percent(0.003), percent(1.0), percent(0.9999)
    ('50%', '0.3%', '100%', '99.9%')
    """
    if share <= 0 or share >= 1:
        return "0%" if share <= 0 else "100%"
    if 0.01 <= share < 0.995:
        return f"{share:.0%}"
    return f"{min(max(share, 0.001), 0.999):.1%}"


def listing(names: Sequence[str]) -> str:
    """Return names as a list in a sentence.

    >>> listing(["a"]), listing(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
