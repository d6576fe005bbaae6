"""The paper's tables: their rows and columns, and their numbers, which are shown beside those of a study."""

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
#: The earlier methods that QLAE is compared with.
PRIOR = ("ae", "beta-vae", "beta-tcvae", "bioae", "vq-vae")


@dataclass(frozen=True)
class Published:
    """A cell of the tables in the paper's appendix: mean, half of the 95% interval, and whether it is bold."""

    mean: float
    half: float
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
