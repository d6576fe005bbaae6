"""Compile every kernel for a GPU that need not be there: ``python compile_kernels.py CAPABILITY``, such as 90.

The kernels' own functions are called on a CPU, with a driver that knows what GPU to compile for and launches that only
compile. One line of JSON a kernel.
"""

import json
import sys
from typing import Any

import torch
from torch import Tensor
from triton.backends.compiler import GPUTarget
from triton.runtime import driver
from triton.runtime.jit import JITFunction


class Driver:
    """All that a compilation asks of one."""

    def __init__(self, capability: int):
        self.target = GPUTarget("cuda", capability, 32)

    def get_current_target(self) -> GPUTarget:
        return self.target

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0


def only_compile() -> None:
    """Let launches do no more than compile, and tell of it."""
    run = JITFunction.run

    def compile(kernel: JITFunction, *arguments: Any, grid: Any, warmup: bool, **options: Any) -> None:
        compiled = run(kernel, *arguments, grid=grid, warmup=True, **options)
        told = {
            "name": kernel.__name__,
            "module": kernel.fn.__module__,
            "shared": compiled.metadata.shared,
            "wide_products": "wgmma" in compiled.asm["ptx"],
        }
        print(json.dumps(told))

    JITFunction.run = compile


def numbers(*shape: int, dtype: torch.dtype = torch.bfloat16) -> Tensor:
    found = torch.zeros(shape, dtype=dtype)
    return found.contiguous(memory_format=torch.channels_last) if len(shape) == 4 else found


def norms() -> None:
    from qlae.ops.kernels import leaky_norm

    for channels, side in ((32, 64), (64, 32), (128, 16), (256, 8), (256, 4)):  # of the full-size networks
        x, bias, style = numbers(2, channels, side, side), numbers(channels), numbers(2, 2 * channels)
        saved = torch.zeros(2, channels)
        leaky_norm.forward(x, bias, style, 0.3, 1e-5)
        leaky_norm.backward(x, x, bias, style, saved, saved, 0.3)
        leaky_norm.backward_again(x, x, x, bias, saved, saved, 0.3)
        leaky_norm.forward(x, None, style, 0.2, 1e-6)  # of the official form
        leaky_norm.backward(x, x, None, style, saved, saved, 0.2)


def convolutions() -> None:
    from qlae.ops.kernels import image_conv, narrow_conv, pixel_conv

    image, maps = numbers(2, 3, 64, 64), numbers(2, 32, 64, 64)
    image_conv.forward(image, numbers(32, 3, 3, 3))
    image_conv.weight_gradient(maps, image, numbers(32, 3, 3, 3))
    image_conv.input_gradient(maps, numbers(32, 3, 3, 3))
    pixel_conv.forward(maps, numbers(3, 32, 1, 1), numbers(3))
    pixel_conv.backward(numbers(2, 3, 64, 64, dtype=torch.float32), maps, numbers(3, 32, 1, 1))
    half = numbers(2, 32, 32, 32)
    for x, out, transposed in ((maps, 32, False), (maps, 32, True), (half, 64, False)):
        narrow_conv.forward(x, numbers(*((32, out) if transposed else (out, 32)), 3, 3), transposed)
        narrow_conv.weight_gradient(numbers(2, out, *x.shape[2:]), x, numbers(out, 32, 3, 3), False)
    for transposed in (False, True):
        narrow_conv.forward(numbers(2, 64, 32, 32), numbers(64, 64, 3, 3), transposed)
    narrow_conv.forward(maps, numbers(32, 32, 4, 4), False)
    narrow_conv.forward(half, numbers(32, 32, 4, 4), True)
    narrow_conv.weight_gradient(half, maps, numbers(32, 32, 4, 4), False)


def others() -> None:
    from qlae.ops.kernels import adamw, average, cross_entropy, decomposed_kl, quantized, sums

    scalar, pair, flat = torch.zeros(()), torch.ones(2), torch.zeros(4096)
    images = numbers(2, 64, 64, 3, dtype=torch.float32)
    cross_entropy.forward(images, images)
    cross_entropy.backward(scalar, images, images)
    reduced = flat.to(torch.bfloat16)
    rates = {"learning_rate": 1e-3, "beta1": 0.9, "beta2": 0.99, "weight_decay": 0.1, "epsilon": 1e-8, "clip": None}
    adamw.step(flat, reduced, flat, flat, reduced, scalar, pair, **rates)
    average.update(flat, flat, scalar, 0.999)
    sums.sum_rows(torch.zeros(264, 288), torch.bfloat16)
    z = torch.zeros(128, 12)
    quantized.forward(z, torch.zeros(12, 10), torch.full((12,), 10.0), 1.0)
    quantized.backward(z, z, z.long(), z, scalar, scalar, 10, 1.0)
    _, joint, single = decomposed_kl.forward(z, z, z, 1000)
    decomposed_kl.backward(torch.zeros(3), z, z, z, joint, single)


if __name__ == "__main__":
    driver.set_active(Driver(int(sys.argv[1])))
    only_compile()
    norms()
    convolutions()
    others()
