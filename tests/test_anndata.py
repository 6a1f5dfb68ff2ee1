"""IhSC on AnnData objects gives what IhSC gives, and files keep it."""

import sys

import anndata
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from anndata import AnnData
from numpy.testing import assert_allclose, assert_array_equal

import ihgmm
from ihgmm import IhSC, Recipe, diagnose, make_ihgmm, top_features
from ihgmm.anndata import ihsc, rank_genes_groups
from ihgmm.metrics import exact_recovery, misclassification_rate
from ihgmm.plotting import plot_embedding


def counts(n=150, p=60, seed=0):
    """Return counts of three kinds of cells whose depths differ 20-fold, and kinds."""
    rng = np.random.default_rng(seed)
    patterns = rng.dirichlet(np.full(p, 0.3), size=3)
    kinds = rng.integers(3, size=n)
    depths = np.exp(rng.uniform(np.log(100), np.log(2000), n))
    return rng.poisson(depths[:, None] * patterns[kinds]).astype(np.float32), kinds


def cells(store=np.asarray, **options):
    X, kinds = counts(**options)
    names = [f"cell{i}" for i in range(len(X))]
    adata = AnnData(store(X), obs=pd.DataFrame({"kind": kinds}, index=names))
    adata.layers["counts"] = adata.X.astype(np.int64)
    adata.obsm["X_half"] = X[:, ::2]
    return adata


def results(adata, key="ihsc"):
    """Return all that a run writes but the summary, as arrays."""
    return {
        "labels": adata.obs[key].astype(int).to_numpy(),
        "scales": adata.obs[f"{key}_scale"].to_numpy(),
        "sizes": adata.obs[f"{key}_size"].to_numpy(),
        "confidence": adata.obs[f"{key}_confidence"].to_numpy(),
        "embedding": adata.obsm[f"X_{key}"],
        "centers": adata.varm[f"{key}_centers"],
    }


