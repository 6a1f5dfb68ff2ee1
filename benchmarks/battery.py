"""Record what users get from the package, and compare two recordings.

    python benchmarks/battery.py record before.npz
    python benchmarks/battery.py record after.npz --only "ihsc/tall/*"
    python benchmarks/battery.py compare before.npz after.npz

A recording holds labels, figures, words, warnings and errors by name, such as
``ihsc/tall/hollow/algebraic/block/kmeans/plain/labels``. Labels and words must be the
same in both, and floats must agree to 1e-10 of the largest entry of their array.
"""

import argparse
import base64
import contextlib
import csv
import inspect
import io
import itertools
import json
import os
import re
import runpy
import sys
import tempfile
import time
import warnings
from collections import Counter
from fnmatch import fnmatch
from functools import cache, partial
from importlib import import_module
from itertools import product
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

import ihgmm
from ihgmm import anndata, estimation, metrics, planning, storage, theory

# How things are called: what the package renames changes in this part only.

RENAMED: dict[str, str] = {}
"""Attributes of results as they are called now, with their names in recordings."""

ESTIMATORS = "IhSC IhGMM PSC SphericalKMeans TwoComponentLloyd SDPKMeans".split()
METHODS = ("predict", "transform", "score", "predict_proba", "score_samples")
GRAMS = ("hollow", "full", "cosine", "hetero")
ORDERS = ("algebraic", "magnitude")
SOLVERS = ("auto", "dense", "lanczos", "block")
ASSIGNMENTS = ("kmeans", "cluster_qr")
NOISES = ("individual", "class", "common")

select = partial(ihgmm.select_n_clusters, random_state=0)
diagnose, scale_test = ihgmm.diagnose, ihgmm.scale_heterogeneity_test


def fit_model(make, X, k, weights=None, **options):
    given = {"n_clusters": k, "random_state": 0, **options}
    if make == "TwoComponentLloyd":
        del given["n_clusters"]
    more = {} if weights is None else {"sample_weight": weights}
    return getattr(ihgmm, make)(**given).fit(X, **more)


def told(model, X, new):
    """Return the attributes of a fitted model and what it says of rows."""
    names = [name for name in dir(model) if re.fullmatch("[a-z].*_", name)]
    found = {name: getattr(model, name) for name in names if hasattr(model, name)}
    found["home"] = type(model.labels_).__module__.partition(".")[0]
    calls = dict.fromkeys(METHODS, new) | {"bic": X, "icl": X, "sample": 7}
    for name, given in calls.items():
        if hasattr(model, name):
            found[name] = attempt(partial(getattr(model, name), given))
    return found


def fitted(make, X, new, k, **options):
    return told(fit_model(make, X, k, **options), X, new)


def stored(make, X, new, k):
    storage.save_model(fit_model(make, X, k), "model.npz")
    return told(storage.load_model("model.npz"), X, new)


def estimates(X, labels, **options):
    found = ihgmm.estimate_parameters(X, labels, **options)
    noise = float(np.mean(host(found.noise_levels)))
    telling = partial(estimation.telling_features, found.centers, n_features=5)
    intervals = [found.scale_intervals(level) for level in (0.5, 0.95)]
    return found, {"intervals": intervals, "telling": [telling(), telling(noise)]}


def annotated(X, k, **options):
    adata = import_module("anndata").AnnData(X)
    anndata.ihsc(adata, k, **options)
    obs = {str(name): list(column) for name, column in adata.obs.items()}
    return {"obs": obs, "obsm": dict(adata.obsm), "uns": dict(adata.uns)}


def reported(make, X, k, options, **more):
    """Return the data inside the page of a report and the numbers that it shows."""
    model = fit_model(make, X, k, **options)
    page = Path(model.report(X, "report.html", **more)).read_text("utf-8")
    held = re.search(r'(?s)<script type="application/json"[^>]*>(.*?)</script>', page)
    data = json.loads(held[1])
    for name, value in data.items():
        if isinstance(value, dict) and set(value) == {"type", "data"}:
            kind = np.dtype(f"<{value['type']}")
            data[name] = np.frombuffer(base64.b64decode(value["data"]), kind)
    shown = re.sub(r"(?s)<(script|style).*?</\1>|<[^>]*>", " ", page)
    return {"data": data, "shown": re.findall(r"\d[\d,.]*\d|\d", clean(shown))}


