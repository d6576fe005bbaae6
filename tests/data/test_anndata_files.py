"""AnnData in memory and in ``.h5ad`` files: cells in, codes out."""

import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import qlae
from qlae.cli import main
from qlae.data import data_config, load_from_config
from qlae.data.anndata_files import SparseRows

anndata = pytest.importorskip("anndata")
OPTIONS = {"size": "small", "steps": 4, "batch_size": 8, "num_latents": 3, "evaluate": False, "show": False}


def texts(names):
    """Return an index of texts that every version of AnnData can write."""
    return pd.Index(names, dtype=object)


@pytest.fixture
def cells():
    """60 cells of 12 genes: counts in a layer, their doubles in X."""
    random = np.random.default_rng(0)
    counts = scipy.sparse.csr_matrix(random.poisson(0.6, (60, 12)).astype(np.float32))
    batches = pd.Categorical(["a", "b"] * 30, categories=texts(["a", "b"]))
    obs = pd.DataFrame({"batch": batches}, index=texts([f"c{i}" for i in range(60)]))
    var = pd.DataFrame(index=texts([f"g{i}" for i in range(12)]))
    return anndata.AnnData(counts * 2, obs=obs, var=var, layers={"counts": counts})


@pytest.fixture
def path(cells, tmp_path):
    cells.write_h5ad(tmp_path / "cells.h5ad")
    return tmp_path / "cells.h5ad"


@pytest.mark.parametrize("form", ["csr", "csc", "dense", "array"])
def test_cells_become_vectors(cells, form, tmp_path):
    dense = cells.X.toarray()
    convert = {"csr": scipy.sparse.csr_matrix, "csc": scipy.sparse.csc_matrix, "array": scipy.sparse.csr_array}
    cells.X = convert[form](dense) if form in convert else dense
    cells.write_h5ad(tmp_path / "x.h5ad")
    for source in (cells, tmp_path / "x.h5ad"):
        data = qlae.load_data(source, source_columns=["batch"])
        assert isinstance(data.images, SparseRows) == (form != "dense")
        assert np.array_equal(data.images[:], dense)
        for index in (0, -1, slice(3, 9), np.array([5, 1]), dense[:, 0] > 0):
            assert np.array_equal(data.images[index], dense[index])
        assert data.observations.feature_names == tuple(cells.var_names)
        assert data.sources[:, 0].tolist() == [0, 1] * 30
        assert data.ids["cell"].tolist() == list(cells.obs_names)


def test_counts_are_scaled_and_logarithms_taken_as_elsewhere(cells, path):
    counts = cells.layers["counts"].toarray().astype(np.float64)
    counts[:, 0] += counts.sum(1) == 0
    cells.layers["counts"] = scipy.sparse.csr_matrix(counts.astype(np.float32))
    cells.write_h5ad(path)
    expected = np.log1p(counts / counts.sum(1, keepdims=True) * 100)
    how = {"layer": "counts", "normalize": 100, "log1p": True}
    for source in (path, cells):
        np.testing.assert_allclose(qlae.load_data(source, **how).images[:], expected, rtol=1e-5)
    assert np.array_equal(cells.layers["counts"].toarray(), counts)  # the user's matrix stays as it is
    dense = qlae.load_data(anndata.AnnData(counts), normalize=100, log1p=True)
    np.testing.assert_allclose(dense.images, expected, rtol=1e-5)
    data = qlae.load_data(path, feature_columns=["g7", "g2"], **how)  # totals are those of all genes
    np.testing.assert_allclose(data.images[:], expected[:, [7, 2]], rtol=1e-5)
    assert np.array_equal(load_from_config(data_config(data)).images[:], data.images[:])
    assert qlae.data.data_spec(path, **how).preview().feature_names == tuple(cells.var_names)


def test_groups_of_cells_stay_together(cells, path):
    cells.obs["sample"] = np.repeat(np.arange(12), 5)
    cells.write_h5ad(path)
    for source in (path, cells):
        data = qlae.load_data(source, group_column="sample", hold_out=0.4)
        sides = [{*cells.obs["sample"].iloc[side]} for side in data.split]
        assert len(sides[1]) == 5
        assert not sides[0] & sides[1]


def test_sparse_matrices_are_never_dense_as_a_whole(monkeypatch, tmp_path):
    matrix = scipy.sparse.random(5000, 300, 0.02, format="csr", random_state=0, dtype=np.float32)
    most = []
    compute = SparseRows.__getitem__

    def watch(self, rows):
        result = compute(self, rows)
        most.append(result.nbytes)
        return result

    monkeypatch.setattr(SparseRows, "__getitem__", watch)
    monkeypatch.setattr("qlae.data.dataset.CHUNK_BYTES", 2**20)
    run = qlae.train("qlae", matrix, out=tmp_path / "run", **OPTIONS)
    codes = qlae.load(run.path).encode(matrix)
    assert max(most) <= 2**20
    assert np.array_equal(codes[:100], qlae.load(run.path).encode(matrix[:100].toarray()))


