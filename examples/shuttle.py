"""Sensors of a space shuttle: do a few codes of unlabelled readings set the unusual states apart?

    pip install river    # brings 49,097 readings of nine sensors (UCI Statlog, 7% of them anomalies)
    python examples/shuttle.py

An engineer has nine channels without names and no list of faults. The flag that says which readings are anomalies is
used only at the end. The order of the rows was shuffled long ago, so rows are held out at random. Some channels have
rare and extreme values, which standardised features and R² are at the mercy of: see what each channel reaches.
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
    data = qlae.load_data(table.drop(columns="anomaly"))
    print(data)

    labels = {"anomaly": table["anomaly"].to_numpy()}
    runs, _ = compare(data, labels, arguments, num_latents=4, num_values=8, steps=3000)
    channels = zip(data.observations.feature_names, runs[0].results["held_out"]["averaged"]["r2_features"], strict=True)
    print("held-out R² of channels:", ", ".join(f"{name} {value:.2f}" for name, value in channels))
    qlae.describe(runs[0].path, data=data).save(arguments.out / "description")
    print(f"{(time.perf_counter() - began) / 60:.1f} minutes; see {arguments.out / 'description' / 'index.html'}")


if __name__ == "__main__":
    main()