def assert_same(result, expected, rtol=1e-4):
    for name, values in expected.items():
        assert_allclose(result[name], values, rtol=rtol, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("store", [np.asarray, sp.csr_array, sp.csc_matrix])
def test_what_is_written_is_what_the_estimator_finds(store):
    adata = cells(store)
    before = adata.copy()

    assert ihsc(adata, 3) is None

    X = before.X
    model = IhSC(3, random_state=0).fit(X)

    assert exact_recovery(adata.obs["kind"], model.labels_)
    assert adata.obs["ihsc"].dtype == pd.CategoricalDtype(["0", "1", "2"])
    assert_array_equal(adata.obs["ihsc"].astype(int), model.labels_)
    assert_array_equal(adata.obs["ihsc_scale"], model.scales_)
    assert_array_equal(adata.obs["ihsc_size"], model.sizes_)

    certainty = diagnose(X, model.labels_).certainty

    assert_array_equal(adata.obs["ihsc_confidence"], certainty)
    assert_array_equal(adata.obsm["X_ihsc"], model.embedding_)
    assert_array_equal(adata.varm["ihsc_centers"], model.cluster_centers_.T)

    summary = adata.uns["ihsc"]

    assert_array_equal(summary["eigenvalues"], model.eigenvalues_)
    assert summary["n_clusters"] == 3
    assert summary["version"] == ihgmm.__version__
    assert summary["verdict"] == "well separated"
    assert_array_equal(_dense(adata.X), _dense(before.X))
    assert next(iter(adata.obs)) == "kind"
    assert list(adata.layers) == list(before.layers)


def _dense(X):
    return X.toarray() if sp.issparse(X) else np.asarray(X)


def test_layer_and_representation():
    adata = cells(sp.csr_matrix)
    adata.layers["tenfold"] = adata.X * 10
    ihsc(adata, 3)
    ihsc(adata, 3, use_rep="X", key_added="same")

    assert_same(results(adata, "same"), results(adata))

    ihsc(adata, 3, layer="tenfold", key_added="ten")

    assert_allclose(
        adata.varm["ten_centers"], 10 * adata.varm["ihsc_centers"], rtol=1e-3
    )
    assert adata.uns["ten"]["params"]["layer"] == "tenfold"

    ihsc(adata, 3, layer="counts", key_added="whole")

    assert_same(results(adata, "whole"), results(adata), rtol=1e-3)

    ihsc(adata, 3, use_rep="X_half", key_added="part")
    model = IhSC(3, random_state=0).fit(adata.obsm["X_half"])

    assert_array_equal(adata.obs["part"].astype(int), model.labels_)
    assert_array_equal(adata.uns["part"]["centers"], model.cluster_centers_)
    assert "part_centers" not in adata.varm


def test_a_second_run_replaces_the_first():
    adata = cells()
    ihsc(adata, 3)
    ihsc(adata, 2, use_rep="X_half")
    half = IhSC(2, random_state=0).fit(adata.obsm["X_half"]).embedding_

    assert_array_equal(adata.obsm["X_ihsc"], half)
    assert adata.uns["ihsc"]["n_clusters"] == 2
    assert "ihsc_centers" not in adata.varm

    with pytest.raises(ValueError, match="would overwrite"):
        ihsc(adata, 3, use_rep="X_ihsc")

    ihsc(adata, 3)

    assert adata.varm["ihsc_centers"].shape == (60, 3)
    assert "centers" not in adata.uns["ihsc"]


def test_options_reach_the_estimator():
    adata = cells()
    options = {"recipe": Recipe(space="projected"), "random_state": 5}
    ihsc(adata, 3, **options)
    model = IhSC(3, **options).fit(adata.X)

    assert_array_equal(adata.obs["ihsc"].astype(int), model.labels_)
    assert adata.uns["ihsc"]["params"]["recipe"] == "Recipe(space='projected')"

    with pytest.raises(TypeError, match="resolution"):
        ihsc(adata, 3, resolution=0.5)


def test_a_copy_leaves_the_original_alone():
    adata = cells()
    copied = ihsc(adata, 3, copy=True)

    assert list(adata.obs) == ["kind"]
    assert (list(adata.obsm), len(adata.varm), len(adata.uns)) == (["X_half"], 0, 0)

    ihsc(adata, 3)

    assert_same(results(copied), results(adata))


def test_a_view_becomes_an_object_of_its_own():
    adata = cells(sp.csr_matrix)
    view = adata[adata.obs["kind"] != 2, 10:]

    with pytest.warns(anndata.ImplicitModificationWarning, match="view"):
        ihsc(view, 2)

    assert not view.is_view
    assert view.varm["ihsc_centers"].shape == (50, 2)
    assert list(adata.obs) == ["kind"]
    assert not adata.uns
    assert exact_recovery(view.obs["kind"], view.obs["ihsc"].astype(int))

    view = adata[:100]
    copied = ihsc(view, 3, copy=True)

    assert view.is_view
    assert len(copied) == 100


@pytest.mark.filterwarnings("ignore:Writing zarr v2:UserWarning")
@pytest.mark.parametrize("view", [False, True])
def test_counts_on_a_gpu_give_results_in_memory(view):
    """As rapids-singlecell keeps them: a sparse matrix of CuPy in X."""
    sparse = pytest.importorskip("cupyx.scipy.sparse", reason="CuPy is not installed")
    expected = cells()
    adata = AnnData(sp.csr_matrix(cells().X))
    adata.X = sparse.csr_matrix(adata.X)
    ihsc(expected, 3)
    source = adata[np.arange(adata.n_obs)] if view else adata
    result = ihsc(source, 3, copy=True)
    for name, values in results(result).items():
        assert isinstance(values, np.ndarray), name

    assert_same(results(result), results(expected), rtol=1e-3)
    assert isinstance(adata.X, sparse.csr_matrix)


@pytest.mark.filterwarnings("ignore:Writing zarr v2 data:UserWarning")
def test_files_keep_all_of_it(tmp_path):
    adata = cells(sp.csr_matrix)
    ihsc(adata, "auto")
    state = np.random.RandomState(0)  # no file can hold it
    ihsc(adata, 3, use_rep="X_half", key_added="part", random_state=state)

    assert "random_state" not in adata.uns["part"]["params"]

    adata.write_h5ad(tmp_path / "cells.h5ad")
    adata.write_zarr(tmp_path / "cells.zarr")
    for loaded in (
        anndata.read_h5ad(tmp_path / "cells.h5ad"),
        anndata.read_zarr(tmp_path / "cells.zarr"),
    ):
        assert_same(results(loaded), results(adata), rtol=0)
        assert loaded.obs["ihsc"].dtype == adata.obs["ihsc"].dtype
        assert loaded.uns["ihsc"]["params"] == adata.uns["ihsc"]["params"]
        selection = loaded.uns["ihsc"]["selection"].copy()
        expected = adata.uns["ihsc"]["selection"].copy()
        assert_array_equal(selection.pop("plausible"), expected.pop("plausible"))
        assert selection == expected
        assert {*selection} == {"lead", "summary", "confidence"}
        assert selection["summary"].startswith("3 clusters, with ")
        assert_array_equal(loaded.uns["part"]["centers"], adata.uns["part"]["centers"])

    assert adata.uns["ihsc"]["params"]["random_state"] == 0


@pytest.mark.parametrize(("mode", "store"), [("r", np.asarray), ("r+", sp.csr_matrix)])
def test_a_file_on_disk_gives_what_memory_gives(tmp_path, store, mode):
    adata = cells(store)
    adata.write_h5ad(tmp_path / "cells.h5ad")
    backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed=mode)
    ihsc(backed, 3)

    assert backed.isbacked

    ihsc(adata, 3)
    expected = results(backed)

    assert_same(expected, results(adata))

    if mode == "r+":
        backed.write()
    backed.file.close()
    loaded = anndata.read_h5ad(tmp_path / "cells.h5ad")

    assert ("ihsc" in loaded.obs) == (mode == "r+")

    if mode == "r+":
        assert_same(results(loaded), expected, rtol=0)


