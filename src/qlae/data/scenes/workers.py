"""Work on several cores: one Python thread per worker, with one torch thread inside each.

Small kernels that torch splits over several threads become very slow when another process uses a core. Chunks of work
on Python threads do not, since torch and NumPy release the interpreter lock while they compute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

Job = TypeVar("Job")
Result = TypeVar("Result")


def in_order(work: Callable[[Job], Result], jobs: Sequence[Job], num_workers: int) -> Iterator[Result]:
    """Yield ``work(job)`` for every job, computed several at a time, in the order of the jobs.

    If the caller stops early or a job fails, jobs that have not begun are dropped. One worker is the caller's own
    thread, where work on a GPU stays on the caller's stream.
    """
    if num_workers == 1:
        yield from map(work, jobs)
        return
    before = torch.get_num_threads()
    pool = ThreadPoolExecutor(max(1, min(num_workers, len(jobs))), initializer=torch.set_num_threads, initargs=(1,))
    try:
        yield from pool.map(work, jobs)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        torch.set_num_threads(before)  # a thread's setting becomes the default of later threads
