"""``qlae.QLAE``: the quantized-latent autoencoder as a scikit-learn transformer.

Training happens in a temporary directory, which is removed before ``fit`` returns; the process is left as it was. A
fitted estimator holds its model in ``model_``. Pickles of it hold a config and the bytes of a safetensors file instead
of torch objects.
"""

import os
import tempfile
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Self

import joblib
import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from pandas.api.types import is_numeric_dtype, is_object_dtype
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted

from ._checks import require_known, whole_number
from ._process import evaluation_process
from .data import load_data
from .data.dataset import first_few, unmask
from .data.hold_out import HOLD_OUT
from .models.latents import QuantizedLatent
from .models.model import Model
from .pipeline import train
from .resolving import default_latents
from .runs.load_model import load, pack_model, unpack_model
from .scoring.evaluation import encode_sample
from .scoring.sample import NUM_SAMPLES, draw_sample
from .training.trainer import TrainingDiverged, TrainingInterrupted

try:
    from sklearn.utils.validation import validate_data
except ImportError:  # scikit-learn before 1.6

    def validate_data(estimator: Any, X: Any, **options: Any) -> Any:
        return estimator._validate_data(X, **options)


OUTPUTS = ("latents", "codes")
#: Parameters that are options of ``qlae.train`` as they are.
TRAINED_WITH = ("num_values", "steps", "batch_size", "learning_rate", "weight_decay", "size", "device")
PACKED = "_packed_model"  # takes the place of ``model_`` in a pickle


