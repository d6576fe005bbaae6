"""What the caller of InfoMEC chooses: pruning, the input of InfoE, NMI of continuous sources; and the warnings."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

from qlae.metrics import infomec, nmi, score, score_file
from qlae.metrics.scores import half_sample_interval

RNG = np.random.default_rng(0)
SOURCES = RNG.integers(0, [4, 6, 3, 5], size=(600, 4))
SCALED = SOURCES * np.array([100.0, 1, 1, 1]) + 0.01 * RNG.normal(size=SOURCES.shape)


def test_dropped_latents_raise_a_warning_and_can_be_kept() -> None:
    expected = r"'paper' leaves out 3 informative latents \(z1, z2, z3\).*range > 1/20 of the largest.*prune=False"
    with pytest.warns(UserWarning, match=expected):
        pruned = infomec(SOURCES, SCALED)
    assert (pruned.num_active, pruned.infoc, pruned.prune) == (1, 1.0, True)
    assert pruned.infoc_corrected == pytest.approx(0.25, abs=0.01)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        whole = infomec(SOURCES, SCALED, prune=False)
    assert (whole.num_active, whole.to_dict()["prune"]) == (4, False)
    assert "4 of 4 latents active, not pruned" in str(whole)
    plain = infomec(SOURCES, SCALED / [100, 1, 1, 1])
    assert (whole.infom, whole.infoc) == pytest.approx((plain.infom, plain.infoc), abs=0.01)
    assert score(SOURCES, SCALED, prune=False)["infoc"] == whole.infoc


def test_constant_latents_are_inactive_without_pruning() -> None:
    latents = np.column_stack([SOURCES, np.ones(600, dtype=int)])
    assert infomec(SOURCES, latents, protocol="tripod", prune=False).num_active == 4
    assert infomec(SOURCES, latents.astype(float) + 0.0, prune=False, latent_kind="continuous").num_active == 4


def test_latents_of_noise_raise_a_warning() -> None:
    noise = RNG.integers(0, 8, (600, 6))
    with pytest.warns(UserWarning, match=r"none of the 6.*corrected"):
        result = infomec(SOURCES, noise)
    assert f"InfoM {result.infom:.3f} (0 of 6 active latents informative)" in str(result)
    assert "corrected for chance: InfoM 0.000  InfoE 0.000  InfoC 0.000" in str(result)
    with pytest.warns(UserWarning, match="only 2 of the 8"):
        infomec(SOURCES, np.hstack([SOURCES[:, :2], noise]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        infomec(SOURCES, np.hstack([SOURCES, noise[:, :4]]))  # half of them


def test_the_input_of_infoe_can_be_chosen() -> None:
    codes = np.repeat(np.arange(6), 40)
    source = np.array([0, 1, 0, 1, 0, 1])[codes]
    train, one_hot = (infomec(source, codes, protocol="official-train", code_input=how) for how in ("auto", "one-hot"))
    assert (train.infoe_input, one_hot.infoe_input) == ("scalar", "one-hot")
    assert train.infoe < 0.1
    assert train.infoe_scalar == train.infoe
    assert one_hot.infoe > 0.99
    assert one_hot.infoe_scalar is None
    paper = infomec(source, codes, code_input="scalar")
    assert paper.infoe == paper.infoe_scalar == infomec(source, codes).infoe_scalar
    with pytest.raises(ValueError, match=r"'one-hot'.*continuous"):
        infomec(source, codes + 0.1 * RNG.normal(size=240), code_input="one-hot")


def test_codes_without_values_enter_one_hot(tmp_path: Path) -> None:
    np.savez(tmp_path / "vq.npz", sources=SOURCES, codes=SOURCES)
    np.savez(tmp_path / "quantized.npz", sources=SOURCES, codes=SOURCES, latents=SOURCES / 3)
    how = {name: score_file(tmp_path / f"{name}.npz", protocol="official-train") for name in ("vq", "quantized")}
    assert how["vq"].results["infomec"].infoe_input == "one-hot"
    assert how["quantized"].results["infomec"].infoe_input == "scalar"
    as_numbers = score_file(tmp_path / "vq.npz", protocol="official-train", code_input="scalar")
    assert as_numbers.results["infomec"].infoe_input == "scalar"
    assert score_file(tmp_path / "vq.npz", latent_kind="continuous").results["infomec"].infoe_input == "scalar"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"prune": "yes"}, "prune is 'yes'"),
        ({"corrected": "no"}, "corrected is 'no'"),
        ({"code_input": "onehot"}, "code_input is 'onehot'.*'one-hot'"),
        ({"continuous_nmi": "nats"}, "continuous_nmi is 'nats'.*'denoised'"),
    ],
)
def test_unknown_choices(options: dict, message: str) -> None:
    for function in (infomec, score):
        with pytest.raises(ValueError, match=message):
            function(SOURCES, SOURCES, **options)


@pytest.mark.parametrize("num_sources", [3, 6])
def test_an_exact_copy_of_continuous_sources(num_sources: int) -> None:
    sources = np.random.default_rng(1).normal(size=(1000, num_sources))
    denoised, plain = (infomec(sources, sources[:, ::-1], continuous_nmi=how) for how in ("denoised", "r-squared"))
    assert min(denoised.infom, denoised.infoc) > 0.98
    assert plain.infom <= denoised.infom
    assert plain.to_dict()["continuous_nmi"] == "r-squared"


def test_denoised_nmi_rises_with_information_and_approaches_r_squared() -> None:
    rng = np.random.default_rng(0)
    source = rng.normal(size=2000)
    noisy = source[:, None] + np.array([8.0, 2.0, 1.0, 0.5, 0.1]) * rng.normal(size=(2000, 5))
    denoised, plain = (nmi(source, noisy, continuous_nmi=how)[0] for how in ("denoised", "r-squared"))
    assert np.all(np.diff(denoised) > 0)
    assert np.all((denoised >= 0) & (denoised <= plain))
    assert denoised[0] == 0.0
    np.testing.assert_allclose(denoised[2:], plain[2:], atol=0.02)


@pytest.mark.parametrize("protocol", ["paper", "official-train"])
def test_half_samples_have_the_scores_of_the_whole(protocol: str) -> None:
    """Halves are scored by the same code: with constant sources if the protocol counts them, and with both InfoE."""
    rng = np.random.default_rng(0)
    sources = np.column_stack([rng.integers(0, [3, 4], (200, 2)), np.zeros(200, dtype=int)])
    codes = np.where(rng.random((200, 3)) < 0.4, rng.integers(0, 5, (200, 3)), sources)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        scores = score(sources, codes, protocol=protocol, bootstrap=5)
        halves = []
        for seed in range(1, 6):
            rows = np.sort(np.random.default_rng(seed).permutation(200)[:100])
            halves.append(infomec(sources[rows], codes[rows], protocol=protocol, seed=seed).to_dict())
    assert "infoe_scalar" in scores.intervals
    for key, interval in scores.intervals.items():
        by_hand = np.clip(half_sample_interval(scores[key], [half[key] for half in halves], 0.95), 0, 1)
        assert interval == pytest.approx(tuple(by_hand), abs=1e-12), key


def test_the_latents_that_count_can_be_chosen() -> None:
    mask = np.array([True, False, True, True])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        chosen = infomec(SOURCES, SCALED, active=mask)
    assert chosen.active.tolist() == mask.tolist()
    assert chosen.infoc == infomec(SOURCES, SCALED[:, mask], prune=False).infoc
    with pytest.raises(ValueError, match="one boolean per latent"):
        infomec(SOURCES, SCALED, active=[0, 2])
