"""What the fuzzer has found, by name, so that it stays mended."""

import cases
import damage
import pytest


def case(ask, shape, n, p, *spoils, then=(), weights=None, **options):
    data = {"seed": 0, "k": 3, "dtype": "float64", "kind": "array"}
    data |= {key: options.pop(key) for key in tuple(options) if key in data}
    data |= {"n": n, "p": p, "shape": shape, "spoils": spoils}

    result = {key: options.pop(key) for key in ("grows", "known") if key in options}
    result |= {"data": data, "ask": ask, "options": options, "then": then}
    if weights:
        result["weights"] = weights

    return result


# fmt: off
FOUND = {
    "eigenvalues that are all zero":
        case("IhGMM", "exact", 4, 5, "huge row", seed=2000, k=5, kind="polars",
        rows="given", n_clusters=1, diagonal="zero", noise="individual"),
    "fewer rows with a direction than blocks, on dask":
        case("IhSC", "one-hot", 5, 4, "negative zeros", "zero rows", seed=3158,
        kind="dask", dtype="int64", n_clusters="auto", diagonal="zero", max_iter=2),
    "noise of new rows whose squares overflow":
        case("IhGMM", "few", 2, 2, seed=33016, kind="arrow frame", outliers="auto",
        missing="fit", n_clusters="auto", noise="class", max_iter=2, diagonal="zero",
        weights="zeros", then=["fit", "save", "transform", "pickle", "fit"]) | {"new":
        "squares overflow"},
    "rows of rank one, whose noise is rounding":
        case("TwoComponentLloyd", "rank one", 55, 2, k=1, kind="polars",
        dtype="float16", then=["typical_rows"]),
    "a criterion of outliers alone":
        case("IhGMM", "one-hot", 26, 1, seed=891, missing="fit", outliers="auto",
        n_clusters=1, max_iter=1, then=["estimate", "fit", "bic"]),
    "one row to merge, whose class is known":
        case("IhSC", "one column", 5, 33, "huge column", "zero column", seed=26762,
        k=2, dtype="int64", n_clusters="auto", space="eigenvectors", grows=False,
        known="each its own"),
    "one row with a direction, on dask":
        case("IhGMM", "rank one", 13, 13, "nearly all rows zero",
        "nearly all rows zero", seed=89750, k=2, kind="dask", dtype="int64",
        n_clusters="auto", max_iter=2),
    "noise that is rounding where centres differ":
        case("scale_heterogeneity_test", "normal", 15, 7, k=4, dtype="int64",
        kind="arrow frame", weights="ones"),
    "contrasts of centres that are next to zero":
        case("IhSC", "counts", 4, 4, "small row", "small row", seed=8589, k=1,
        recipe="psc", kind="csc", n_clusters=3, missing="fit", then=["report"]),
    "batches of rows that are all zero":
        case("IhSC", "counts", 18, 9, "denormal", seed=5822, dtype="int64",
        n_clusters="auto") | {"batch": "two"},
    "moments of noise that rounding makes negative":
        case("typical_rows", "rank one", 32, 7, seed=67700, k=5, dtype="float16",
        kind="csr"),
    "one row, whose class is known":
        case("IhSC", "rank one", 1, 2, seed=202224, k=4, n_clusters="auto") | {"known":
        "each its own"},
    "one row with a weight, in a model that grows":
        case("IhSC", "few", 33, 6, "offset", seed=18, k=2, weights="one") | {"grows":
        True},
    "squares that overflow, in a model that grows":
        case("IhSC", "rank one", 13, 13, "squares overflow", seed=1702, kind="frame",
        then=["partial_fit"]) | {"grows": True},
    "infinity in a sparse frame that is scaled":
        case("ColumnScaler", "identity", 60, 23, seed=344, k=2, kind="sparse frame",
        method="none", then=["transform"]) | {"new": "inf"},
    "weights of 1e-310, in a model that grows":
        case("IhSC", "exact", 29, 29, "small column", seed=305, weights="tiny",
        then=["partial_fit"]) | {"grows": True},
    "eigenvalues whose squares fill single precision":
        case("IhSC", "sparse", 30, 20, "small row", "scales over decades", seed=112017,
        k=2, dtype="float32", n_clusters="auto"),
    "tied noise of rows of which none makes a direction":
        case("IhGMM", "one column", 4, 7, seed=4518, dtype="float32", noise="tied",
        outliers="auto", n_clusters="auto"),
    "counts of 1e-310":
        case("Biwhitener", "one-hot", 4, 4, "denormal", seed=1885, k=4, noise="counts"),
    "weights by length where squares of lengths fill single precision":
        case("IhGMM", "model", 13, 23, "scales over decades", seed=1305, k=4,
        dtype="float32", noise="tied", missing="fit", n_clusters=5,
        max_iter=1),
    "a score of new rows that are all outliers":
        case("IhGMM", "constant", 11, 4, seed=5374, dtype="float16", outliers="auto",
        then=["score"]) | {"new": "small column"},
    "small numbers that single precision cannot divide by":
        case("Biwhitener", "few", 34, 36, seed=522, k=1, dtype="float32"),
    "labels that no fit believes, with missing cells":
        case("IhSC", "model", 31, 17, "small column", "nan row", seed=3156, k=5,
        recipe="psc", missing="fit", then=["report"]),
    "a report of rows whose squares overflow":
        case("IhSC", "identity", 46, 20, "large row", "huge row", seed=376301,
        recipe="psc", kind="csc", weights="uniform", then=["report"]),
    "new rows 1e300 times as large as those of a fit":
        case("IhSC", "cauchy", 21, 16, "denormal", seed=1002478, k=2, weights="huge",
        then=["transform", "predict"]) | {"new": "offset"},
    "counting rows of which all that weigh are zero":
        case("select_n_clusters", "zero", 10, 3, weights="zeros"),
    "fewer rows than clusters once outliers are set aside":
        case("IhSC", "one column", 10, 30, "tiny", seed=2614, k=4, outliers="auto"),
    "counting numbers whose fourth powers overflow":
        case("IhSC", "model", 57, 4, "scales over decades", "signs", seed=14880,
        dtype="float32", kind="csr", missing="fit", n_clusters="auto", weights="tiny"),
    "one-hot rows, whose Gram matrix with a zero diagonal is zero":
        case("IhSC", "identity", 36, 29, n_clusters=1, rows="given", diagonal="zero"),
    "a multiple eigenvalue, at which LAPACK fails":
        case("IhSC", "constant", 13, 13, n_clusters=8),
    "rank one": case("IhSC", "rank one", 30, 10, n_clusters=3),
    "a row 1e160 times as long as the others":
        case("IhGMM", "model", 30, 8, "huge row", n_clusters=3),
    "a row 1e160 times as short":
        case("IhSC", "model", 30, 8, "small row", n_clusters=3, then=["predict",
        "report"]),
    "float32 near its limit":
        case("IhSC", "model", 30, 8, "float32 limit", n_clusters=3, dtype="float32"),
    "float64 near its limit":
        case("IhSC", "model", 30, 8, "float64 limit", n_clusters=3, recipe="psc",
        then=["transform"]),
    "a report on a data frame with a column that rules":
        case("SphericalKMeans", "one column", 31, 31, "zero column", n_clusters=2,
        kind="frame", then=["report"]),
    "a test of scales where noise is none or all":
        case("scale_heterogeneity_test", "few", 20, 7, seed=2, k=2, kind="csc",
        weights="ones"),
    "float32 rows whose sums overflow":
        case("IhGMM", "normal", 5, 3, "nearly all rows zero", "scales over decades",
        seed=64594, k=2, kind="read only", dtype="float32",
        noise="class", then=["report", "diagnose"]),
    "shared noise beside a huge column":
        case("IhGMM", "cauchy", 13, 12, "large row", "huge column", seed=13534,
        n_clusters="auto", noise="tied", tol=1e-12),
    "errors of centres that are next to zero":
        case("IhGMM", "one column", 6, 2, "huge row", "huge row", seed=51713, k=5,
        noise="tied", weights="whole", then=["report", "icl"]),
    "noise whose square is near the largest number":
        case("IhGMM", "normal", 11, 1, "squares overflow", "tiny", seed=11, k=4,
        n_clusters=1, missing="fit", noise="common", tol=1e-12,
        max_iter=1, weights="zeros", then=["bic", "score", "diagnose"]),
    "rows that were shortened to nothing":
        case("diagnose", "one column", 2, 2, "huge row", seed=51713, k=5),
    "a huge row and a small one, with weights":
        case("estimate_parameters", "few", 34, 4, "huge row", "small row", seed=442,
        k=1, weights="whole"),
    "outliers among one-hot rows":
        case("IhSC", "one-hot", 12, 6, n_clusters=8, outliers=0.02),
    "outliers among rows along no centre":
        case("IhGMM", "one-hot", 17, 17, k=1, n_clusters="auto", outliers="auto"),
    "fewer rows that are not zero than clusters":
        case("IhSC", "model", 30, 8, "nearly all rows zero", n_clusters=4),
    "nothing but zero rows":
        case("IhSC", "zero", 5, 3, n_clusters=1, recipe="psc"),
    "weights over 600 decades":
        case("estimate_parameters", "counts", 9, 12, weights="decades"),
    "weights near overflow": case("IhSC", "model", 30, 8, n_clusters=3, weights="huge"),
    "weights next to zero": case("IhSC", "model", 30, 8, n_clusters=3, weights="tiny"),
    "rows without noise, counted": case("select_n_clusters", "one column", 21, 21, k=1),
    "halves of which one is empty":
        case("TwoComponentLloyd", "one column", 24, 25, dtype="int64",
        then=["diagnose"]),
    "one direction with all variance":
        case("IhGMM", "constant", 17, 17, "signs", n_clusters=1, noise="tied"),
    "large rows without noise":
        case("IhGMM", "few", 12, 3, "twice", "float32 limit", seed=206, noise="common"),
    "new rows of another size altogether":
        {**case("IhSC", "model", 30, 8, n_clusters=3, then=["predict", "transform"]),
        "new": "squares overflow"},
    "all weight on one row, on dask":
        case("estimate_parameters", "model", 17, 2, k=1, kind="dask", weights="one"),
    "zeros to count, on dask": case("select_n_clusters", "zero", 13, 7, kind="dask"),
    "a sample beyond its type":
        case("make_ihgmm", "normal", 9, 9, scale_ratio=1e+200, dtype="float32"),
}
# fmt: on


