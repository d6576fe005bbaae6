"""The heatmap of NMI: one row per latent, one column per source, as in the paper's figures."""

from __future__ import annotations

import io
import os
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .infomec import InfoMEC
from .inputs import Bools, Floats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INACTIVE, UNINFORMATIVE = "#d62728", "#9a9a9a"


def plot_nmi(
    result: InfoMEC, path: str | Path, *, source_names: Sequence[str] | None = None, title: str | None = None
) -> Path:
    """Write the heatmap of NMI and return its path; inactive latents have red labels, uninformative rows are grey.

    Args:
        result: of `infomec`.
        path: of the picture; its suffix decides the format (.png, .svg, .pdf).
        source_names: one per source.
        title: a line above the scores.
    """
    path = Path(path)
    heading = _heading(result)
    figure = nmi_figure(
        result.nmi,
        active=result.active,
        informative=np.ones_like(result.active) if result.informative is None else result.informative,
        source_names=source_names,
        title=f"{title}\n{heading}" if title else heading,
    )
    picture = io.BytesIO()
    figure.savefig(picture, dpi=150, format=path.suffix.removeprefix(".") or "png")
    _write_whole(path, picture.getvalue())
    return path


def _heading(result: InfoMEC) -> str:
    scores = f"InfoE {result.infoe:.2f}   InfoC {result.infoc:.2f}"
    if result.informative is None:
        return f"InfoM {result.infom:.2f}   {scores}"
    return (
        f"InfoM {result.infom:.2f} ({result.num_informative} of {result.num_active} informative)   {scores}\n"
        f"corrected: InfoM {result.infom_corrected:.2f}   InfoE {result.infoe_corrected:.2f}   "
        f"InfoC {result.infoc_corrected:.2f}"
    )


def _write_whole(path: Path, content: bytes) -> None:
    """Write a file under a new name, which cannot be a link, and rename it."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb") as file:
            file.write(content)
        os.replace(temporary, path)
    except OSError as error:  # as for a full disk
        temporary.unlink(missing_ok=True)
        error.filename = str(path)
        raise


def escape_math(text: str) -> str:
    """Return text that matplotlib shows as it is; between dollar signs it would look for a formula.

    >>> escape_math("a $b$")
    'a \\\\$b\\\\$'
    """
    return text.replace("$", r"\$")


def nmi_figure(
    nmi: Floats,
    *,
    active: Bools,
    informative: Bools,
    source_names: Sequence[str] | None = None,
    title: str | None = None,
) -> Figure:
    """Return the heatmap of NMI (n_s, n_z) as a matplotlib figure.

    Args:
        nmi: (n_s, n_z), drawn with latents as rows.
        active, informative: (n_z,) masks; labels of inactive latents are red, rows of uninformative ones are grey.
        source_names: one per source.
        title: of the figure.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    num_sources, num_latents = nmi.shape
    names = list(source_names) if source_names is not None else [f"source {i}" for i in range(num_sources)]
    if len(names) != num_sources:
        raise ValueError(f"source_names has {len(names)} entries for {num_sources} sources: give one per source.")
    figure = Figure(figsize=(2.6 + 0.62 * num_sources, 1.7 + 0.34 * num_latents), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    shown = np.clip(nmi.T, 0.0, 1.0)
    noise = np.broadcast_to(~np.asarray(informative, dtype=bool)[:, None], shown.shape)
    image = axes.imshow(np.ma.array(shown, mask=noise), cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")
    axes.imshow(np.ma.array(shown, mask=~noise), cmap="Greys", vmin=-0.15, vmax=1.5, aspect="auto")
    for (j, i), value in np.ndenumerate(shown):
        colour = UNINFORMATIVE if noise[j, i] else "white" if value > 0.6 else "#333333"
        axes.text(i, j, f"{value:.2f}".removeprefix("0"), ha="center", va="center", fontsize=7, color=colour)
    axes.xaxis.tick_top()
    axes.set_xticks(
        range(num_sources), [escape_math(name) for name in names], rotation=35, ha="left", rotation_mode="anchor"
    )
    axes.set_yticks(range(num_latents), [f"$z_{{{j}}}$" for j in range(num_latents)])
    axes.tick_params(length=0)
    for label, is_active, is_informative in zip(axes.get_yticklabels(), active, informative, strict=True):
        if not is_active or not is_informative:
            label.set_color(INACTIVE if not is_active else UNINFORMATIVE)
    figure.colorbar(image, ax=axes, shrink=0.8, label="NMI")
    if title:
        figure.suptitle(escape_math(title), fontsize=11)
    return figure
