"""Sensors of a space shuttle: do a few codes of unlabelled readings set the unusual states apart?

    pip install river    # brings 49,097 readings of nine sensors (UCI Statlog, 7% of them anomalies)
    python examples/shuttle.py

An engineer has nine channels without names and no list of faults. The flag that says which readings are anomalies is
used only at the end. The order of the rows was shuffled long ago, so rows are held out at random. Three
channels have values of up to 100 standard deviations, which alone would decide what PCA finds and what R² says, so the
upper and lower half percent of each channel are clipped.
"""

import time
from pathlib import Path

import pandas as pd
import river
from comparison import compare, parse_arguments

import qlae

TABLE = Path(river.__file__).parent / "datasets" / "shuttle.csv.gz"


def main() -> None:
    arguments = parse_arguments(__doc__.splitlines()[0], "shuttle")
    began = time.perf_counter()
    table = pd.read_csv(TABLE)
    channels = table.drop(columns="anomaly")
    data = qlae.load_data(channels.clip(channels.quantile(0.005), channels.quantile(0.995), axis="columns"))
    print(data)

    labels = {"anomaly": table["anomaly"].to_numpy()}
    runs, _ = compare(data, labels, arguments, num_latents=4, num_values=8, steps=3000)
    scores = zip(channels, runs[0].results["held_out"]["averaged"]["r2_features"], strict=True)
    print("held-out R² of channels:", ", ".join(f"{name} {value:.2f}" for name, value in scores))
    qlae.describe(runs[0].path, data=data).save(arguments.out / "description")
    print(f"{(time.perf_counter() - began) / 60:.1f} minutes; see {arguments.out / 'description' / 'index.html'}")


if __name__ == "__main__":
    main()