def with_nan():
    adata = cells()
    adata.X[4, 5] = np.nan
    return adata


def without_x():
    adata = cells()
    return AnnData(None, obs=adata.obs, layers=adata.layers)


def on_disk(folder, store=np.asarray):
    cells(store).write_h5ad(folder / "cells.h5ad")
    return anndata.read_h5ad(folder / "cells.h5ad", backed="r")


@pytest.mark.parametrize(
    ("make", "options", "error", "message"),
    [
        (cells, {"layer": "logs"}, ValueError, "layer='logs' .* which has 'counts'"),
        (cells, {"use_rep": "X_pca"}, ValueError, "'X_pca' .*obsm, which has 'X_half'"),
        (
            cells,
            {"use_rep": "X_half", "layer": "counts"},
            ValueError,
            "layer='counts' and use_rep='X_half' name two matrices; give one",
        ),
        (cells, {"key_added": "a/b"}, ValueError, "key_added='a/b' cannot name"),
        (
            cells,
            {"key_added": "half"},
            ValueError,
            r"key_added='half' would overwrite adata.obsm\['X_half'\]; give another",
        ),
        (cells, {"key_added": "kind"}, ValueError, r"overwrite adata.obs\['kind'\]"),
        (with_nan, {}, ValueError, "contains NaN at row 4, column 5"),
        (without_x, {}, ValueError, "adata.X is None; give a layer, or a key of obsm"),
        (lambda: counts()[0], {}, TypeError, "adata is a ndarray; give an AnnData"),
        (cells, {"n_clusters": 151}, ValueError, "more than n_samples=150"),
    ],
)
def test_bad_input(make, options, error, message):
    adata = make()

    with pytest.raises(error, match=message):
        ihsc(adata, **{"n_clusters": 3, **options})

    if isinstance(adata, AnnData):
        assert list(adata.obs) == ["kind"]
        assert not adata.uns