class QLAE(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Quantized-latent autoencoder: represent each observation by a few latents that take a few values each.

    A transformer for scikit-learn, which can be used in a ``Pipeline`` and in ``GridSearchCV``. Observations are
    vectors (n, d), which are standardised, series (n, t, c), or images (n, h, w, c); see ``qlae.load_data``. ``y`` is
    ignored everywhere.

    Args:
        num_latents: number of latents; by default 10, or the number of features of vectors that have fewer.
        num_values: values per latent, one number or one per latent.
        steps: number of updates.
        batch_size: observations per update.
        learning_rate: of AdamW.
        weight_decay: decoupled. Larger values make latents more interpretable and reconstructions less accurate.
        size: ``"small"`` networks, or the ``"full"`` ones of ``qlae.train``, for which a GPU pays.
        output: what ``transform`` returns and ``inverse_transform`` takes: ``"latents"`` (floats) or ``"codes"``
            (integers, the index of each latent's value). It can be changed after ``fit``.
        layout: ``"images"``, ``"vectors"`` or ``"series"``, where the shape is ambiguous: floats (n, h, w) are taken
            for series unless ``layout="images"``.
        random_state: an integer for reproducible results (the seed of ``qlae.train``), a generator, or None.
        hold_out: share of the observations that is not trained on, to score the model on, at least 20 and at most
            10,000; 0 trains on all. It pays where nobody else scores the model: within ``cross_validate`` or
            ``GridSearchCV``, which hold out folds themselves, 0 leaves more to train on.
        n_jobs: number of CPU threads; None for one, which is fastest for small networks, and -1 for all cores.
        device: ``"cpu"``, ``"cuda"``, ``"cuda:1"``, … or ``"auto"``.
        verbose: whether to draw a progress bar.

    Attributes:
        model_: the trained model, as ``qlae.load`` returns it.
        training_score_: R² of vectors and series, or PSNR of images, of the observations that were trained on (10,000
            of them if there are more).
        held_out_score_: the same for those that were held out; NaN if none were. This is the one to report.
        held_out_rows_: list of the row numbers of the observations that were held out.
        n_features_in_: number of features of vectors; the length of the second axis of other arrays.
        feature_names_in_: names of the features, if ``fit`` got a data frame with text as column names.

    Example:
        >>> import numpy as np
        >>> X = np.random.default_rng(0).normal(size=(100, 5))
        >>> estimator = QLAE(num_latents=3, num_values=4, steps=20, random_state=0, output="codes")
        >>> codes = estimator.fit_transform(X)
        >>> codes.shape, codes.dtype, estimator.inverse_transform(codes).shape
        ((100, 3), dtype('int64'), (100, 5))
        >>> estimator.get_feature_names_out().tolist()
        ['qlae0', 'qlae1', 'qlae2']
    """

    model_: Model
    training_score_: float
    held_out_score_: float
    held_out_rows_: list[int]

    def __init__(
        self,
        num_latents: int | None = None,
        num_values: Any = 10,
        *,
        steps: int = 2000,
        batch_size: int = 64,
        learning_rate: float = 2e-3,
        weight_decay: float = 0.1,
        size: str = "small",
        output: str = "latents",
        layout: str | None = None,
        random_state: Any = None,
        hold_out: float = HOLD_OUT,
        n_jobs: int | None = None,
        device: str = "cpu",
        verbose: int = 0,
    ):
        self.num_latents = num_latents
        self.num_values = num_values
        self.steps = steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.size = size
        self.output = output
        self.layout = layout
        self.random_state = random_state
        self.hold_out = hold_out
        self.n_jobs = n_jobs
        self.device = device
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> Self:
        """Train the autoencoder.

        Args:
            X: (n, d), (n, t, c), (n, h, w) or (n, h, w, c).
            y: ignored.
        """
        require_known(self.output, OUTPUTS, "output")
        _require_numbers(X)
        array = validate_data(self, unmask(X, "X"), reset=True, allow_nd=True)
        names = getattr(self, "feature_names_in_", ())
        data = load_data(array, layout=self.layout, feature_names=names, hold_out=self.hold_out)
        num_latents = default_latents(data.observations) if self.num_latents is None else self.num_latents
        options: dict[str, Any] = {name: getattr(self, name) for name in TRAINED_WITH}
        options |= {"num_latents": num_latents, "seed": _seed(self.random_state), "threads": self._num_threads()}
        options |= {"show": bool(self.verbose), "evaluate": False, "checkpoint_seconds": float("inf")}
        with tempfile.TemporaryDirectory(prefix="qlae-") as folder:  # which errors must not mention
            try:
                run = train("qlae", data, out=Path(folder) / "run", **options)
            except TrainingInterrupted:
                raise KeyboardInterrupt from None
            except TrainingDiverged as error:
                reason = str(error).partition(";")[0]
                raise TrainingDiverged(f"{reason}; a lower learning rate is the usual remedy") from None
            self.model_ = load(run.path, device=self.device)
        sample, self.held_out_rows_ = draw_sample(data, NUM_SAMPLES), data.held_out_rows.tolist()
        self.training_score_ = self._score(np.asarray(data.images[sample]))
        self.held_out_score_ = np.nan
        if self.held_out_rows_:
            self.held_out_score_ = self._score(np.asarray(data.images[self.held_out_rows_]))
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        """Return the latents (n, num_latents) or, if ``output="codes"``, the codes (n, num_latents) of observations."""
        is_codes = require_known(self.output, OUTPUTS, "output") == "codes"
        array = self._validated(X)
        with evaluation_process(self._num_threads()):
            if is_codes:
                return self.model_.encode(array)
            return self.model_.latents(array).astype(np.result_type(array.dtype, np.float32), copy=False)

    def inverse_transform(self, X: Any) -> NDArray[Any]:
        """Return the observations that latents or, if ``output="codes"``, codes (n, num_latents) stand for."""
        is_codes = require_known(self.output, OUTPUTS, "output") == "codes"
        check_is_fitted(self)
        array = check_array(X, input_name="X")
        if is_codes:
            codes = array.astype(np.int64)
            if (codes != array).any():
                raise ValueError('codes must be whole numbers; for latents, set output="latents"')
            array = codes
        elif array.dtype.kind != "f":
            array = array.astype(np.float64)
        with evaluation_process(self._num_threads()):
            decoded: NDArray[Any] = self.model_.decode(array, as_array=True)
            return decoded

    def score(self, X: Any, y: Any = None) -> float:
        """Return how faithful reconstructions are; larger is better.

        For vectors and series this is R², at most 1: the share of the variance of all features, standardised as in
        ``fit``, that reconstructions explain. For images it is the PSNR in decibels. Observations that the model was
        trained on have a higher score than others: ``held_out_score_`` is that of observations which it was not.
        """
        return self._score(self._validated(X))

    def _score(self, array: NDArray[Any]) -> float:
        observations = self.model_.observations
        rows = np.require(array.reshape(len(array), *observations.shape), observations.dtype, ["C", "W"])
        with evaluation_process(self._num_threads()):
            arrays = encode_sample(self.model_, rows, task="scoring", show=False)
        return float(observations.traits.load("fidelity").score_unseen(arrays))

    def save_pretrained(self, folder: str | os.PathLike[str], *, half: bool = False) -> Path:
        """Write the fitted model to a folder, without pickle: ``config.json``, ``model.safetensors``, a model card.

        ``QLAE.from_pretrained`` restores the estimator, and ``qlae.load`` the model.

        Args:
            folder: new, empty, or written by this method before; then it is replaced.
            half: round the weights of the networks to half precision, which halves the file.
        """
        check_is_fitted(self)
        return self.model_.save_pretrained(folder, half=half)

    @classmethod
    def from_pretrained(
        cls, path: str | os.PathLike[str], *, output: str = "latents", device: str = "cpu", n_jobs: int | None = None
    ) -> Self:
        """Return a fitted estimator from a folder of ``save_pretrained`` or ``qlae export``, or from a run directory.

        Its parameters are those that the model was trained with. Options of ``qlae.train`` that the estimator does not
        have, such as schedules, are not among them, so fitting such an estimator again may give another model.

        Args:
            path: the folder.
            output, device, n_jobs: as for the class.
        """
        require_known(output, OUTPUTS, "output")
        model = load(path, device=device)
        if not isinstance(model.latent, QuantizedLatent) or model.origin is None:
            raise ValueError(
                f"{os.fspath(path)} holds a model without quantized latents, which QLAE cannot represent; use "
                "qlae.load(path)"
            )
        config = model.origin.config
        optimizer, observed = config.training.optimizer, config.data.observations
        estimator = cls(
            num_latents=config.latent.num_latents,
            num_values=config.latent.num_values,
            steps=config.training.steps,
            batch_size=config.training.batch_size,
            learning_rate=optimizer.learning_rate,
            weight_decay=optimizer.weight_decay,
            size=config.networks.size,
            output=output,
            layout=observed.kind,
            random_state=config.training.seed,
            hold_out=0.0 if config.data.held_out is None else config.data.held_out.share,
            n_jobs=n_jobs,
            device=device,
        )
        estimator.model_ = model
        estimator.n_features_in_ = observed.shape[0]
        if observed.feature_names:
            estimator.feature_names_in_ = np.asarray(observed.feature_names, dtype=object)
        return estimator

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        if "model_" in state:
            state[PACKED] = pack_model(state.pop("model_"))
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        packed = state.pop(PACKED, None)
        super().__setstate__(state)
        if packed is not None:  # on the CPU if the model was fitted on a GPU that this machine does not have
            is_missing = str(self.device).startswith("cuda") and not torch.cuda.is_available()
            self.model_ = unpack_model(packed, device="cpu" if is_missing else self.device)

    @property
    def _n_features_out(self) -> int:  # from which the mixin of scikit-learn makes the names of outputs
        return int(self.model_.latent.num_latents)

    def _validated(self, X: Any) -> NDArray[Any]:
        """Return observations as an array; raise an error unless they are such as the model was fitted to."""
        check_is_fitted(self)
        X = unmask(X, "X")
        if len(self.model_.observations.shape) == 1:
            return np.asarray(validate_data(self, X, reset=False))
        return np.asarray(check_array(X, allow_nd=True, input_name="X"))  # the model compares all axes

    def _num_threads(self) -> int:
        return int(joblib.effective_n_jobs(self.n_jobs))


def _require_numbers(X: Any) -> None:
    """Raise an error for a data frame with categories, dates or missing values, which ``qlae.train`` takes."""
    if not isinstance(X, pd.DataFrame):
        return
    others = [str(name) for name, column in X.items() if not _is_numeric(column)]
    gaps = [str(name) for name, column in X.items() if str(name) not in others and column.isna().any()]
    if others or gaps:
        what = [f"other values in {first_few(others)}"] * bool(others) + [f"NaN in {first_few(gaps)}"] * bool(gaps)
        raise ValueError(
            f"QLAE takes numbers without missing values, and the data frame has {' and '.join(what)}: train with "
            'qlae.train("qlae", frame, out=…), which takes categories, dates and missing values, and load the model '
            "with qlae.load"
        )


def _is_numeric(column: Any) -> bool:
    return bool(
        is_numeric_dtype(column) or (is_object_dtype(column) and column.map(lambda x: isinstance(x, Real)).all())
    )


def _seed(random_state: Any) -> int:
    if isinstance(random_state, Integral):
        return whole_number("random_state", int(random_state), at_least=0)
    return int(check_random_state(random_state).randint(2**31 - 1))
