"""Handwritten digits from data to codes, in about a minute on a CPU: train, score, encode, decode.

    python examples/digits.py
    qlae train qlae --data digits --size small --steps 4000 --out runs/digits   # the first half

The 1,797 images of 8×8 pixels come with scikit-learn, so nothing is downloaded. QLAE learns ten latents of four values
without labels. The class of a digit is the only known source; the script asks how much of it the codes retain, by a
linear classifier on codes, on raw pixels, and on as many principal components.
"""

import argparse
import time

import numpy as np
from PIL import Image
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import qlae

NUM_LATENTS = 10


def accuracy(features: np.ndarray, digits: np.ndarray, *steps) -> float:
    """Return the share of held-out images whose digit a linear classifier finds."""
    known, held_out, known_digits, held_out_digits = train_test_split(
        features, digits, test_size=0.25, random_state=0, stratify=digits
    )
    classifier = make_pipeline(*steps, LogisticRegression(max_iter=5000)).fit(known, known_digits)
    return classifier.score(held_out, held_out_digits)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="runs/digits", help="the run directory; delete it to train again")
    parser.add_argument("--steps", type=int, default=4000, help="updates")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    begin = time.perf_counter()

    data = qlae.load_data("digits")
    print(data)
    options = {"size": "small", "num_latents": NUM_LATENTS, "steps": arguments.steps, "seed": arguments.seed}
    run = qlae.train("qlae", data, out=arguments.out, device="cpu", **options)
    scores = run.results["averaged"]
    print(f"PSNR {scores['psnr']:.1f} dB, InfoE {scores['infoe']:.2f} (how much of the class the latents contain)")

    model = qlae.load(run.path)
    codes = model.encode(data.images)  # (1797, 10) integers
    pixels, digits = data.images.reshape(len(data), -1), data.sources[:, 0]
    num_different = len(np.unique(codes, axis=0))
    print(f"{num_different:,} different codes for {len(codes):,} images; the first is {codes[0].tolist()}")
    print(f"linear classifier on the codes: {accuracy(codes, digits, OneHotEncoder(handle_unknown='ignore')):.3f}")
    components = accuracy(pixels, digits, StandardScaler(), PCA(NUM_LATENTS))
    print(f"  on {NUM_LATENTS} principal components: {components:.3f}")
    print(f"  on all 64 pixels: {accuracy(pixels, digits, StandardScaler()):.3f}")

    rows = [np.flatnonzero(digits == digit)[0] for digit in range(10)]
    pairs = np.stack([data.images[rows], model.decode(codes[rows])])[..., 0]  # (2, 10, 8, 8)
    sheet = np.pad(pairs, ((0, 0), (0, 0), (1, 1), (1, 1))).transpose(0, 2, 1, 3).reshape(20, 100)
    Image.fromarray(sheet).resize((800, 160), Image.Resampling.NEAREST).save(run.path / "digits.png")
    print(f"{run.path / 'digits.png'}: originals above what their codes decode to")
    print(f"{time.perf_counter() - begin:.0f} seconds in total")


if __name__ == "__main__":
    main()