def test_what_a_file_cannot_hold(tmp_path):
    adata = on_disk(tmp_path)

    with pytest.raises(ValueError, match=r"copy=True cannot hold .*to_memory\(\)"):
        ihsc(adata, 3, copy=True)
    with pytest.raises(ValueError, match=r"a view cannot hold .*to_memory\(\)"):
        ihsc(adata[:50], 3)

    adata.file.close()
    adata = on_disk(tmp_path, sp.csc_matrix)

    with pytest.raises(ValueError, match=r"is stored by columns \(CSC\), so that"):
        ihsc(adata, 3)

    adata.file.close()


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "anndata", None)
    with pytest.raises(ImportError, match="pip install anndata"):
        ihsc(None, 3)


def test_outliers():
    X, _ = make_ihgmm(200, 50, 3, random_state=0)
    X[:4] = 1000 * np.random.default_rng(0).standard_normal((4, 50))
    adata = anndata.AnnData(X)
    ihsc(adata, n_clusters=3, outliers="auto")

    assert_array_equal(np.flatnonzero(adata.obs["ihsc"] == "-1"), np.arange(4))
    assert adata.obs["ihsc_outlier_score"][:4].min() > 4
    assert adata.obs["ihsc_size"].isna().sum() == 4


def faint(seed):
    """Return counts of four types that few genes set apart, and the types."""
    rng = np.random.default_rng(seed)
    patterns = np.tile(rng.gamma(0.4, 1, 300) + 0.003, (4, 1))
    for pattern in patterns:
        pattern[rng.choice(300, 20, replace=False)] *= 4
    patterns /= patterns.sum(axis=1, keepdims=True)
    types = rng.choice(4, 300, p=[0.45, 0.3, 0.2, 0.05])
    depths = np.exp(rng.uniform(np.log(150), np.log(1500), (300, 1)))
    bursts = rng.gamma(3, 1 / 3, (300, 300))
    return rng.poisson(depths * patterns[types] * bursts).astype(np.float32), types


def as_scanpy_leaves_it(X, kind):
    """Return an object with the matrix that a pipeline leaves, and counts beside it."""
    logs = np.log1p(1e4 * X / X.sum(axis=1, keepdims=True))
    deviations = logs.std(axis=0)
    scores = (logs - logs.mean(axis=0)) / np.where(deviations > 0, deviations, 1)
    adata = AnnData({"logarithms": logs, "z-scores": np.clip(scores, None, 10)}[kind])
    adata.layers["counts"] = X
    adata.uns["log1p"] = {"base": None}
    return adata


PREPARED = {
    "logarithms": "adata.X holds logarithms, as of sc.pp.log1p",
    "z-scores": "adata.X was centred, as by sc.pp.scale",
}


def test_an_anndata_is_no_labels():
    adata = anndata.AnnData(np.ones((20, 3)))
    with pytest.raises(TypeError, match=r"is of type AnnData.* adata.obs\['ihsc'\]"):
        plot_embedding(adata)


@pytest.mark.filterwarnings("ignore:Labels may be unstable")
def test_what_is_no_multiple_of_a_pattern_is_named_rightly():
    X, types = faint(0)
    errors = []
    for kind, message in PREPARED.items():
        adata = as_scanpy_leaves_it(X, kind)
        with pytest.warns(UserWarning, match=f"{message}.*layer='counts', columns="):
            ihsc(adata, 4)
        errors.append(misclassification_rate(types, adata.obs["ihsc"].astype(int)))

    with pytest.warns(UserWarning, match=PREPARED["z-scores"]):  # of some cells
        ihsc(as_scanpy_leaves_it(X, "z-scores")[::2].copy(), 4)

    adata.layers["logs"] = as_scanpy_leaves_it(X, "logarithms").X
    del adata.uns["log1p"]  # logarithms show by themselves, also in a layer

    with pytest.warns(UserWarning, match=r"layers\['logs'\] holds logarithms"):
        ihsc(adata, 4, layer="logs")

    ihsc(adata, 4, layer="counts", columns="counts")
    advised = misclassification_rate(types, adata.obs["ihsc"].astype(int))

    assert advised < min(errors) / 2


