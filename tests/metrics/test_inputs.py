"""Which arrays are accepted, and the errors for those that are not."""

from __future__ import annotations

import datetime
import warnings
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from qlae.metrics import factor_vae_score, infomec, mutual_information, nmi
from qlae.metrics.inputs import check_latents, check_sources, read_columns

RNG = np.random.default_rng(0)
SOURCES = RNG.integers(0, [3, 5], size=(120, 2))
CODES = np.column_stack([SOURCES[:, 1], SOURCES[:, 0], RNG.integers(0, 4, 120)])
VALUES = CODES + 0.1 * RNG.normal(size=CODES.shape)
EXPECTED_CODES = nmi(SOURCES, CODES)


class Frame:
    """Stands in for a data frame: NumPy reads it through __array__."""

    def __init__(self, table: np.ndarray) -> None:
        self.table = table

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self.table if dtype is None else self.table.astype(dtype)


class Device:
    type = "cuda"

    def __str__(self) -> str:
        return "cuda:0"


class Tensor(Frame):
    """Stands in for a tensor that tracks gradients."""

    device: Any = None

    def detach(self) -> Tensor:
        return self

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return super().__array__(dtype, copy)


@pytest.mark.parametrize(
    "codes",
    [
        CODES.astype(np.int8),
        CODES.astype(np.uint8),
        CODES.astype(np.uint64) + np.uint64(2**63),
        CODES.astype(np.int64) - 7_000_000_000,
        CODES.astype(object),
        np.asfortranarray(CODES),
        np.repeat(CODES, 2, axis=1)[:, ::2],
        CODES.tolist(),
        Frame(CODES),
        Tensor(CODES),
    ],
    ids=["int8", "uint8", "uint64", "far", "object", "fortran", "strided", "list", "frame", "tensor"],
)
def test_codes_of_any_integer_kind(codes: Any) -> None:
    np.testing.assert_allclose(nmi(SOURCES, codes), EXPECTED_CODES, atol=1e-12)


@pytest.mark.parametrize("kind", [np.int8, np.int16])
def test_codes_over_the_whole_range_of_a_narrow_kind(kind: Any) -> None:
    codes = RNG.integers(-128, 128, size=(500, 2)).astype(kind) * (1 if kind is np.int8 else 250)
    sources = RNG.integers(0, 3, size=(500, 2))
    assert np.array_equal(nmi(sources, codes), nmi(sources, codes.astype(np.int64)))


def test_booleans_are_codes() -> None:
    bits = CODES > 1
    np.testing.assert_allclose(nmi(SOURCES > 1, bits), nmi((SOURCES > 1).astype(int), bits.astype(int)), atol=1e-12)


def test_read_only_arrays_are_left_alone() -> None:
    sources, values = SOURCES.copy(), VALUES.copy()
    sources.flags.writeable = values.flags.writeable = False
    infomec(sources, values)
    np.testing.assert_array_equal(values, VALUES)


@pytest.mark.parametrize("kind", [np.float32, np.float16, np.longdouble])
def test_floats_of_any_width(kind: Any) -> None:
    narrow = VALUES.astype(kind)
    np.testing.assert_allclose(nmi(SOURCES, narrow), nmi(SOURCES, narrow.astype(np.float64)), atol=1e-12)


def test_strings_and_mixed_frames_as_sources() -> None:
    words = np.array(["red", "green", "blue"])[SOURCES[:, 0]]
    np.testing.assert_allclose(nmi(words, CODES)[0], EXPECTED_CODES[0], atol=1e-12)
    mixed = np.empty((120, 2), dtype=object)
    mixed[:, 0], mixed[:, 1] = words, SOURCES[:, 1].astype(float)
    np.testing.assert_allclose(nmi(mixed, CODES), EXPECTED_CODES, atol=1e-12)


def test_one_column_may_be_flat() -> None:
    assert nmi(SOURCES[:, 0], CODES[:, 0]).shape == (1, 1)


def test_float_sources_with_repeated_values_are_discrete() -> None:
    checked = check_sources(np.column_stack([SOURCES[:, 0] / 3.0, RNG.normal(size=120)]))
    assert checked.discrete == (True, False)
    forced = check_sources(SOURCES / 3.0, kinds=["continuous", "auto"])
    assert forced.discrete == (False, True)


def test_large_values_far_apart_are_levels_too() -> None:
    checked = check_sources(np.array([0, 10**15, 0, 10**15, -5]))
    assert checked.sizes == (3,)
    np.testing.assert_array_equal(checked.labels[:, 0], [1, 2, 1, 2, 0])


NAN = VALUES.copy()
NAN[7, 1] = np.nan
INFINITE = VALUES.copy()
INFINITE[3, 0] = -np.inf
GAPS = CODES.astype(object)
GAPS[5, 1] = None
MIXED = CODES.astype(object)
MIXED[:, 2] = VALUES[:, 2]
FAR_AWAY = Tensor(CODES)
FAR_AWAY.device = Device()


