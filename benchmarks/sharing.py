"""Measure the milliseconds per update when one, two or three processes share one device.

    python benchmarks/sharing.py
    nvidia-cuda-mps-control -d && python benchmarks/sharing.py      # under NVIDIA's Multi-Process Service

Each process prepares a full-size QLAE, waits until all are ready, and makes `--updates` updates. The reported time is
that of the slowest process, divided by the number of updates of all processes.
"""

import argparse
import multiprocessing
import time
from multiprocessing.synchronize import Barrier

import torch
from timing import Updates, describe, machine, synchronize, up_to_multiple

from qlae.data import data_config, load_data
from qlae.resolving import resolve


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--processes", nargs="*", type=int, default=[1, 2, 3])
    parser.add_argument("--updates", type=int, default=2000, help="updates per process")
    parser.add_argument("--batch-size", type=int, default=128)
    options = parser.parse_args()
    spawn = multiprocessing.get_context("spawn")
    print(f"{'processes':>10}{'ms per update':>15}")
    for count in options.processes:
        with spawn.Manager() as manager:
            ready = manager.Barrier(count)
            jobs = [(options.device, options.updates, options.batch_size, ready)] * count
            with spawn.Pool(count) as pool:
                times = pool.starmap(time_updates, jobs, chunksize=1)
        print(f"{count:10}{max(times) / count:15.3f}", flush=True)
    print(describe(machine(torch.device(options.device))))


def time_updates(device_name: str, count: int, batch_size: int, ready: Barrier) -> float:
    """Return the milliseconds per update of this process while the others make theirs."""
    device = torch.device(device_name)
    torch.set_num_threads(1)
    data = load_data("shapes3d", sources=["floor hue", "wall hue", "shape"]).in_memory()
    precision = "bfloat16" if device.type == "cuda" else "float32"
    config = resolve("qlae", data_config(data), 6, batch_size=batch_size, precision=precision)
    updates = Updates(config, data, device, compile=True)
    updates.start()
    count = up_to_multiple(count, updates.block)
    synchronize(device)
    ready.wait()
    start = time.perf_counter()
    updates(count)
    synchronize(device)
    return 1000 * (time.perf_counter() - start) / count


if __name__ == "__main__":
    main()
