"""Images decoded from changed latents, which the report draws; they are stored in ``pictures.npz``.

Three kinds of changes to the latents of a sample show what each latent encodes. All other latents are kept.

- *Interventions* step through the values that a latent can take: the values of its codebook, or, for continuous
  latents, even steps over its range.
- *Interpolations* step evenly over the range of a latent's values, as in the paper's figures. They decode values that
  are in no codebook. For continuous latents they are the interventions.
- *Strips* go from one value of a codebook to the next, in small steps. They show the transition between two codes.

Codes of vectors have no order, so there is nothing to interpolate.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..models.latents import DiscreteLatent
from ..models.model import Model
from .sample import Arrays

NUM_RECONSTRUCTIONS = 10
NUM_INTERVENED = 3  # samples whose latents are changed, as in the paper's figures
NUM_STEPS = 10  # through each latent's range
NUM_STRIP = 9  # images from one code to the next, both included
NUM_GENERATED = 30  # images decoded from the prior


def make_pictures(model: Model, images: NDArray[Any], encoded: Arrays) -> dict[str, NDArray[Any]]:
    """Return the arrays that the report draws, by name, from the evaluation sample (n, *shape) and its encoding.

    ``originals`` and ``reconstructions`` are (k, *shape), ``interventions`` (samples, steps, num_latents, *shape), and
    ``intervention_steps`` (steps, num_latents), the code or value that each latent is set to. Codes with one value each
    also have ``interpolations`` and ``interpolation_steps``, of the same kind, and ``strips`` (num_latents, steps,
    *shape) between the codes ``strip_codes`` (num_latents, 2). Models with a prior have ``generated`` observations.
    """
    rows = np.random.default_rng(0).choice(len(images), min(NUM_RECONSTRUCTIONS, len(images)), replace=False)
    originals, samples = images[rows], rows[:NUM_INTERVENED]
    latents = encoded["codes"] if "codes" in encoded else encoded["latents"]
    steps = intervention_steps(model, latents)
    pictures = {
        "originals": originals,
        "reconstructions": model.reconstruct(originals, as_array=True),
        "interventions": decode_changed(model, latents[samples], steps),
        "intervention_steps": steps,
    }
    if "codes" in encoded and "latents" in encoded:
        values = encoded["latents"]
        even = interpolation_steps(values)
        pictures["interpolations"] = decode_changed(model, values[samples], even)
        pictures["interpolation_steps"] = even
        pictures["strips"], pictures["strip_codes"] = decode_strips(model, encoded["codes"], values, int(samples[0]))
    if model.latent.has_prior:
        pictures["generated"] = model.sample(NUM_GENERATED, as_array=True)
    return pictures


def intervention_steps(model: Model, latents: NDArray[Any]) -> NDArray[Any]:
    """Return (steps, num_latents), the values that each latent is set to, from a sample (n, num_latents).

    A continuous latent moves evenly through its range, a scalar code through the values in that range in their order,
    and the code of a vector, which has no order, through the most frequent vectors.
    """
    if not isinstance(model.latent, DiscreteLatent):
        return interpolation_steps(latents)
    columns = [model.latent.ordered_codes(j, latents[:, j], NUM_STEPS) for j in range(model.latent.num_latents)]
    num_steps = min(NUM_STEPS, max(len(column) for column in columns))
    return np.stack([column[np.linspace(0, len(column) - 1, num_steps).round().astype(int)] for column in columns], 1)


def interpolation_steps(values: NDArray[Any]) -> NDArray[np.float32]:
    """Return (NUM_STEPS, num_latents), even steps over the range of each latent in a sample (n, num_latents)."""
    return np.linspace(values.min(0), values.max(0), NUM_STEPS, dtype=np.float32)


def decode_changed(model: Model, starts: NDArray[Any], steps: NDArray[Any]) -> NDArray[Any]:
    """Return the decoded samples with one latent at a time set to each of its steps.

    ``starts`` (samples, num_latents) and ``steps`` (steps, num_latents) are codes or latents; the result is (samples,
    steps, num_latents, r, r, 3).
    """
    num_steps, num_latents = steps.shape
    variants = np.broadcast_to(starts[:, None, None], (len(starts), num_steps, num_latents, num_latents)).copy()
    for j in range(num_latents):
        variants[:, :, j, j] = steps[:, j]
    pictures: NDArray[Any] = model.decode(variants.reshape(-1, num_latents), as_array=True)
    return pictures.reshape(*variants.shape[:3], *pictures.shape[1:])


def decode_strips(
    model: Model, codes: NDArray[np.integer], values: NDArray[Any], sample: int
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the transition between two neighbouring codes of each latent; all other latents are those of a sample.

    Of all neighbours that occur in the evaluation sample, with ``codes`` and ``values`` (n, num_latents), those are
    taken whose images differ most. The result is images (num_latents, NUM_STRIP, r, r, 3), and the codes at both ends
    (num_latents, 2), which are equal for a latent that always has the same code.
    """

    def decode_column(latent: int, levels: NDArray[Any]) -> NDArray[Any]:
        variants = np.tile(values[sample].astype(np.float32), (len(levels), 1))
        variants[:, latent] = levels
        decoded: NDArray[Any] = model.decode(variants, as_array=True)
        return decoded

    strips, ends = [], []
    for j in range(codes.shape[1]):
        unique_codes, rows = np.unique(codes[:, j], return_index=True)
        order = np.argsort(values[rows, j], kind="stable")
        unique_codes, levels = unique_codes[order], values[rows[order], j]
        first = last = 0
        if len(unique_codes) > 1:
            # Features are scaled alike.
            steps = np.diff(decode_column(j, levels).astype(np.float64), axis=0) / (model.observations.scale or 1.0)
            first = int(np.square(steps).mean(tuple(range(1, steps.ndim))).argmax())
            last = first + 1
        strips.append(decode_column(j, np.linspace(levels[first], levels[last], NUM_STRIP)))
        ends.append((unique_codes[first], unique_codes[last]))
    return np.stack(strips), np.asarray(ends, np.int64)