def command(line):
    """Return what ``python -m ihgmm`` says in JSON, and the file it writes with -o."""
    words, before, code = line.split(), sys.argv, 0
    out, err = io.StringIO(), io.StringIO()
    try:
        sys.argv = ["ihgmm", *words, "--json"]
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            runpy.run_module("ihgmm", run_name="__main__")
    except SystemExit as end:
        code = end.code
    finally:
        sys.argv = before
    if code:
        return {"code": code, "said": err.getvalue()}
    found = json.loads(out.getvalue())
    found = {"document": figures(found) if words[0] == "plan" else found}
    if "-o" in words:
        with open(words[words.index("-o") + 1], newline="") as file:
            found["file"] = list(zip(*csv.reader(file), strict=True))
    return found


def planned(*sizes):
    return figures(planning.plan(*sizes))


def figures(value):
    """Return a plan without its words."""
    value = vars(value) if hasattr(value, "__dict__") else value
    if not isinstance(value, dict):
        return None if isinstance(value, (str, list, tuple)) else value
    return {name: part for name in value if (part := figures(value[name])) is not None}


# Data, drawn without the package, and the kinds of arrays that it comes in.


@cache
def data(n, p, k, strength=0.3, zeros=0.0, dtype="float64"):
    """Return rows, 30 new ones and the labels of the first, of uneven clusters."""
    rng = np.random.default_rng([n, p, k])
    centers = strength * rng.standard_normal((k, p))
    share = np.linspace(1, 2, k)
    labels = rng.choice(k, n + 30, p=share / share.sum())
    X = rng.uniform(1, 10, (n + 30, 1)) * centers[labels]
    X += rng.uniform(0.5, 1.5, (n + 30, 1)) * rng.standard_normal(X.shape)
    X[rng.random(X.shape) < zeros] = 0
    X = X.astype(dtype)
    return X[:n], X[n:], labels[:n]


FOLDERS = itertools.count()


def place(name):
    """Return a path in a new folder."""
    folder = Path(f"store-{next(FOLDERS)}")
    folder.mkdir()
    return folder / name


def memory_map(X):
    np.save(path := place("x.npy"), X)
    return np.load(path, mmap_mode="r")


def hdf5(X, chunks=None):
    file = import_module("h5py").File(place("x.h5"), "w")
    return file.create_dataset("X", data=X, chunks=chunks)


def csr_hdf5(X):
    group, X = import_module("h5py").File(place("x.h5"), "w"), sp.csr_array(X)
    for name in ("data", "indices", "indptr"):
        group.create_dataset(name, data=getattr(X, name))
    group.attrs.update({"encoding-type": "csr_matrix", "shape": X.shape})
    return group


