"""Independent components of a trained autoencoder's latents: whitening and ICA after training, and back.

The encoder and decoder are those of a plain autoencoder, trained without this module: in training, ``z`` is the
encoder's output x. After training, ``fit`` estimates the mean μ of x and two matrices from encodings of training
images. From then on, the latents are

    z = W (x − μ),    and the decoder sees    A z + μ,

where W = R Λ^(−1/2) Vᵀ whitens by the eigenvalues Λ and eigenvectors V of the covariance and rotates by R to maximally
independent components (FastICA with log cosh, Hyvärinen 1999), and A = V Λ^(1/2) Rᵀ is its inverse.

This is the method "AE + ICA" of a paper at ICLR 2026, whose autoencoder has no other regularization than weight decay,
the only hyperparameter that it tunes. There is no code of it that we know of. What its description leaves open is
settled here:

- Directions with less than 1e-6 of the largest variance are dropped. Their components, the last ones, are 0 for every
  image, so the number of latents stays.
- Components are ordered by the variance of x that they explain, and each has a positive third moment.
- FastICA starts from a rotation with a fixed seed and works in float64. If it does not converge, the last iterate is
  used, with a warning.
"""

import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...config import LatentConfig
from ...registry import LATENTS
from .continuous import ContinuousLatent
from .space import LatentOutput

Matrix = NDArray[np.float64]

MIN_VARIANCE = 1e-6  # of a direction, as a share of the largest
MAX_ITERATIONS = 1000
TOLERANCE = 1e-4  # of FastICA


@dataclass(frozen=True)
class IndependentConfig(LatentConfig):
    """The settings of ``IndependentComponents``."""

    @property
    def description(self) -> str:
        return "continuous, independent components"


@LATENTS.register("independent-components", IndependentConfig)
class IndependentComponents(ContinuousLatent):
    """A plain autoencoder's latent space in training, and independent components of it once it is fitted.

    Args:
        num_latents: number of dimensions n_z.

    Attributes:
        mean: (n_z,), of the encoder's output.
        unmixing: (n_z, n_z), W.
        mixing: (n_z, n_z), A.
    """

    is_fitted_after_training = True
    mean: Tensor
    unmixing: Tensor
    mixing: Tensor

    def __init__(self, num_latents: int):
        super().__init__(num_latents)
        self.register_buffer("mean", torch.zeros(num_latents))
        self.register_buffer("unmixing", torch.eye(num_latents))
        self.register_buffer("mixing", torch.eye(num_latents))

    def forward(self, x: Tensor, generator: torch.Generator | None = None) -> LatentOutput:
        self.require_inputs(x)
        return LatentOutput(x if self.training else (x - self.mean) @ self.unmixing.T, None, {})

    def decoder_inputs(self, z: Tensor) -> Tensor:
        return z if self.training else z @ self.mixing.T + self.mean

    def fit(self, x: NDArray[Any]) -> None:
        """Fit the components to encoder outputs (n, num_latents).

        Raises:
            ValueError: if there are fewer than two rows, or a number is not finite.
        """
        for name, array in fit_components(x)._asdict().items():
            getattr(self, name).copy_(torch.from_numpy(array))


class Components(NamedTuple):
    """A linear change of latents and its inverse."""

    mean: Matrix  # (n,)
    unmixing: Matrix  # (n, n), W; rows of dropped components are 0
    mixing: Matrix  # (n, n), A; columns of dropped components are 0


def fit_components(x: NDArray[Any], *, seed: int = 0) -> Components:
    """Return the independent components of a sample (n, dimensions) by whitening and FastICA."""
    x = np.asarray(x, np.float64)
    if x.ndim != 2 or len(x) < 2 or not np.isfinite(x).all():
        raise ValueError(f"ICA needs at least two rows of finite latents, got shape {x.shape}")
    size = x.shape[1]
    mean = x.mean(0)
    variances, directions = np.linalg.eigh(np.atleast_2d(np.cov(x.T, bias=True)))
    kept = variances > MIN_VARIANCE * max(variances[-1], 0.0)
    if variances[-1] <= 0:
        warnings.warn("all latents are constant, so there are no components to find", stacklevel=3)
        return Components(mean, np.zeros((size, size)), np.zeros((size, size)))
    deviations, directions = np.sqrt(variances[kept]), directions[:, kept]
    white = (x - mean) @ (directions / deviations)
    rotation = _rotation(white, seed)
    components = white @ rotation.T
    mixing = (directions * deviations) @ rotation.T  # (size, kept)
    order = np.argsort(-np.square(mixing).sum(0), kind="stable")
    signs = np.where((components**3).mean(0) < 0, -1.0, 1.0)
    unmixing = (signs[:, None] * (rotation @ (directions / deviations).T))[order]
    mixing = (mixing * signs)[:, order]
    rest = size - len(order)
    return Components(mean, np.pad(unmixing, ((0, rest), (0, 0))), np.pad(mixing, ((0, 0), (0, rest))))


def _rotation(white: Matrix, seed: int) -> Matrix:
    """Return the rotation (k, k) of white data (n, k) to independent components."""
    from sklearn.decomposition import FastICA
    from sklearn.exceptions import ConvergenceWarning

    size = white.shape[1]
    if size == 1:
        return np.ones((1, 1))
    start = np.linalg.qr(np.random.default_rng(seed).normal(size=(size, size)))[0]
    ica = FastICA(whiten=False, fun="logcosh", w_init=start, max_iter=MAX_ITERATIONS, tol=TOLERANCE)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        rotation: Matrix = ica.fit(white).components_
    if any(issubclass(warning.category, ConvergenceWarning) for warning in caught):
        warnings.warn(
            f"ICA did not converge within {MAX_ITERATIONS:,} iterations, so the components are those of the last one; "
            "several directions of the latents may be equally distributed in all rotations, or the autoencoder may "
            "need more updates",
            stacklevel=4,
        )
    left, _, right = np.linalg.svd(rotation)  # the nearest rotation, so that its transpose is its inverse
    nearest: Matrix = left @ right
    return nearest
