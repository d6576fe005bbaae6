"""Export a trained model for other programs: as a folder to share, and as ONNX files of encoder and decoder.

The ONNX files take and give the same arrays as ``Model.encode`` and ``Model.decode``: observations such as images
(n, r, r, 3) uint8, codes (n, num_latents) int64, latents float32. Before they are written, onnxruntime must give the
same results as torch.
"""

import contextlib
import logging
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from .._checks import whole_number
from .._io import write_bytes, write_json, write_npz
from ..models.building import Networks
from ..models.latents import DiscreteLatent
from ..models.model import Model
from .directory import Run
from .latent_names import FILE as NAMES_FILE
from .latent_names import Names
from .load_model import load
from .pretrained import DECODER, ENCODER, FILES, SAMPLE, Origin

OPSET = 18
NUM_CHECKED = 16  # images on which the two are compared
MAX_LATENT_ERROR = 1e-3  # of the largest latent
MIN_SAME_CODES = 0.98  # an entry between two values may round either way


class _Encode(nn.Module):
    """Observations, such as images (n, r, r, 3) uint8 → codes, if the model has any, and latents."""

    def __init__(self, model: Model):
        super().__init__()
        self.form, self.encoder, self.latent = model.form, model.encoder, model.latent

    def forward(self, images: Tensor) -> tuple[Tensor, ...]:
        output = self.latent(self.encoder(self.form.to_input(images)))
        return (output.z,) if output.codes is None else (output.codes, output.z)


class _Decode(nn.Module):
    """Codes, or latents of a model without codes → observations, such as images (n, r, r, 3) uint8."""

    def __init__(self, model: Model):
        super().__init__()
        self.form, self.latent, self.decoder = model.form, model.latent, model.decoder

    def forward(self, code: Tensor) -> Tensor:
        z = self.latent.to_values(code) if isinstance(self.latent, DiscreteLatent) else code
        return self.form.to_array(self.decoder(self.latent.decoder_inputs(z)))


def export_run(
    path: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    onnx: bool = False,
    half: bool = False,
    num_samples: int = 0,
    weights: str = "averaged",
    networks: Networks | None = None,
) -> list[Path]:
    """Write the model of a run to a folder, as ``Model.save_pretrained`` does, and optionally as ONNX.

    Names that were given to latents and values in the explorer are copied too.

    Args:
        path: the run directory.
        out: the folder; new, empty, or of an earlier export, which is replaced.
        onnx: also write ``encoder.onnx`` and ``decoder.onnx``.
        half: round the weights of the networks to half precision.
        num_samples: also write this many rows of the evaluation sample (codes and sources, no images), so that the
            explorer can open the folder.
        weights: ``"averaged"`` or ``"raw"``.
        networks: the encoder and the decoder, if the run was trained with custom networks.

    Returns:
        The files.
    """
    if onnx:
        require_onnx()
    whole_number("num_samples", num_samples, at_least=0)
    model = load(path, weights=weights, networks=networks)
    sample = _sample_rows(Run(path), model, weights, num_samples) if num_samples else None
    names = Names(Path(path) / NAMES_FILE, []).read()
    folder, files = model.save_pretrained(out, half=half), list(FILES)
    if sample is not None:
        write_npz(folder / SAMPLE, **sample)
    if names["latents"] or names["values"]:
        write_json(folder / NAMES_FILE, names)
        files.append(NAMES_FILE)
    if onnx:
        export_onnx(model, folder)
    return sorted(path for path in folder.iterdir() if path.name in files)


def _sample_rows(run: Run, model: Model, weights: str, count: int) -> dict[str, NDArray[Any]]:
    """Return rows of the evaluation sample of a run, encoded with the exported weights.

    The sample is in the order of the data, where neighbours are alike, so the rows are spread over all of it.
    """
    if weights != "averaged":
        raise ValueError("the explorer shows averaged weights, so a sample is exported with these only")
    if not (isinstance(model.origin, Origin) and model.origin.results and run.sample_path.is_file()):
        raise ValueError(
            f"{run.path} has no scores of its last update and so no sample; run `qlae evaluate {run.path}` first"
        )
    arrays = run.arrays(run.sample_path)
    size = len(arrays["indices"])
    rows = np.linspace(0, size - 1, min(count, size)).round().astype(np.int64)
    return {name: arrays[name][rows] for name in ("indices", "sources", "codes", "latents", "psnr") if name in arrays}