def chunked(X, create, **options):
    return create(X, chunks=(max(100, len(X) // 8), X.shape[1]), **options)


def dask_array(X):
    return chunked(X, import_module("dask.array").from_array)


def zarr_array(X):
    create = import_module("zarr").create_array
    return chunked(X, lambda X, chunks: create(place("x"), data=X, chunks=chunks))


def frame(X, library="pandas"):
    return import_module(library).DataFrame({f"f{j}": x for j, x in enumerate(X.T)})


def parquet(X):
    frame(X).to_parquet(path := place("x.parquet"), row_group_size=90)
    return import_module("pyarrow.dataset").dataset(path)


KINDS = {
    "c": np.ascontiguousarray,
    "fortran": np.asfortranarray,
    "strided": lambda X: np.repeat(X, 2, axis=0)[::2],
    "lists": lambda X: X.tolist(),
    "csr_matrix": sp.csr_matrix,
    "csr_array": sp.csr_array,
    "csc_matrix": sp.csc_matrix,
    "csc_array": sp.csc_array,
    "pandas": frame,
    "polars": lambda X: frame(X, "polars"),
    "torch": lambda X: import_module("torch").asarray(X),
    "strict": lambda X: import_module("array_api_strict").asarray(X),
    "memory_map": memory_map,
    "hdf5": hdf5,
    "hdf5_chunks": lambda X: hdf5(X, (min(len(X), 70), X.shape[1] // 2)),
    "zarr": zarr_array,
    "csr_hdf5": csr_hdf5,
    "parquet": parquet,
    "dask": dask_array,
    "dask_csr": lambda X: dask_array(X).map_blocks(sp.csr_array),
}


def shapes():
    """Return data sets: rows, new rows, labels, number of clusters."""
    X, new, labels = data(220, 60, 4, 0.6, 0.6)
    return {
        "tall": (*data(240, 30, 4), 4),
        "wide": (*data(90, 300, 3), 3),
        "few": (*data(200, 8, 3), 3),
        "sparse": (sp.csr_array(X), sp.csr_array(new), labels, 4),
    }


def edges():
    """Return small data sets that are special in some way, and numbers of clusters."""
    X, _, labels = data(120, 20, 3)
    rng = np.random.default_rng(3)
    i, j = np.ogrid[:120, :20]
    return {
        "zero-rows": (np.where(i % 50, X, 0), 3),
        "all-zero": (np.zeros((12, 4)), 2),
        "huge-row": (np.where(i == 7, 1e6, 1) * X, 3),
        "huge-column": (np.where(j == 3, 1e4, 1) * X, 3),
        "duplicates": (np.eye(6)[rng.integers(3, size=60)], 4),
        "all-alike": (np.ones((20, 5)), 2),
        "rank-two": (rng.standard_normal((80, 2)) @ rng.standard_normal((2, 15)), 5),
        "one-cluster": (X, 1),
        "opposite": (np.sign(labels - 0.5)[:, None] * X[:1] + 0.1 * X, 2),
        "one-row": (X[:1], 1),
        "two-rows": (X[:2], 2),
        "cluster-a-row": (X[:9], 9),
        "too-many-clusters": (X[:4], 6),
        "one-feature": (X[:, :1], 2),
        "two-features": (X[:, :2], 3),
        "three-features": (X[:, :3], 8),
        "very-wide": (data(40, 3000, 3, 0.15)[0], 3),
        "counts": (rng.poisson(np.abs(X)).astype(np.int16), 3),
        "large-numbers": (X * 1e200, 3),
        "small-numbers": (X * 1e-200, 3),
        "small-float32": ((X * 1e-42).astype(np.float32), 3),
        "nan": (np.where(j == 3, np.nan, X), 3),
        "infinite": (np.where(j == 3, -np.inf, X), 3),
        "words": (np.full((5, 2), "a"), 2),
        "flat": (X[0], 2),
    }


LARGE = {
    "30000x20": (30_000, 20, 6, 0.4),
    "30000x60": (30_000, 60, 6, 0.2, 0, "float32"),
    "3000x50": (3_000, 50, 40, 0.6),
    "110000x100": (110_000, 100, 8, 0.15, 0, "float32"),
    "9000x1200": (9_000, 1_200, 8, 0.06, 0, "float32"),
}

# Cases: a name and a call.


def ihsc_cases():
    names = ("gram", "order", "eigen_solver", "assign_labels")
    for shape, (X, new, _, k) in shapes().items():
        fit = partial(fitted, "IhSC", X, new)
        for options in product(GRAMS, ORDERS, SOLVERS, ASSIGNMENTS):
            call = partial(fit, k, **dict(zip(names, options, strict=True)))
            yield f"ihsc/{shape}/{'/'.join(options)}/plain", call
            yield (
                f"ihsc/{shape}/{'/'.join(options)}/refined",
                partial(call, refine=True),
            )
        for gram in GRAMS:
            call = partial(fit, "auto", gram=gram)
            yield f"ihsc/{shape}/{gram}/counted", call
            yield f"ihsc/{shape}/{gram}/counted-refined", partial(call, refine=True)
        yield f"ihsc/{shape}/starts", partial(fit, k, n_init=3, max_iter=1)
        yield f"ihsc/{shape}/exact", partial(fit, k, tol=1e-8, eigen_solver="block")
        for source in (np.random.RandomState, np.random.default_rng):
            call = partial(fit, k, random_state=source(5), eigen_solver="block")
            yield f"ihsc/{shape}/{source.__name__}", call


def estimator_cases():
    for shape, (X, new, labels, k) in shapes().items():
        fit = partial(fitted, X=X, new=new, k=k)
        for noise, gram in product(NOISES, GRAMS):
            call = partial(fit, "IhGMM", noise=noise, gram=gram)
            yield f"ihgmm/{shape}/{noise}/{gram}/given", call
            counted = partial(call, k="auto", max_iter=3)
            yield f"ihgmm/{shape}/{noise}/{gram}/counted", counted
        for solver, assign in product(SOLVERS, ASSIGNMENTS):
            call = partial(fit, "PSC", eigen_solver=solver, assign_labels=assign)
            yield f"psc/{shape}/{solver}/{assign}", call
        for solver in SOLVERS:
            call = partial(fit, "TwoComponentLloyd", eigen_solver=solver)
            yield f"two/{shape}/{solver}", call
        weights = np.random.default_rng(1).exponential(size=len(labels))
        start = (X[:k].toarray() if sp.issparse(X) else X[:k]) + 0.1
        for i, more in enumerate(({}, {"n_init": 4}, {"init": start}, {"tol": 0})):
            call = partial(fit, "SphericalKMeans", **more)
            yield f"spherical/{shape}/{i}", call
            yield f"spherical/{shape}/{i}/weighted", partial(call, weights=weights)
        for assign in ASSIGNMENTS:
            call = partial(fit, "SDPKMeans", X=X[:40], assign_labels=assign)
            yield f"sdp/{shape}/{assign}", call


def question_cases():
    rng = np.random.default_rng(2)
    noise = rng.standard_normal((150, 40)), None, rng.integers(3, size=150), 3
    for shape, (X, _, labels, k) in {**shapes(), "noise": noise}.items():
        ways = ("auto", "parallel", "stability"), ("auto", "hollow", "cosine")
        for method, gram in product(*ways):
            call = partial(select, X, method=method, gram=gram)
            yield f"select/{shape}/{method}/{gram}", call
        yield f"select/{shape}/few", partial(select, X, n_flips=4, max_clusters=2)
        words = np.array(["ash", "birch", "cedar", "dogwood"])[labels]
        kinds = {"true": labels, "words": words, "one": 0 * labels}
        for kind, given in (kinds | {"random": rng.permutation(labels)}).items():
            for gram in GRAMS:
                call = partial(diagnose, X, given, gram=gram)
                yield f"diagnose/{shape}/{kind}/{gram}", call
            yield f"estimate/{shape}/{kind}", partial(estimates, X, given)
            yield f"test/{shape}/{kind}", partial(scale_test, X, given)
        for more in {"n_clusters": k + 2}, {"scales": rng.uniform(0, 2, len(labels))}:
            call = partial(estimates, X, labels, **more)
            yield f"estimate/{shape}/{next(iter(more))}", call


def basics(name, X, new, labels, k, solvers=("auto",), makes=ESTIMATORS[1:5]):
    """Yield what can be asked of any data."""
    fit = partial(fitted, X=X, new=new, k=k)
    for gram, solver in product(GRAMS, solvers):
        call = partial(fit, "IhSC", gram=gram, eigen_solver=solver)
        yield f"{name}/ihsc/{gram}/{solver}", call
    yield f"{name}/refined", partial(fit, "IhSC", refine=True)
    options = {"order": "magnitude", "assign_labels": "cluster_qr"}
    yield f"{name}/magnitude", partial(fit, "IhSC", **options)
    yield f"{name}/counted", partial(fit, "IhSC", k="auto")
    for make in makes:
        yield f"{name}/{make.lower()}", partial(fit, make)
    yield f"{name}/select", partial(select, X)
    yield f"{name}/diagnose", partial(diagnose, X, labels)
    yield f"{name}/estimate", partial(estimates, X, labels)
    yield f"{name}/test", partial(scale_test, X, labels)


def kind_cases():
    dense, fresh, labels = data(260, 40, 4, 0.5, 0.3)
    for (kind, put), dtype in product(KINDS.items(), ("float64", "float32")):
        X, new = (attempt(partial(put, part.astype(dtype))) for part in (dense, fresh))
        solvers = SOLVERS if dtype == "float64" else ("block",)
        yield from basics(f"kinds/{kind}/{dtype}", X, new, labels, 4, solvers)


def edge_cases():
    for edge, (X, k) in edges().items():
        makes = ESTIMATORS[1:] if len(X) < 30 else ESTIMATORS[1:5]
        labels, solvers = np.arange(len(X)) % k, ("auto", "block")
        yield from basics(f"edge/{edge}", X, X[:30], labels, k, solvers, makes)
    for name in ("gram", "order", "eigen_solver", "n_clusters", "tol", "n_init"):
        call = partial(fit_model, "IhSC", [[1.0]], **{"k": 1, name: "none"})
        yield f"edge/options/{name}", call


def large_cases():
    for shape, sizes in LARGE.items():
        X, new, labels = data(*sizes)
        name, k = f"large/{shape}", sizes[2]
        yield from basics(name, X, new, labels, k, makes=ESTIMATORS[1:4])
        for solver in ("block", "lanczos"):
            call = partial(fitted, "IhSC", X, new, k, eigen_solver=solver)
            yield f"{name}/ihsc/hollow/{solver}", call
        for kind in ("memory_map", "zarr", "csr_array", "torch", "dask"):
            there = attempt(partial(KINDS[kind], X))
            yield f"{name}/{kind}", partial(fitted, "IhSC", there, new, k)


def function_cases():
    draw = partial(ihgmm.make_ihgmm, 60, random_state=0, return_params=True)
    for options in product(("gaussian", "rademacher", "uniform"), NOISES, ("f8", "f4")):
        names = ("noise", "noise_structure", "dtype")
        call = partial(draw, **dict(zip(names, options, strict=True)))
        yield f"sample/{'/'.join(options)}", call
    given = {"centers": np.eye(3, 9), "scales": np.arange(1, 61), "noise_levels": 1.0}
    levels = {"noise_structure": "class", "noise_levels": [1.0, 2.0, 0.5, 1.0]}
    apart = {"scale_ratio": 1.0, "balance": 0.3, "separation": 4.0}
    near = {"separation_constant": 0.5, "noise_levels": 0.0, "return_params": False}
    for i, more in enumerate((given, levels, apart, near, {"n_features": 2})):
        yield f"sample/more-{i}", partial(draw, **more)
    true, rng = data(60, 10, 3)[2], np.random.default_rng(4)
    names, other = np.array(["x", "y", "z"])[true], rng.integers(5, size=60)
    for name in metrics.__all__:
        for i, pair in enumerate(((true, other), (other, names), (names, true))):
            yield f"metrics/{name}/{i}", partial(getattr(metrics, name), *pair)
    triple = true, rng.uniform(0.5, 3, 60), rng.standard_normal((3, 10))
    known = dict(zip(("labels", "scales", "centers"), triple, strict=True))
    known["parameters"] = attempt(partial(theory.model_parameters, *triple))
    known |= {"n_samples": 400, "n_features": 900, "n_clusters": 2, "separation": 9.0}
    known |= {"noise_level": 1.5, "size_ratio": 2.5}
    for name in filter(str.islower, theory.__all__):
        wanted = inspect.signature(getattr(theory, name)).parameters
        given = {name: known[name] for name in wanted if name in known}
        yield f"theory/{name}", partial(getattr(theory, name), **given)
    for sizes in ((10**9, 2_000, 50), (10**6, 100, 10), (5_000, 50_000, 3)):
        yield f"plan/{sizes[0]}", partial(planned, *sizes)


COMMANDS = {
    "fit": "fit rows.csv -k 3 COLUMNS -o labels.csv --save fitted.npz",
    "predict": "predict fitted.npz new.csv -o placed.csv",
    "fit-auto": "fit rows.csv -k auto --refine --scale-columns COLUMNS",
    "fit-iris": "fit iris -k 3 --gram cosine",
    "choose-k": "choose-k rows.csv COLUMNS",
    "choose-k-parallel": "choose-k rows.csv --method parallel COLUMNS",
    "test-scales": "test-scales rows.csv COLUMNS",
    "test-scales-found": "test-scales rows.csv -k 3 COLUMNS",
    "plan": "plan --n 1e8 --p 500 -k 20 --workers 50",
    "sample": "sample -n 40 -p 6 -k 3 -o drawn.csv",
    "no-file": "fit nothing.csv -k 3",
}


def tool_cases():
    X, new, labels = data(240, 30, 4)
    for make in ESTIMATORS:
        yield f"storage/{make.lower()}", partial(stored, make, X[:100], new, 4)
    for make, k in product(("IhSC", "IhGMM"), (4, "auto")):
        yield f"report/{make.lower()}/{k}", partial(reported, make, X, k, {})
    more = {"labels_true": labels, "ids": [f"row {i}" for i in range(240)]}
    options = {"gram": "cosine", "refine": True}
    yield "report/known", partial(reported, "IhSC", X, 4, options, **more)
    yield "anndata/dense", partial(annotated, X, 4)
    yield "anndata/sparse", partial(annotated, sp.csr_matrix(X), "auto", refine=True)
    X, new, labels = data(150, 8, 3, 0.6)
    for file, rows in ("rows.csv", X), ("new.csv", new):
        table = frame(rows).assign(kind=[f"kind {i}" for i in labels[: len(rows)]])
        table.to_csv(file, index_label="name")
    for name, line in COMMANDS.items():
        line = line.replace("COLUMNS", "--id-column name --label-column kind")
        yield f"command/{name}", partial(command, line)


SMALL_GROUPS = [ihsc_cases, estimator_cases, question_cases, kind_cases, edge_cases]
GROUPS = [*SMALL_GROUPS, large_cases, function_cases, tool_cases]

# Recording.

MOST = 20_000
"""Floats that are kept of an array; of a longer one every so many, and its length."""


class Failure(str):
    """The error that a call ended in."""


def attempt(call):
    try:
        return call()
    except Exception as error:
        return Failure(f"{type(error).__name__}: {error}")


def clean(text):
    """Return text without what differs from run to run."""
    text = text.replace(os.getcwd(), "").replace(ihgmm.__version__, "")
    return re.sub(r"0x[0-9a-f]+|store-\d+", "", text)


def host(value):
    """Return an array of any library as one of NumPy."""
    value = value.compute() if hasattr(value, "compute") else value
    return np.asarray(value.toarray() if sp.issparse(value) else value)


def flat(name, value):
    """Yield names and arrays of all that a result holds."""
    if value is None or isinstance(value, (str, Path)):
        name += "/error" if isinstance(value, Failure) else ""
        yield name, np.asarray(clean(str(value)))
    elif isinstance(value, dict):
        for key, part in value.items():
            key = str(key).rstrip("_")
            yield from flat(f"{name}/{RENAMED.get(key, key)}", part)
    elif isinstance(value, (list, tuple)):
        same = value and {type(part) for part in value} <= {int, float, str}
        yield from flat(name, np.asarray(value) if same else dict(enumerate(value)))
    elif type(value).__module__.startswith("ihgmm"):
        names = [key for key in dir(value) if key[0] != "_" and hasattr(value, key)]
        parts = {key: getattr(value, key) for key in names}
        held = {key: part for key, part in parts.items() if not callable(part)}
        yield from flat(name, {"text": str(value), **held})
    else:
        array = host(value)
        if array.dtype.kind == "O":
            array = np.asarray([clean(str(part)) for part in array.ravel()])
        if array.dtype.kind == "f" and array.size > MOST:
            yield f"{name}/length", np.asarray(np.linalg.norm(array.astype(float)))
            yield f"{name}/shape", np.asarray(array.shape)
            array = array.ravel()[:: array.size // MOST + 1]
        yield name, array


def recorded(name, call):
    """Return all that a case gives, with the warnings that users would see."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = dict(flat(name, attempt(call)))
    seen = (w for w in said if issubclass(w.category, (UserWarning, RuntimeWarning)))
    words = {f"{w.category.__name__}: {clean(str(w.message))}" for w in seen}
    return found | {f"{name}/warnings": np.asarray(sorted(words), str)}


def record(path, only):
    path, found = Path(path).absolute(), {"only": np.asarray(only)}
    print(f"recording {ihgmm.__file__}", file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for group in GROUPS:
            start, before = time.perf_counter(), len(found)
            # Threads are worth their start for large data only.
            with threadpool_limits(1 if group in SMALL_GROUPS else None):
                for name, call in group():
                    if fnmatch(name, only):
                        parts = recorded(name, call)
                        assert not parts.keys() & found.keys(), f"{name} comes twice"
                        found |= parts
            count, seconds = len(found) - before, time.perf_counter() - start
            print(f"{group.__name__}: {count} in {seconds:.1f} s", file=sys.stderr)
    with open(path, "wb") as file:
        np.savez_compressed(file, **found)
    print(f"{len(found) - 1} values in {path}")


# Comparing.


def difference(a, b, rtol):
    """Return what is different, in words; nothing if nothing is."""
    if "U" in (a.dtype.kind, b.dtype.kind):
        return "" if a.tolist() == b.tolist() else f"{shortened(a)} -> {shortened(b)}"
    if a.shape != b.shape or a.dtype != b.dtype:
        return f"{a.dtype} {a.shape} -> {b.dtype} {b.shape}"
    if a.dtype.kind != "f":
        wrong = int((a != b).sum())
        return f"{wrong} of {a.size} entries" if wrong else ""
    odd = ~(np.isfinite(a) & np.isfinite(b))
    if not np.array_equal(a[odd], b[odd], equal_nan=True):
        return "infinite or missing in other places"
    gap = np.abs(a[~odd] - b[~odd]).max(initial=0)
    largest = np.abs(a[~odd]).max(initial=0)
    share = gap / largest if largest else np.inf
    return "" if gap <= rtol * largest else f"{share:.1e} of the largest, {gap:.1e}"


def shortened(array):
    text = str(array.tolist())
    return text if len(text) < 200 else f"{text[:150]} ... {text[-40:]}"


def compare(paths, only, rtol):
    parts = [dict(np.load(path)) for path in paths]
    wanted = [only, *(str(part.pop("only")) for part in parts)]
    table, lines = {}, []
    for name in sorted(parts[0] | parts[1]):
        if not all(fnmatch(name, f"{pattern}*") for pattern in wanted):
            continue
        kind, words = "gone" if name in parts[0] else "new", ""
        if all(name in part for part in parts):
            words = difference(*(part[name] for part in parts), rtol)
            kind = "different" if words else "same"
        table.setdefault(name.partition("/")[0], Counter())[kind] += 1
        if kind != "same":
            lines.append(f"{kind}: {name}  {words}")
    kinds = ("same", "different", "gone", "new")
    print(f"{'':12}{'values':>10}" + "".join(f"{kind:>10}" for kind in kinds))
    for name, counts in [*table.items(), ("all", sum(table.values(), Counter()))]:
        cells = (counts.total(), *(counts[kind] for kind in kinds))
        print(f"{name:12}" + "".join(f"{cell:10,}" for cell in cells))
    print(*lines, sep="\n")
    return 1 if lines else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    todo = parser.add_subparsers(dest="todo", required=True)
    for name, count in (("record", 1), ("compare", 2)):
        part = todo.add_parser(name)
        part.add_argument("files", nargs=count, metavar="FILE")
        part.add_argument("--only", default="*", help="names, such as 'edge/*'")
        part.add_argument("--rtol", type=float, default=1e-10)
    given = parser.parse_args()
    if given.todo == "record":
        return record(given.files[0], given.only)
    return compare(given.files, given.only, given.rtol)


if __name__ == "__main__":
    sys.exit(main())