def test_codes_are_written_into_a_copy(cells, path, tmp_path):
    out = tmp_path / "codes.h5ad"
    data = qlae.load_data(path, layer="counts", normalize=100, log1p=True)
    run = qlae.train("qlae", data, out=tmp_path / "run", **OPTIONS).path
    qlae.name_latents(run, {1: "cycle"}, {1: {0: "G1"}})
    with pytest.raises(SystemExit) as stop:
        main(["encode", str(run), "--data", str(path), "--out", str(out), "--quiet"])
    assert stop.value.code == 0
    written = anndata.read_h5ad(out)
    codes = qlae.load(run).encode(path)
    assert np.array_equal(written.obsm["X_qlae"], codes)
    assert written.uns["qlae"]["latents"].tolist() == ["z0", "cycle", "z2"]
    assert written.uns["qlae"]["num_values"].tolist() == [qlae.load(run).latent.num_values[j] for j in range(3)]
    assert np.array_equal(written.X.toarray(), cells.X.toarray())
    table = qlae.encode(run, path, show=False)
    assert list(table) == ["cell", "z0", "cycle", "z2"]
    other = cells[:, ::-1].copy()  # genes are found by name
    assert qlae.add_codes(other, run, show=False) is other
    assert np.array_equal(other.obsm["X_qlae"], codes)
    assert not list(tmp_path.glob(".*partial"))
    with pytest.raises(ValueError, match="lacks genes that are needed: 'g11'"):
        qlae.add_codes(cells[:, :11].copy(), run, show=False)
    with pytest.raises(ValueError, match=r"codes\.h5ad exists already"):
        qlae.encode(run, path, out=out, show=False)
    with pytest.raises(ValueError, match=r"codes become an \.h5ad only if the data are an AnnData"):
        qlae.encode(run, data.images[:], out=tmp_path / "x.h5ad", show=False)


def test_a_model_of_cells_in_memory_needs_to_know_how_they_were_read(cells, tmp_path):
    data = qlae.load_data(cells, layer="counts", log1p=True)
    run = qlae.train("qlae", data, out=tmp_path / "run", **OPTIONS).path
    with pytest.raises(ValueError, match=r"trained on data in memory, .* pass qlae.load_data\(adata, …\)"):
        qlae.add_codes(cells, run, show=False)
    qlae.add_codes(cells, run, data, show=False)
    assert np.array_equal(cells.obsm["X_qlae"], qlae.load(run).encode(data))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layer": "count"}, 'did you mean "counts"'),
        ({"source_columns": ["bach"]}, 'did you mean "batch"'),
        ({"feature_columns": ["g3", "no"]}, "lacks genes that are needed: 'no'"),
        ({"normalize": 0}, "normalize must be the total of each cell"),
        ({"layer": "negative", "log1p": True}, "are for counts, and .* has negative or missing values"),
        ({"layer": "missing"}, "missing or infinite values"),
        ({"window": 64}, "recordings come as a CSV|window does not apply"),
    ],
)
def test_what_cannot_be_used_says_what_to_do(cells, options, message, tmp_path):
    cells.layers["negative"] = -cells.X
    cells.layers["missing"] = np.full(cells.shape, np.nan, np.float32)
    cells.write_h5ad(tmp_path / "x.h5ad")
    for source in (tmp_path / "x.h5ad", cells):
        with pytest.raises(ValueError, match=message):
            qlae.load_data(source, **options)


def test_suspicious_counts_are_named(cells):
    with pytest.warns(UserWarning, match="has numbers with fractions, as if it were normalised already"):
        qlae.load_data(anndata.AnnData(cells.X.toarray() / 3 + 0.1), normalize=100)
    cells.X[4] = 0
    cells.X.eliminate_zeros()
    with pytest.warns(UserWarning, match="cells of the AnnData have no counts and stay zero"):
        data = qlae.load_data(cells, normalize=100)
    assert not data.images[4].any()
    twice = anndata.AnnData(np.ones((3, 2)), var=pd.DataFrame(index=texts(["g", "g"])))
    with pytest.raises(ValueError, match=r"call adata.var_names_make_unique\(\)"):
        qlae.load_data(twice)


def test_damaged_files_are_refused(path):
    content = path.read_bytes()
    for damaged in (b"", b"HDF", content[:3000], content[:-2000]):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="cannot be read as AnnData"):
            qlae.load_data(path)


def test_files_from_before_anndata_0_7_are_read(cells, tmp_path):
    path = tmp_path / "old.h5ad"
    with h5py.File(path, "w") as file:
        file["X"] = cells.X.toarray()
        file["obs"] = np.array([(name.encode(), 1.5) for name in cells.obs_names], [("index", "S4"), ("age", "f4")])
        file["var"] = np.array([(name.encode(),) for name in cells.var_names], [("index", "S4")])
    data = qlae.load_data(str(path), source_columns=["age"], hold_out=0)
    np.testing.assert_array_equal(data.images[:], cells.X.toarray())
    assert list(data.observations.feature_names) == list(cells.var_names)
    run = qlae.train("qlae", data, out=tmp_path / "run", **OPTIONS)
    with pytest.raises(ValueError, match=r"before AnnData 0\.7"):
        qlae.encode(run.path, str(path), out=tmp_path / "coded.h5ad")
    assert not list(tmp_path.glob("*coded*"))


def test_places_outside_a_sparse_matrix_are_refused():
    matrix = scipy.sparse.csr_array(np.eye(3, dtype=np.float32))
    matrix.indices[1] = 1000
    with pytest.raises(ValueError, match=r"indices|index"):
        qlae.load_data(matrix)