def test_counts_and_other_data_draw_no_word():
    X, _ = faint(0)
    gaussian, _ = make_ihgmm(200, 40, 3, random_state=0)
    for data in (X / np.sqrt(X.mean(axis=0) + 1e-3), gaussian):
        ihsc(AnnData(data), 3)

    # X was made the counts again.
    ihsc(AnnData(X, uns={"log1p": {"base": None}}), 4, columns="counts")


def test_batches_of_obs_are_taken_out():
    adata = cells(n=300)
    batch = np.array(["kit 2", "kit 3"])[np.arange(300) % 2]
    factors = np.exp(np.random.default_rng(1).standard_normal(60))
    X = np.where(batch[:, None] == "kit 2", adata.X * factors, adata.X)
    adata.X = np.rint(X).astype(np.float32)
    adata.obs["kit"] = pd.Categorical(batch)
    ihsc(adata, 3, batch_key="kit", columns="counts")

    assert misclassification_rate(adata.obs["kind"], adata.obs["ihsc"]) < 0.02
    assert adata.uns["ihsc"]["params"]["batch_key"] == "kit"

    with pytest.raises(ValueError, match="batch_key='lab' is not in"):
        ihsc(adata, 3, batch_key="lab")


@pytest.mark.parametrize("layer", [None, "counts"])
def test_genes_are_ranked_where_scanpy_looks_for_them(layer, tmp_path):
    adata = cells(sp.csr_array)
    if layer:
        adata.X = np.log1p(adata.X.toarray())
        message = r"Give the counts: rank_genes_groups\(adata, ..., layer='counts'\)"
        with pytest.warns(ihgmm.PreparationWarning, match=message):
            rank_genes_groups(adata, "kind")

    adata.obs["type"] = pd.Categorical(np.array(["B", "NK", "T"])[adata.obs["kind"]])
    rank_genes_groups(adata, "type", layer=layer)
    result = adata.uns["rank_genes_groups"]
    X = adata.layers["counts"] if layer else adata.X
    top = top_features(X, adata.obs["type"])
    for k, name in enumerate(["B", "NK", "T"]):
        genes = result["names"][name].astype(int)
        assert sorted(genes) == [*range(60)]
        assert_array_equal(genes[:10], top.more[k])
        assert (np.diff(result["scores"][name]) <= 0).all()
        higher = top.means[k, genes] > top.others[k, genes]
        assert_array_equal(result["logfoldchanges"][name] > 0, higher)
        assert_allclose(result["pvals"][name], top.p_values[k, genes])
        assert (result["pvals_adj"][name] >= result["pvals"][name]).all()

    assert result["params"]["groupby"] == "type"

    # Cells without a type, and outliers, have no part.
    subset = adata[30:].copy()
    adata.obs["type"] = adata.obs["type"].cat.add_categories(["-1", "none"])
    adata.obs.loc[adata.obs_names[:20], "type"] = np.nan
    adata.obs.loc[adata.obs_names[20:30], "type"] = "-1"
    for annotated in (subset, adata):
        rank_genes_groups(annotated, "type", layer=layer)
    expected = subset.uns["rank_genes_groups"]
    result = adata.uns["rank_genes_groups"]
    for name in ("B", "NK", "T"):
        assert_allclose(result["scores"][name], expected["scores"][name], rtol=1e-4)

    copied = rank_genes_groups(adata, "type", layer=layer, n_genes=4, copy=True)

    assert_array_equal(copied.uns["rank_genes_groups"]["names"], result["names"][:4])

    copied.write_h5ad(tmp_path / "a.h5ad")
    stored = anndata.read_h5ad(tmp_path / "a.h5ad").uns["rank_genes_groups"]

    assert stored["names"].dtype.names == ("B", "NK", "T")

    with pytest.raises(ValueError, match="groupby='ihsc' is not in adata"):
        rank_genes_groups(adata)