@pytest.mark.parametrize("name", FOUND)
def test_numbers(name):
    assert cases.run(FOUND[name]) is None


def file(name, *damage, reader="model"):
    return {"file": name, "damage": damage, "reader": reader}


def step(how, at, length=1, value=0):
    return {"how": how, "at": at, "length": length, "value": value}


FILES = {
    "a model whose archive points before its beginning": file("psc", step("cut", 0.27)),
    "an array whose header has no end": file(
        "a.npy",
        step("copy", 0.4298734722124157, 50, 125),
        step("copy", 0.0, 50),
        reader="open",
    ),
    "an HDF5 file whose parts cannot be looked at": file(
        "sparse.h5ad", step("set", 0.8898689266137885, 50, 238), reader="open"
    ),
    "an HDF5 file whose links lead nowhere": file(
        "a.h5ad", step("zero", 0.2, 400), reader="open"
    ),
    "a text in an HDF5 file that claims a gigabyte": file(
        "a.h5ad", step("set", 0.363327582886748, 400, 79), reader="fit"
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_files(name):
    assert damage.run(FILES[name]) is None


@pytest.mark.parametrize("value", [{}, [], None, "x", -1, float("nan")])
def test_every_value_of_a_model_may_be_another(value):
    for number in range(0, 60, 3):
        change = {"how": "header", "which": number, "change": "", "value": value}
        assert damage.run(file("cosine", change)) is None
