"""The numbers of the paper's tables, as package data: what our own stand beside."""

import csv
from dataclasses import dataclass
from functools import cache
from importlib import resources

#: Columns of the paper's tables, in their order.
METRICS = ("infom", "infoe", "infoc", "d", "i", "c", "psnr")
#: Rows of the paper's main table, then those of its ablations; GANs are compared with GANs.
AUTOENCODERS = ("ae", "beta-vae", "beta-tcvae", "bioae", "vq-vae", "qlae")
GANS = ("infowgan-gp", "qlinfowgan-gp")
ABLATED_AUTOENCODERS = ("qlae", "qlae-global-codebook", "qlae-no-weight-decay", "vq-vae-weight-decay")
ABLATED_GANS = ("qlinfowgan-gp", "qlinfowgan-gp-no-weight-decay")
#: What QLAE is compared with: the methods before it.
PRIOR = ("ae", "beta-vae", "beta-tcvae", "bioae", "vq-vae")

TITLES = {
    "infom": "InfoM",
    "infoe": "InfoE",
    "infoe_scalar": "InfoE, codes as numbers",
    "infoc": "InfoC",
    "d": "D",
    "i": "I",
    "c": "C",
    "psnr": "PSNR (dB)",
    "informative": "informative",
    **{"mig": "MIG", "sap": "SAP", "modularity": "modularity", "explicitness": "explicitness"},
    **{"irs": "IRS", "mcc": "MCC"},
}
DIGITS = {"psnr": 1}


@dataclass(frozen=True)
class Published:
    """A cell of the paper's appendix: mean, half of the 95% interval, and whether it is bold there."""

    mean: float
    half: float
    bold: bool


@cache
def published() -> dict[tuple[str, str, str], Published]:
    """(data set, model, metric) → what the paper reports.

    >>> published()["shapes3d", "qlae", "infom"]
    Published(mean=0.95, half=0.02, bold=True)
    """
    text = (resources.files(__package__) / "published_results.csv").read_text()
    return {
        (row["dataset"], row["model"], row["metric"]): Published(
            float(row["mean"]), float(row["ci95"]), row["bold"] == "1"
        )
        for row in csv.DictReader(text.splitlines())
    }