def export_onnx(model: Model, folder: str | os.PathLike[str]) -> None:
    """Write ``encoder.onnx`` and ``decoder.onnx`` to a folder and check them; they take any number of images."""
    require_onnx()
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    model = model.cpu().eval()
    observations = _random_observations(model)
    discrete, name = isinstance(model.latent, DiscreteLatent), model.observations.traits.many
    code = model.encode(observations) if discrete else model.latents(observations)
    encoder = _to_onnx(_Encode(model), observations, name, ["codes"] * discrete + ["latents"])
    decoder = _to_onnx(_Decode(model), code, "codes" if discrete else "latents", [name])
    check_onnx(model, encoder, decoder, observations)
    write_bytes(target / ENCODER, encoder)
    write_bytes(target / DECODER, decoder)


def check_onnx(model: Model, encoder: bytes, decoder: bytes, observations: NDArray[Any]) -> None:
    """Raise an error if the results of onnxruntime differ from those of torch by more than rounding."""
    *codes, latents = _run(encoder, observations)
    code: NDArray[Any]
    code = reference = model.latents(observations)
    same = np.ones_like(latents, dtype=bool)
    if codes:  # where a code fell to the other side of a tie its latent follows, and is counted once, as a code
        code = model.encode(observations)
        same = np.repeat(codes[0] == code, model.latent.num_outputs // model.latent.num_latents, axis=1)
    latent_error = (np.abs(latents - reference) * same).max() / max(np.abs(reference).max(), 1e-12)
    difference = np.abs(_run(decoder, code)[0].astype(float) - model.decode(code).astype(float))
    decoded_error = (difference / (model.observations.scale or 1.0)).max()
    most = 1 if model.observations.dtype == "uint8" else MAX_LATENT_ERROR
    if latent_error > MAX_LATENT_ERROR or same.mean() < MIN_SAME_CODES or decoded_error > most:
        raise RuntimeError(
            f"onnxruntime and torch disagree: latents by {latent_error:.2g} of the largest, {1 - same.mean():.2%} of "
            f"the codes, decoded {model.observations.traits.many} by {decoded_error:.2g}; nothing was written"
        )


def require_onnx() -> None:
    """Raise an error that says what to install if a part of ONNX is missing."""
    try:
        import onnx  # noqa: F401
        import onnxruntime  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise ValueError(f"--onnx needs {error.name}: pip install 'qlae[onnx]'") from None


def _random_observations(model: Model) -> NDArray[Any]:
    observations = model.observations
    unit = np.random.default_rng(0).random((NUM_CHECKED, *observations.shape))
    if observations.dtype == "uint8":
        return (unit * 255).astype(np.uint8)
    if len(observations.shape) < 3:
        unit = (unit - 0.5) * np.sqrt(12)  # of variance 1
    array: NDArray[Any] = unit * np.asarray(observations.scale) + np.asarray(observations.offset)
    return array.astype(observations.dtype)


def _to_onnx(module: nn.Module, example: NDArray[Any], name: str, outputs: list[str]) -> bytes:
    with torch.no_grad(), _quietly():
        program = torch.onnx.export(
            module.eval(),
            (torch.from_numpy(example),),
            input_names=[name],
            output_names=outputs,
            dynamic_shapes=({0: torch.export.Dim("n", min=1)},),
            opset_version=OPSET,
            dynamo=True,
            verbose=False,
        )
        assert program is not None
        proto = program.model_proto
    for entry in (*proto.graph.node, *proto.graph.input, *proto.graph.output, *proto.graph.value_info):
        del entry.metadata_props[:]  # traces of the code, with the paths of this machine
    content: bytes = proto.SerializeToString()
    return content


def _run(model: bytes, array: NDArray[Any]) -> list[NDArray[Any]]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return list(session.run(None, {session.get_inputs()[0].name: array}))


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """Silence the exporter, which logs and warns about its own inner workings."""
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)
