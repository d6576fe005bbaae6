"""Measure how fast the scenes render: images per second for a grid and for random images.

    python benchmarks/rendering.py [--scene shapes3d] [--resolution 64] [--device cpu] [--images 100000]

Geometry is traced in the first pass and cached if it fits, so the second pass shows colouring alone. On a busy machine,
the figures are lower bounds; compare ratios within one run.
"""

import argparse
import math
import time
from collections.abc import Callable

import numpy as np
import torch

from qlae.data.scenes import make_scene


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scene", default="shapes3d")
    parser.add_argument("--resolution", type=int, default=64)
    parser.add_argument("--device", default="cpu")
    parser.add_argument(
        "--images", type=int, default=0, help="about the largest number of images of the grid; 0 for all"
    )
    options = parser.parse_args()
    scene = make_scene(options.scene, options.resolution, options.device)
    grid = part_of_grid(scene.source_sizes, options.images)
    num_images = math.prod(len(levels) for levels in grid)
    shape = (num_images, *scene.image_shape)
    on_device = torch.empty(shape, dtype=torch.uint8, device=options.device) if options.device != "cpu" else None
    out = np.empty(shape, dtype=np.uint8) if on_device is None else on_device
    for name in ("first pass", "second pass"):
        measure(name, num_images, lambda: scene.render_grid(grid, out=out))
    if on_device is not None:
        measure("copy to the host", num_images, lambda: on_device.cpu())
    rng = np.random.default_rng(0)
    levels = np.stack([rng.integers(0, size, 2000) for size in scene.source_sizes], axis=1)
    measure("random images", len(levels), lambda: scene.render(levels))


def part_of_grid(sizes: tuple[int, ...], num_images: int) -> list[range]:
    """Return all levels of the last sources, and as many of the first as give a grid of about this size."""
    grid = [range(size) for size in sizes]
    for source in range(len(sizes)):
        others = math.prod(len(levels) for i, levels in enumerate(grid) if i != source)
        if num_images and others * sizes[source] > num_images:
            grid[source] = range(max(1, min(sizes[source], round(num_images / others))))
    return grid


def measure(name: str, num_images: int, work: Callable[[], object]) -> None:
    """Run ``work`` once and print how many images per second it rendered."""
    start = time.perf_counter()
    work()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    seconds = time.perf_counter() - start
    print(f"{name:18} {num_images:9,} images  {seconds:8.2f} s  {num_images / seconds:12,.0f} per second")


if __name__ == "__main__":
    main()
