"""The paper's tables: their rows and columns, and their numbers, which are shown next to ours."""

import csv
from dataclasses import dataclass
from functools import cache
from importlib import resources

#: Columns of the paper's tables, in their order.
PAPER_COLUMNS = ("infom", "infoe", "infoc", "d", "i", "c", "psnr")
#: Rows of the paper's main table and of its ablations; autoencoders and GANs are compared separately.
AUTOENCODERS = ("ae", "beta-vae", "beta-tcvae", "bioae", "vq-vae", "qlae")
GANS = ("infowgan-gp", "qlinfowgan-gp")
ABLATED_AUTOENCODERS = ("qlae", "qlae-global-codebook", "qlae-no-weight-decay", "vq-vae-weight-decay")
ABLATED_GANS = ("qlinfowgan-gp", "qlinfowgan-gp-no-weight-decay")
#: Rows of the paper's tables of one data set; rows have this order in every table.
PAPER_ROWS = (*AUTOENCODERS, *ABLATED_AUTOENCODERS[1:], *GANS, *ABLATED_GANS[1:])
#: The earlier methods that QLAE is compared with.
PRIOR = ("ae", "beta-vae", "beta-tcvae", "bioae", "vq-vae")
#: Models whose published InfoE reads codes as one-hot vectors. For all others, the authors' code reads real values: the
#: continuous latents, or the numbers that the codes of a quantized latent stand for.
ONE_HOT_MODELS = ("vq-vae", "vq-vae-weight-decay")
INFOE_KEYS = ("infoe", "infoe_scalar")


@dataclass(frozen=True)
class Published:
    """A cell of the tables in the paper's appendix: mean, half of the 95% interval, and whether it is bold.

    Means over data sets have no interval, because the paper prints none.
    """

    mean: float
    half: float | None
    bold: bool


@cache
def published_results() -> dict[tuple[str, str, str], Published]:
    """Return the numbers that the paper reports, by (data set, model, metric).

    >>> published_results()["shapes3d", "qlae", "infom"]
    Published(mean=0.95, half=0.02, bold=True)
    """
    text = (resources.files(__package__) / "published_results.csv").read_text()
    return {
        (row["dataset"], row["model"], row["metric"]): Published(
            float(row["mean"]), float(row["ci95"]), row["bold"] == "1"
        )
        for row in csv.DictReader(text.splitlines())
    }


def published_metric(model: str, score: str, infoe_input: str | None) -> str | None:
    """Return the published column of the same kind as one of our scores; None if there is none.

    Args:
        model: the model.
        score: our score.
        infoe_input: how ``infoe`` reads the latents of the model: ``"scalar"`` or ``"one-hot"``.

    >>> published_metric("qlae", "infoe", "one-hot"), published_metric("qlae", "infoe_scalar", "one-hot")
    (None, 'infoe')
    >>> published_metric("vq-vae", "infoe", "one-hot"), published_metric("ae", "infoe", "scalar")
    ('infoe', 'infoe')
    """
    if score not in INFOE_KEYS:
        return score if score in PAPER_COLUMNS else None
    kind = "scalar" if score == "infoe_scalar" else infoe_input
    return "infoe" if kind == ("one-hot" if model in ONE_HOT_MODELS else "scalar") else None
