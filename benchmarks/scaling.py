"""Measure updates per second and memory of the full-size QLAE by batch size, resolution and number of latents.

    python benchmarks/scaling.py --device cuda --out results/performance

Each measurement is compared with a lower bound, the larger of two times: the operations of the networks divided by the
rate of matrix products, and the bytes of feature maps and parameters divided by the memory bandwidth. The rates were
measured on an H200 (`--tflops`, `--bandwidth`). Feature maps that stay in the cache until they are read again cost less
than this count, so the bound is tight only for large batches.

The benchmark writes `scaling.json` and `scaling.png`.
"""

import argparse
import gc
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator
from timing import Updates, describe, machine, milliseconds, up_to_multiple
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from qlae._io import write_json, write_whole
from qlae.config import RunConfig
from qlae.data import SourceDataset, data_config, load_data
from qlae.models.building import build_model
from qlae.resolving import resolve

DPI = 150
GIB = 2**30

# Passes over a layer's feature map, in bfloat16. In the forward pass, the convolution writes the map, the norm reads it
# and writes its output, and the next convolution reads that output. In the backward pass, the next convolution reads
# the output again for the gradient of its weights and writes the gradient of the output; the norm reads that gradient
# and the map and writes the gradient of the map; and the convolution reads the latter twice, for the gradients of its
# input and of its weights. A norm's second read within a pass comes from the cache.
PASSES = 4 + 7
ENTRY_BYTES = 2
# Bytes per parameter: its gradient and its rounded copy (2 bytes each) are written and read; its value, two moments and
# average (4 bytes each) are read and written.
PARAMETER_BYTES = 2 * (2 + 2) + 2 * (4 + 8 + 4)


@dataclass(frozen=True)
class Point:
    """One configuration to measure."""

    batch_size: int = 128
    resolution: int = 64
    num_latents: int = 12


PANELS = {"batch_size": "batch size", "resolution": "resolution (pixels)", "num_latents": "latents"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--out", type=Path, default=Path("results/performance"), help="folder for the results")
    parser.add_argument("--batch-sizes", nargs="*", type=int, default=[32, 64, 128, 256, 512, 1024])
    parser.add_argument("--resolutions", nargs="*", type=int, default=[32, 64, 128])
    parser.add_argument("--latents", nargs="*", type=int, default=[6, 12, 24, 48, 64])
    parser.add_argument("--batch-size", type=int, default=128, help="batch size while another quantity varies")
    parser.add_argument("--updates", type=int, default=50, help="updates per turn")
    parser.add_argument("--turns", type=int, default=4, help="number of turns; the median is reported")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--tflops", type=float, default=790, help="rate of bfloat16 matrix products (TFLOP/s)")
    parser.add_argument("--bandwidth", type=float, default=4.3, help="memory bandwidth (TB/s)")
    options = parser.parse_args()
    device = torch.device(options.device)
    torch.set_num_threads(options.threads)

    ranges = {"batch_size": options.batch_sizes, "resolution": options.resolutions, "num_latents": options.latents}
    default = Point(options.batch_size)
    panels = {name: [replace(default, **{name: size}) for size in sizes] for name, sizes in ranges.items() if sizes}
    results: dict[Point, dict[str, Any]] = {}
    print(HEADER, flush=True)
    for point in dict.fromkeys(point for points in panels.values() for point in points):
        results[point] = measure(point, device, options)
        print(row(results[point]), flush=True)
    where = machine(device) | {"tflops": options.tflops, "terabytes_per_second": options.bandwidth}
    print(describe(where))
    measured = {name: [results[point] for point in points] for name, points in panels.items()}
    options.out.mkdir(parents=True, exist_ok=True)
    write_json(options.out / "scaling.json", where | {"model": "qlae", "against": measured})
    picture = figure(measured, f"qlae, {where['machine']}")
    write_whole(options.out / "scaling.png", partial(picture.savefig, format="png", dpi=DPI))


def measure(point: Point, device: torch.device, options: argparse.Namespace) -> dict[str, Any]:
    """Measure the time of an update and its memory, and compute the lower bound of the time.

    ``peak_bytes`` is the peak of allocated tensors, including the start-up, in which cuDNN tries its kernels.
    ``held_bytes`` is the memory that torch has reserved at the end, including the graph.
    """
    on_gpu = device.type == "cuda"
    gc.collect()  # frees the previous configuration, whose graph holds memory
    if on_gpu:
        torch.cuda.init()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)
    data = load_images(point.resolution)
    config = resolve(
        "qlae",
        data_config(data),
        6,
        batch_size=point.batch_size,
        num_latents=point.num_latents,
        precision="bfloat16" if on_gpu else "float32",
    )
    updates = Updates(config, data, device, compile=True)
    updates.start()
    count = up_to_multiple(options.updates, updates.block)
    spent = statistics.median(milliseconds(partial(updates, count), device) / count for _ in range(options.turns))
    operations, moved = count_work(config)
    floors = {
        "operations": operations / options.tflops / 1e9,  # milliseconds
        "memory": moved / options.bandwidth / 1e9,
    }
    bound = max(floors, key=lambda name: floors[name])
    return asdict(point) | {
        "milliseconds": spent,
        "updates_per_second": 1000 / spent,
        "peak_bytes": torch.cuda.max_memory_allocated(device) if on_gpu else None,
        "held_bytes": torch.cuda.memory_reserved(device) if on_gpu else None,
        "operations": operations,
        "moved_bytes": moved,
        "floor_milliseconds": floors[bound],
        "bound": bound,
    }


