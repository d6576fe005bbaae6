"""A field biologist's table as it came: what varies among penguins, before their species is looked at?

    pip install palmerpenguins    # brings penguins-raw.csv (Palmer Station, CC0)
    python examples/penguins.py

344 rows with dates, missing values, text, free comments, and birds that were measured in more than one year.
`qlae data inspect` on the file shows how every column would be used, and what has to be decided. The species, the sex
and the island, which all but gives the species away, are used only at the end. All rows with the same number of nest
and bird are on one side of the split.
"""

import time
from pathlib import Path

import palmerpenguins
import pandas as pd
from comparison import compare, parse_arguments

import qlae

TABLE = Path(palmerpenguins.__file__).parent / "data" / "penguins-raw.csv"
KEPT_BACK = ["Species", "Island", "Sex"]
USELESS = ["studyName", "Region", "Stage", "Comments"]  # the year again, constant, constant, and text


def main() -> None:
    arguments = parse_arguments(__doc__.splitlines()[0], "penguins")
    began = time.perf_counter()
    options = {"group_column": "Individual ID", "column_kinds": {"Sample Number": "identifier"}}
    data = qlae.load_data(str(TABLE), drop_columns=KEPT_BACK + USELESS, **options)
    print(data)

    birds = pd.read_csv(TABLE)
    labels = {name.lower(): pd.factorize(birds[name])[0] for name in KEPT_BACK}  # -1: missing
    runs, _ = compare(data, labels, arguments, num_latents=3, steps=1000)
    codes = qlae.encode(runs[0].path, str(TABLE), show=False)
    print(qlae.decode(runs[0].path, codes[:3]).T)
    qlae.describe(runs[0].path).save(arguments.out / "description")
    print(f"{(time.perf_counter() - began) / 60:.1f} minutes; see {arguments.out / 'description' / 'index.html'}")


if __name__ == "__main__":
    main()
