"""Half a year of a glucose sensor: which shapes do two hours have, and do they warn of low glucose?

    pip install bokeh_sampledata    # brings 52,281 readings of one person (public domain)
    python examples/glucose.py

A diabetologist has one long recording, a reading every five minutes, with gaps, repeated times, and the text "nil"
where the current of the sensor is missing. It is cut into windows of two hours, the last of which are held out.
At the end the windows are compared with what came after them: was glucose below 80 mg/dl within the next hour? And with
the time of day, in six parts.
"""

import time

import numpy as np
import pandas as pd
from bokeh_sampledata.glucose import data as recording
from comparison import compare, parse_arguments

import qlae

WINDOW, STRIDE = 24, 6  # readings: two hours, every half hour
LOW = 80  # mg/dl


def is_low_after(glucose: pd.Series, starts: pd.Series) -> np.ndarray:
    """Return for each window 1 if a reading of the next hour is below `LOW`, 0 if none is, -1 if none was taken."""
    low = np.full(len(starts), -1)
    ends = starts + pd.Timedelta(minutes=5 * (WINDOW - 1))
    first = glucose.index.searchsorted(ends, side="right")
    last = glucose.index.searchsorted(ends + pd.Timedelta(hours=1), side="right")
    for row, (begin, end) in enumerate(zip(first, last, strict=True)):
        if end > begin:
            low[row] = glucose.iloc[begin:end].min() < LOW
    return low


def main() -> None:
    arguments = parse_arguments(__doc__.splitlines()[0], "glucose")
    began = time.perf_counter()
    table = recording.assign(isig=pd.to_numeric(recording["isig"], errors="coerce"))  # "nil" is missing
    data = qlae.load_data(table, window=WINDOW, stride=STRIDE)
    print(data)

    starts = data.ids["datetime"]
    labels = {"low soon": is_low_after(recording["glucose"], starts), "time of day": starts.dt.hour.to_numpy() // 4}
    runs, _ = compare(data, labels, arguments, num_latents=6, num_values=6, steps=1000)
    qlae.describe(runs[0].path, data=data).save(arguments.out / "description")
    print(f"{(time.perf_counter() - began) / 60:.1f} minutes; see {arguments.out / 'description' / 'index.html'}")


if __name__ == "__main__":
    main()