@cache
def load_images(resolution: int) -> SourceDataset:
    """Return a small rendered data set, in memory."""
    return load_data("shapes3d", resolution=resolution, sources=["floor hue", "wall hue", "shape"]).in_memory()


def count_work(config: RunConfig) -> tuple[int, int]:
    """Count the floating-point operations and the bytes moved by an update.

    A backward pass has twice the operations of a forward pass. The count omits the decoder's first convolution, which
    runs once per batch, the images, the latent space and the loss, which are negligible.
    """
    model = build_model(config)
    entries = 0  # of the feature maps of one image

    def add(module: nn.Module, inputs: object, maps: torch.Tensor) -> None:
        nonlocal entries
        entries += maps[0].numel()

    def forward(num_images: int) -> int:
        images = torch.zeros(num_images, 3, config.data.resolution, config.data.resolution)
        with FlopCounterMode(display=False) as counter, torch.no_grad():
            model(images)
        return counter.get_total_flops()

    hooks = [m.register_forward_hook(add) for m in model.modules() if isinstance(m, nn.Conv2d | nn.ConvTranspose2d)]
    once = forward(1)
    for hook in hooks:
        hook.remove()
    each = forward(2) - once
    num_parameters = sum(parameter.numel() for parameter in model.parameters())
    moved = config.training.batch_size * entries * PASSES * ENTRY_BYTES + num_parameters * PARAMETER_BYTES
    return 3 * config.training.batch_size * each, moved


HEADER = (
    f"{'batch':>6}{'pixels':>8}{'latents':>9}{'ms':>10}{'updates/s':>11}{'images/s':>11}{'peak GiB':>10}"
    f"{'bound ms':>10}{'times bound':>13}  bound by"
)


def row(result: dict[str, Any]) -> str:
    """Return one line of the table under ``HEADER``."""
    peak = "–" if result["peak_bytes"] is None else f"{result['peak_bytes'] / GIB:.2f}"
    return (
        f"{result['batch_size']:6}{result['resolution']:8}{result['num_latents']:9}{result['milliseconds']:10.2f}"
        f"{result['updates_per_second']:11.1f}{result['updates_per_second'] * result['batch_size']:11,.0f}{peak:>10}"
        f"{result['floor_milliseconds']:10.3f}{result['milliseconds'] / result['floor_milliseconds']:13.2f}"
        f"  {result['bound']}"
    )


def figure(measured: dict[str, list[dict[str, Any]]], title: str) -> Figure:
    """Draw one column per quantity: updates per second and their upper bound above, and memory, if measured, below."""
    has_memory = all(result["peak_bytes"] is not None for points in measured.values() for result in points)
    rows, columns = 1 + has_memory, len(measured)
    picture = Figure(figsize=(3.4 * columns, 2.5 * rows + 0.4), layout="constrained")
    picture.suptitle(title, fontsize=11)
    all_axes = picture.subplots(rows, columns, squeeze=False)
    for column, (name, points) in enumerate(measured.items()):
        sizes = [result[name] for result in points]
        axes = all_axes[0, column]
        axes.plot(sizes, [result["updates_per_second"] for result in points], **LINE, label="measured")
        fastest = [1000 / result["floor_milliseconds"] for result in points]
        axes.plot(sizes, fastest, "--", color="0.4", linewidth=1.4, label="upper bound")
        if has_memory:
            memory = all_axes[1, column]
            memory.plot(sizes, [result["peak_bytes"] / GIB for result in points], **LINE)
        for panel in all_axes[:, column]:
            scale(panel, sizes, both=name != "num_latents")
        all_axes[-1, column].set_xlabel(PANELS[name])
    for axes, label in zip(all_axes[:, 0], ("updates per second", "peak memory, GiB"), strict=False):
        axes.set_ylabel(label)
    all_axes[0, 0].legend(fontsize=8, frameon=False)
    return picture


LINE: dict[str, Any] = {"marker": "o", "markersize": 3.5, "linewidth": 1.4}


def scale(axes: Any, sizes: Sequence[int], *, both: bool) -> None:
    """Make the x-axis logarithmic, with one tick per size, and the y-axis logarithmic (``both``) or start at 0."""
    axes.set_xscale("log")
    axes.set_xticks(sizes, [str(size) for size in sizes])
    axes.xaxis.set_minor_locator(NullLocator())
    if both:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_minor_locator(NullLocator())
    else:
        axes.set_ylim(0, 1.1 * axes.get_ylim()[1])
    axes.yaxis.set_major_formatter("{x:,g}")
    axes.tick_params(labelsize=8)
    axes.grid(alpha=0.3, linewidth=0.5)


if __name__ == "__main__":
    main()