@pytest.mark.parametrize(
    ("sources", "latents", "message"),
    [
        (SOURCES, NAN, r"latents\[:, 1\] has 1 NaN or infinite values .* in row 7"),
        (SOURCES, INFINITE, r"the first, -inf, in row 3"),
        (NAN, CODES, r"sources\[:, 1\] has 1 NaN"),
        (SOURCES[:-1], CODES, "119 rows and latents 120"),
        (SOURCES[:1], CODES[:1], "at least 2 samples"),
        (SOURCES[:, :0], CODES, "at least 2 samples and 1 column"),
        (SOURCES, CODES[:, :, None], r"shape \(120, 3, 1\); give"),
        (SOURCES, CODES.astype(str), "give codes as integers"),
        (SOURCES, CODES.astype(complex), "type complex128"),
        (SOURCES, GAPS, "mixes NoneType, int"),
        (SOURCES, MIXED, "mix 2 integer columns"),
        (SOURCES, FAR_AWAY, r"tensor on cuda:0: call .cpu\(\)"),
        (SOURCES, [[1, 2], [3]], "cannot be read as an array"),
    ],
)
def test_what_cannot_be_scored(sources: Any, latents: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        infomec(sources, latents)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"protocol": "offical"}, "protocol is 'offical'.*'paper'"),
        ({"source_kinds": "categorical"}, "source_kinds is 'categorical'.*'discrete'"),
        ({"source_kinds": ["auto"]}, "1 entries for 2 sources"),
        ({"latent_kind": "discrete"}, "latent_kind is 'discrete'.*'codes'"),
    ],
)
def test_options_that_do_not_exist(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        infomec(SOURCES, CODES, **options)


def test_strings_cannot_be_continuous() -> None:
    with pytest.raises(ValueError, match="holds strings"):
        check_sources(np.array(["a", "b"]), kinds="continuous")


def test_kinds_can_be_overruled() -> None:
    assert check_latents(CODES, kind="continuous").codes is None
    rounded = check_latents(CODES / 10.0, kind="codes")
    assert rounded.sizes == check_latents(CODES).sizes
    np.testing.assert_allclose(nmi(SOURCES, CODES / 10.0, latent_kind="codes"), EXPECTED_CODES, atol=1e-12)


def test_a_source_of_unique_integers_raises_an_error_that_suggests_continuous() -> None:
    with pytest.raises(ValueError, match="never repeat are continuous"):
        mutual_information(np.arange(120), VALUES)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isfinite(mutual_information(np.arange(120), VALUES, source_kinds="continuous")).all()


def test_values_whose_squares_would_overflow_are_refused() -> None:
    sources = np.arange(40) % 4
    with pytest.raises(ValueError, match=r"values up to 1e\+100.*rescale it first"):
        infomec(sources[:, None], np.full((40, 1), 1e100) * sources[:, None].astype(float).clip(0, 1))


def test_codes_beyond_the_precision_of_floats_still_count() -> None:
    sources = np.arange(40)[:, None] % 4
    assert infomec(sources, sources.astype(np.uint64) + np.uint64(2**63 + 5)).active.tolist() == [True]


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (sparse.csr_matrix(np.eye(3)), r"sources is a sparse matrix; give \.toarray"),
        (sparse.coo_array(np.eye(3)), "sparse matrix"),
        ([np.ma.masked_array([1, 2], mask=[False, True])] * 3, "masked entries"),
        (np.eye(3) * 1j, r"complex128; give integers, floats, booleans or strings"),
        (np.array(["2020-01-01"] * 3, dtype="M8[D]"), "dates as numbers"),
        ([datetime.date(2020, 1, 1)] * 3, "mixes date; give one kind"),
        (np.zeros(3, dtype=[("a", "f8")]), "give integers, floats"),
        ({"a": [1, 2]}, "sources is a dict, not a table"),
        (None, "sources is a NoneType, not a table"),
        ("abc", "sources is a str, not a table"),
        (5.0, "sources is a float, not a table"),
    ],
)
def test_what_is_no_table_of_numbers_has_a_clear_answer(array, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_sources(array)


class Brain16:
    """An array like those of JAX in bfloat16, which NumPy cannot read as it is."""

    dtype = "bfloat16"

    def astype(self, name: str) -> np.ndarray:
        assert name == "float32"
        return np.array([[1.5], [2.5], [1.5]], dtype=name)


def test_arrays_in_bfloat16_and_data_frames_of_polars() -> None:
    assert check_latents(Brain16()).values.tolist() == [[1.5], [2.5], [1.5]]
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"a": ["x", "y", "x"], "b": [1, 2, 3]})
    assert check_sources(frame).labels.tolist() == [[0, 0], [1, 1], [0, 2]]
    assert check_latents(frame.select("b")).discrete


def test_one_very_long_string_takes_no_memory() -> None:
    words = ["b", "c", "a" * 100_000] * 500
    assert check_sources(words).labels[:3, 0].tolist() == [1, 2, 0]
    wide = np.array(words[:60], dtype=str)  # as an archive has it
    columns = read_columns(wide, name="sources")
    assert columns[0].nbytes < 10_000
    assert check_sources(wide).labels[:3, 0].tolist() == [1, 2, 0]


def test_values_closer_than_rounding_next_to_far_ones_are_fast() -> None:
    """Half of the values are equal but for jitter, and one is far away: distances are found by bisection."""
    rng = np.random.default_rng(0)
    values = np.where(rng.random(20_000) < 0.5, 5e-324, rng.random(20_000) * 1e-300)
    values[0] = 1e30
    assert nmi(rng.integers(0, 4, 20_000), values).item() < 0.05


def test_scores_of_pairs_refuse_masks_and_print_themselves() -> None:
    rng = np.random.default_rng(0)
    batches, factors = rng.normal(size=(10, 4, 2)), np.arange(10) % 2
    options = {"eval_batches": batches, "eval_factors": factors}
    assert "factor_vae_score" in str(factor_vae_score(batches[:, 0], batches, factors, **options))
    masked = np.ma.masked_array(batches, mask=batches > 1)
    for sample in ((masked[:, 0], batches, factors), (batches[:, 0], masked, factors)):
        with pytest.raises(ValueError, match="masked entries"):
            factor_vae_score(*sample, **options)
    with pytest.raises(ValueError, match="factors of batches has masked entries"):
        factor_vae_score(batches[:, 0], batches, np.ma.masked_array(factors, mask=factors > 0), **options)
