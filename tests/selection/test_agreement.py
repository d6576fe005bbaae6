"""Agreement between representations: answers known by hand, invariances, and chance."""

import numpy as np
import pytest

from qlae.selection import agreement, represent, similarity
from qlae.selection.agreement import EXACT_CELLS, latent_agreement


def grid(*sizes, copies=1):
    """Return every combination of codes, (prod sizes · copies, len sizes)."""
    codes = np.stack(np.meshgrid(*map(range, sizes), indexing="ij"), -1).reshape(-1, len(sizes))
    return np.tile(codes, (copies, 1))


def test_codes_that_differ_in_order_and_numbering_agree_fully():
    codes = grid(4, 3, 5, copies=20)
    renumbered = np.column_stack([(codes[:, 2] * 2) % 5, 3 - codes[:, 0], codes[:, 1] + 7])
    assert agreement(represent(codes=codes), represent(codes=renumbered)) == pytest.approx(1.0)


def test_a_source_in_two_latents_agrees_with_itself_in_one():
    """They resemble each other, and InfoM does not mind either."""
    codes = grid(4, 4, copies=50)
    twice = represent(codes=codes[:, [0, 0, 1]])
    assert agreement(represent(codes=codes), twice) == pytest.approx(1.0, abs=1e-3)
    coarse = np.column_stack([codes[:, 0] // 2, codes[:, 0] % 3, codes[:, 1]])  # the first two make one of four values
    pair = similarity(represent(codes=codes), represent(codes=coarse))
    assert pair == pytest.approx(np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]), abs=0.01)


def test_a_latent_of_two_sources_agrees_less():
    """It resembles two latents that are unlike each other: ((1 + 1) / 2 + (1 + 1/2) / 2) / 2 by hand."""
    codes = grid(4, 4, copies=50)
    mixed = np.column_stack([codes[:, 0], (codes[:, 0] + 4 * codes[:, 1])])
    modular, entangled = represent(codes=codes), represent(codes=mixed)
    assert similarity(modular, entangled) == pytest.approx(np.array([[1.0, 1.0], [0.0, 1.0]]), abs=0.01)
    assert agreement(modular, entangled) == pytest.approx(0.875, abs=0.01)


def test_rotated_latents_agree_less_than_scaled_ones():
    random = np.random.default_rng(0)
    sources = random.uniform(size=(5_000, 3))
    rotation = np.linalg.qr(random.normal(size=(3, 3)))[0]
    original = represent(sources)
    same, rotated = represent(np.exp(-3 * sources[:, ::-1])), represent(sources @ rotation)
    assert agreement(original, same) > 0.99
    assert agreement(original, rotated) < 0.4


def test_continuous_latents_compare_with_codes_of_the_same_source():
    sources = np.random.default_rng(1).uniform(size=(4_000, 2))
    codes = (sources * 5).astype(int)
    pair = similarity(represent(sources), represent(codes=codes))
    assert (np.diag(pair) > 0.9).all()  # 20 bins determine 5 codes, but for bins that lie across a border
    assert pair[0, 1] < 0.01
    assert pair[1, 0] < 0.01


@pytest.mark.parametrize("size", [10, 200])
def test_independent_codes_do_not_agree_however_many_values_they_have(size):
    assert (size**2 > EXACT_CELLS) == (size == 200)
    random = np.random.default_rng(2)
    first, second = (represent(codes=random.integers(size, size=(2_000, 6))) for _ in range(2))
    assert similarity(first, second).max() < 0.02
    assert agreement(first, second) < 0.01


def test_unused_latents_do_not_count():
    codes = grid(4, 4, copies=100)
    rare = (np.arange(len(codes)) == 5).astype(int)
    with_unused = np.column_stack([codes, np.zeros(len(codes), int), rare])
    representation = represent(codes=with_unused)
    assert (representation.num_used, representation.num_latents) == (2, 4)
    assert agreement(represent(codes=codes), representation) == pytest.approx(1.0)
    still = represent(np.column_stack([np.linspace(0, 1, 50), 0.01 * np.linspace(0, 1, 50)]))
    assert still.used.tolist() == [True, False]


def test_a_run_without_used_latents_agrees_with_nothing():
    codes = grid(4, 4, copies=10)
    assert agreement(represent(codes=codes), represent(codes=0 * codes)) == 0.0


def test_agreement_is_symmetric_and_checks_its_arguments():
    random = np.random.default_rng(3)
    first, second = represent(random.normal(size=(500, 3))), represent(codes=random.integers(4, size=(500, 5)))
    assert agreement(first, second) == pytest.approx(agreement(second, first))
    with pytest.raises(ValueError, match="500 and 400 rows"):
        agreement(first, represent(codes=random.integers(4, size=(400, 5))))
    between = np.array([[0.8, 0.2], [0.0, 0.0]])
    assert latent_agreement(between, np.eye(2)).tolist() == pytest.approx([0.8 * (0.64 + 0.04), 0.0])
    assert latent_agreement(between, np.ones((2, 2))).tolist() == pytest.approx([0.8, 0.0])
    related = np.array([[1.0, 0.5], [0.5, 1.0]])
    assert latent_agreement(between, related).tolist() == pytest.approx([0.8 * (0.68 + 0.5 * 0.32), 0.0])
    with pytest.raises(ValueError, match="give latents, codes or both"):
        represent()
