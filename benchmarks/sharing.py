"""Several runs at once on one device: milliseconds an update of any of them, for one process, two and three.

    python benchmarks/sharing.py
    nvidia-cuda-mps-control -d && python benchmarks/sharing.py      # under NVIDIA's Multi-Process Service

Each process prepares a full-size QLAE, waits until all are ready, and makes `--updates` updates.
"""

import argparse
import multiprocessing
import time
from multiprocessing.synchronize import Barrier

import torch
from timing import Updates, machine, synchronize, told, up_to_multiple

from qlae.data import data_config, load_data
from qlae.presets import resolve


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--processes", nargs="*", type=int, default=[1, 2, 3])
    parser.add_argument("--updates", type=int, default=2000, help="of each process")
    parser.add_argument("--batch-size", type=int, default=128)
    options = parser.parse_args()
    spawn = multiprocessing.get_context("spawn")
    print(f"{'processes':>10}{'ms an update':>14}")
    for count in options.processes:
        with spawn.Manager() as manager:
            ready = manager.Barrier(count)
            jobs = [(options.device, options.updates, options.batch_size, ready)] * count
            with spawn.Pool(count) as pool:
                times = pool.starmap(updates, jobs, chunksize=1)
        print(f"{count:10}{max(times) / count:14.3f}", flush=True)
    print(told(machine(torch.device(options.device))))


def updates(device: str, count: int, batch_size: int, ready: Barrier) -> float:
    """Milliseconds that an update took here, while the others made theirs."""
    place = torch.device(device)
    torch.set_num_threads(1)
    data = load_data("shapes3d", sources=["floor hue", "wall hue", "shape"]).in_memory()
    precision = "bfloat16" if place.type == "cuda" else "float32"
    config = resolve("qlae", data_config(data), 6, batch_size=batch_size, precision=precision)
    made = Updates(config, data, place, compile=True)
    made.start()
    count = up_to_multiple(count, made.stretch)
    synchronize(place)
    ready.wait()
    start = time.perf_counter()
    made(count)
    synchronize(place)
    return 1000 * (time.perf_counter() - start) / count


if __name__ == "__main__":
    main()
