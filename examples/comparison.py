"""The comparison that the examples with real data share: QLAE next to PCA, ICA and k-means.

Every method represents a row by the same number of numbers, learnt from the training rows alone. Then, on held-out
rows:

- R²: the mean over features (channels of series) of the share of the variance that reconstructions explain.
- accuracy: of a random forest that predicts the label from the representation, the mean over classes, so that chance is
  1 / number of classes. The forest learns from training rows.
- best latent: mutual information of the label with the single latent that is most informative about it in the training
  rows, normalised and adjusted for chance. Continuous latents are cut into as many bins as QLAE has values.

Labels take no part in the training of any method. "PCA in steps" has principal components that are rounded to as many
values as QLAE has, each equally frequent, so that it stores as many bits. k-means represents a row by its distances to
as many centres as there are dimensions; its only latent is the number of the nearest centre.
"""

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA, FastICA
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import adjusted_mutual_info_score, balanced_accuracy_score, r2_score

import qlae

MOST_ROWS = 5000  # that the forest learns from


def parse_arguments(description: str, name: str) -> argparse.Namespace:
    """Return the options of an example: folder, number of seeds and updates, and whether only to try it."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--out", type=Path, default=Path("runs") / name, help="the folder of the runs")
    parser.add_argument("--seeds", type=int, default=5, help="number of runs of each method")
    parser.add_argument("--steps", type=int, help="updates of each QLAE, instead of the number in the script")
    parser.add_argument("--fast", action="store_true", help="two seeds and 20 updates, to see that it runs")
    arguments = parser.parse_args()
    if arguments.fast:
        arguments.seeds, arguments.steps = 2, 20
    return arguments


def compare(data, labels, arguments, *, num_latents, num_values=4, steps=2000):
    """Train all methods, print the table and the consensus of the QLAEs, and return the runs of QLAE and the scores.

    Args:
        data: from ``qlae.load_data``, without labels, with held-out rows.
        labels: for each name, an array with the class of each row, 0, 1, …; rows with -1 have no label.
        arguments: from `parse_arguments`.
        num_latents: dimensions of every method.
        num_values, steps: values per latent and updates of QLAE.
    """
    known, unseen = data.training_rows, data.held_out_rows
    rows = np.asarray(data.images[:], np.float64)
    kept = np.flatnonzero([not name.endswith(" is missing") for name in data.observations.feature_names])
    if len(kept) and rows.ndim == 2:
        rows = rows[:, kept]
    spread = rows[known].std(0)
    flat = ((rows - rows[known].mean(0)) / np.where(spread > 0, spread, 1)).reshape(len(rows), -1)
    print(f"{len(known):,} training rows, {len(unseen):,} held-out rows; {num_latents} latents")
    for name, label in labels.items():
        num_classes = len(np.unique(label[known][label[known] >= 0]))
        print(f"{name}: {num_classes} classes, accuracy by chance {1 / num_classes:.3f}")

    runs, methods = [], {"QLAE": []}
    for seed in range(arguments.seeds):
        began = time.perf_counter()
        options = {"size": "small", "num_latents": num_latents, "num_values": num_values, "seed": seed}
        updates = arguments.steps or steps
        run = qlae.train("qlae", data, out=arguments.out / f"s{seed}", steps=updates, show=False, **options)
        runs.append(run)
        model = qlae.load(run.path)
        codes = model.encode(data.images[:])
        print(f"QLAE with seed {seed}: {time.perf_counter() - began:.0f} s", flush=True)
        decoded = np.asarray(model.decode(codes[unseen], as_array=True))  # of categories the shares of levels
        decoded = decoded[:, kept] if decoded.shape != rows[unseen].shape else decoded
        methods["QLAE"].append(score(rows[unseen], decoded, codes, codes, labels, known, unseen, seed))
        for name, (latents, reconstruct) in other_methods(flat, known, num_latents, num_values, seed).items():
            decoded = reconstruct(unseen).reshape(rows[unseen].shape) * spread + rows[known].mean(0)
            bins = latents.argmin(1)[:, None] if name == "k-means" else cut(latents, known, num_values)
            methods.setdefault(name, []).append(
                score(rows[unseen], decoded, latents, bins, labels, known, unseen, seed)
            )

    print_table(methods)
    consensus = qlae.consensus(runs, data=data, show=False)
    consensus.save(arguments.out / "consensus")
    print(f"{consensus.describe()} The page is {arguments.out / 'consensus' / 'index.html'}.")
    return runs, methods


def cut(latents, known, num_values):
    """Return the number of the bin of each latent, of `num_values` bins that are equally frequent in the known rows."""
    edges = np.quantile(latents[known], np.arange(1, num_values) / num_values, axis=0)
    return (latents[:, None] > edges[None]).sum(1)


def other_methods(flat, known, num_latents, num_values, seed):
    """Return for each method its latents (n, num_latents) and a function that reconstructs rows."""
    pca = PCA(num_latents, random_state=seed).fit(flat[known])
    components = pca.transform(flat)
    ica = FastICA(num_latents, random_state=seed, whiten="unit-variance", max_iter=1000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of convergence; a run that has not converged is scored as it is
        independent = ica.fit(flat[known]).transform(flat)
    means = KMeans(num_latents, n_init=3, random_state=seed).fit(flat[known])
    coarse = np.empty_like(components)
    for column, bins in enumerate(cut(components, known, num_values).T):
        middles = [components[known][bins[known] == value, column].mean() for value in range(num_values)]
        coarse[:, column] = np.array(middles)[bins]
    return {
        "PCA": (components, lambda rows: pca.inverse_transform(components[rows])),
        "PCA in steps": (coarse, lambda rows: pca.inverse_transform(coarse[rows])),
        "ICA": (independent, lambda rows: ica.inverse_transform(independent[rows])),
        "k-means": (means.transform(flat), lambda rows: means.cluster_centers_[means.predict(flat[rows])]),
    }


def score(truth, decoded, latents, bins, labels, known, unseen, seed):
    """Return held-out R², and for each label the accuracy of a forest and what the best latent says."""
    width = truth.shape[-1]
    scores = {"R²": r2_score(truth.reshape(-1, width), decoded.reshape(-1, width))}
    for name, label in labels.items():
        learnt = np.random.default_rng(seed).permutation(known[label[known] >= 0])[:MOST_ROWS]
        asked = unseen[label[unseen] >= 0]
        forest = RandomForestClassifier(200, min_samples_leaf=2, class_weight="balanced", random_state=seed)
        predicted = forest.fit(latents[learnt], label[learnt]).predict(latents[asked])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a class without held-out rows
            scores[f"{name}: accuracy"] = balanced_accuracy_score(label[asked], predicted)
        informative = [adjusted_mutual_info_score(label[learnt], column[learnt]) for column in bins.T]
        best = int(np.argmax(informative))
        scores[f"{name}: best latent"] = adjusted_mutual_info_score(label[asked], bins[asked, best])
    return scores


def print_table(methods):
    """Print the mean and the standard deviation over seeds."""
    for key in next(iter(methods.values()))[0]:
        cells = []
        for name, results in methods.items():
            values = np.array([result[key] for result in results])
            cells.append(f"{name} {values.mean():.3f} ± {values.std(ddof=1):.3f}")
        print(f"{key:28} " + "   ".join(cells))
