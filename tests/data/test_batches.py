"""Batches: the same rows wherever the images are."""

import numpy as np
import pytest
import torch

from qlae.data.batches import DeviceBatches, HostBatches, fits

CPU = torch.device("cpu")


@pytest.fixture
def images() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 255, (50, 4, 4, 3), dtype=np.uint8)


def generator(seed: int = 3) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_host_and_device_draw_the_same(images, tmp_path):
    mapped = np.memmap(tmp_path / "images", np.uint8, "w+", shape=images.shape)
    mapped[:] = images
    device = DeviceBatches(torch.from_numpy(images), 8, generator())
    host = HostBatches(mapped, 8, generator(), CPU)
    for _ in range(5):
        assert torch.equal(device.draw(), host.draw())


def test_targets_belong_to_the_observations_of_the_batch(images, tmp_path):
    targets = torch.from_numpy(images[:, :2, 0, 0].copy())
    device = DeviceBatches(torch.from_numpy(images), 8, generator(), targets)
    host = HostBatches(images, 8, generator(), CPU, targets)
    plain = DeviceBatches(torch.from_numpy(images), 8, generator())
    for batches in (device, host):
        batch, own = batches.draw_with_targets()
        assert torch.equal(own, batch[:, :2, 0, 0])
    assert torch.equal(batch, plain.draw())
    assert plain.draw_with_targets()[1] is None


def test_draws_are_rows_with_replacement(images):
    batch = DeviceBatches(torch.from_numpy(images), 200, generator()).draw().numpy()
    rows = [int(np.flatnonzero((images == image).all((1, 2, 3)))[0]) for image in batch]
    assert len(rows) == 200
    assert len(set(rows)) > 40


def test_the_generator_is_all_the_state(images):
    batches = DeviceBatches(torch.from_numpy(images), 8, generator())
    batches.draw()
    state = batches.generator.get_state()
    expected = batches.draw()
    batches.generator.set_state(state)
    assert torch.equal(batches.draw(), expected)


def test_batches_have_the_type_of_the_images(images):
    assert DeviceBatches(torch.zeros(2, 4), 8, generator()).dtype == torch.float32
    assert HostBatches(images, 8, generator(), CPU).dtype == torch.uint8


def test_everything_fits_on_a_cpu():
    assert fits(10**15, CPU)
