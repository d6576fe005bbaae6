"""Updates a second and memory of the full-size QLAE against batch size, resolution and number of latents.

    python benchmarks/scaling.py --device cuda --out results/performance

Beside each measurement stands the floor by count, the larger of two times: the operations of the networks over the rate
at which the machine multiplies matrices, and the bytes of feature maps and parameters over that at which it moves them.
The rates are those measured on an H200 (`--tflops`, `--bandwidth`). Maps that stay in the cache until they are read
again cost less than counted, so the floor is a close one for large batches only.

Writes `scaling.json` and `scaling.png`.
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
from timing import Updates, machine, milliseconds, told, up_to_multiple
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from qlae._files import write_json, write_whole
from qlae.config import RunConfig
from qlae.data import SourceDataset, data_config, load_data
from qlae.models.model import build_model
from qlae.presets import resolve

DPI = 150
GIB = 2**30

# Passes over a layer's feature map, in bfloat16. Forward the convolution writes it, the norm reads it and writes as
# much, and the next convolution reads that. Backward the next convolution reads that again for its weights, and writes
# its gradient; the norm reads the gradient and the map, and writes the map's gradient; this the convolution reads
# twice, for its input's and for its weights'. What a norm reads a second time within a pass comes from the cache.
PASSES = 4 + 7
ENTRY_BYTES = 2
# Of a parameter: its gradient and its rounded copy, 2 each, are written and read; its value, two moments and average, 4
# each, are read and written.
PARAMETER_BYTES = 2 * (2 + 2) + 2 * (4 + 8 + 4)


@dataclass(frozen=True)
class Point:
    """What is measured."""

    batch_size: int = 128
    resolution: int = 64
    num_latents: int = 12


PANELS = {"batch_size": "batch size", "resolution": "resolution, pixels a side", "num_latents": "latents"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--out", type=Path, default=Path("results/performance"), help="a folder")
    parser.add_argument("--batch-sizes", nargs="*", type=int, default=[32, 64, 128, 256, 512, 1024])
    parser.add_argument("--resolutions", nargs="*", type=int, default=[32, 64, 128])
    parser.add_argument("--latents", nargs="*", type=int, default=[6, 12, 24, 48, 64])
    parser.add_argument("--batch-size", type=int, default=128, help="where another size varies")
    parser.add_argument("--updates", type=int, default=50, help="a turn")
    parser.add_argument("--turns", type=int, default=4, help="of which the median counts")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--tflops", type=float, default=790, help="10^12 operations a second, products in bfloat16")
    parser.add_argument("--bandwidth", type=float, default=4.3, help="10^12 bytes a second")
    options = parser.parse_args()
    device = torch.device(options.device)
    torch.set_num_threads(options.threads)

    ranges = {"batch_size": options.batch_sizes, "resolution": options.resolutions, "num_latents": options.latents}
    usual = Point(options.batch_size)
    panels = {name: [replace(usual, **{name: size}) for size in sizes] for name, sizes in ranges.items() if sizes}
    found: dict[Point, dict[str, Any]] = {}
    print(HEADER, flush=True)
    for point in dict.fromkeys(point for points in panels.values() for point in points):
        found[point] = measure(point, device, options)
        print(row(found[point]), flush=True)
    where = machine(device) | {"tflops": options.tflops, "terabytes_per_second": options.bandwidth}
    print(told(where))
    measured = {name: [found[point] for point in points] for name, points in panels.items()}
    options.out.mkdir(parents=True, exist_ok=True)
    write_json(options.out / "scaling.json", where | {"model": "qlae", "against": measured})
    drawn = figure(measured, f"qlae, {where['machine']}")
    write_whole(options.out / "scaling.png", partial(drawn.savefig, format="png", dpi=DPI))


def measure(point: Point, device: torch.device, options: argparse.Namespace) -> dict[str, Any]:
    """The time of an update, the memory it takes, and the floor.

    The peak is that of tensors, from the start on, in which cuDNN tries its kernels; what torch holds of the device in
    the end, graph included, stands beside it.
    """
    on_gpu = device.type == "cuda"
    gc.collect()  # the point before, whose graph holds memory
    if on_gpu:
        torch.cuda.init()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)
    data = rendered(point.resolution)
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
    count = up_to_multiple(options.updates, updates.stretch)
    spent = statistics.median(milliseconds(partial(updates, count), device) / count for _ in range(options.turns))
    operations, moved = counted(config)
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
def rendered(resolution: int) -> SourceDataset:
    return load_data("shapes3d", resolution=resolution, sources=["floor hue", "wall hue", "shape"]).in_memory()


def counted(config: RunConfig) -> tuple[int, int]:
    """Floating-point operations and bytes of an update, by count.

    A backward pass has twice the operations of a forward pass. Left out as negligible: the decoder's first convolution,
    which runs once a batch, the images, the latent space and the loss.
    """
    model = build_model(config)
    entries = 0  # of an image's feature maps

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
    moved = config.batch_size * entries * PASSES * ENTRY_BYTES + num_parameters * PARAMETER_BYTES
    return 3 * config.batch_size * each, moved


HEADER = (
    f"{'batch':>6}{'pixels':>8}{'latents':>9}{'ms':>10}{'updates/s':>11}{'images/s':>11}{'peak GiB':>10}"
    f"{'floor ms':>10}{'times floor':>13}  bound by"
)


def row(found: dict[str, Any]) -> str:
    """A line of the table under ``HEADER``."""
    peak = "–" if found["peak_bytes"] is None else f"{found['peak_bytes'] / GIB:.2f}"
    return (
        f"{found['batch_size']:6}{found['resolution']:8}{found['num_latents']:9}{found['milliseconds']:10.2f}"
        f"{found['updates_per_second']:11.1f}{found['updates_per_second'] * found['batch_size']:11,.0f}{peak:>10}"
        f"{found['floor_milliseconds']:10.3f}{found['milliseconds'] / found['floor_milliseconds']:13.2f}"
        f"  {found['bound']}"
    )


def figure(measured: dict[str, list[dict[str, Any]]], title: str) -> Figure:
    """A column a range: updates a second and the floor above, memory below where it was measured."""
    remembered = all(found["peak_bytes"] is not None for points in measured.values() for found in points)
    rows, columns = 1 + remembered, len(measured)
    drawn = Figure(figsize=(3.4 * columns, 2.5 * rows + 0.4), layout="constrained")
    drawn.suptitle(title, fontsize=11)
    all_axes = drawn.subplots(rows, columns, squeeze=False)
    for column, (name, points) in enumerate(measured.items()):
        sizes = [found[name] for found in points]
        axes = all_axes[0, column]
        axes.plot(sizes, [found["updates_per_second"] for found in points], **LINE, label="measured")
        fastest = [1000 / found["floor_milliseconds"] for found in points]
        axes.plot(sizes, fastest, "--", color="0.4", linewidth=1.4, label="at the floor by count")
        if remembered:
            memory = all_axes[1, column]
            memory.plot(sizes, [found["peak_bytes"] / GIB for found in points], **LINE)
        for shown in all_axes[:, column]:
            scale(shown, sizes, both=name != "num_latents")
        all_axes[-1, column].set_xlabel(PANELS[name])
    for axes, label in zip(all_axes[:, 0], ("updates a second", "peak memory, GiB"), strict=False):
        axes.set_ylabel(label)
    all_axes[0, 0].legend(fontsize=8, frameon=False)
    return drawn


LINE: dict[str, Any] = {"marker": "o", "markersize": 3.5, "linewidth": 1.4}


def scale(axes: Any, sizes: Sequence[int], *, both: bool) -> None:
    """A logarithmic axis of the sizes, with ticks where they are; the other too, or from 0."""
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
