"""Record what users get from the package, and compare two recordings.

    python benchmarks/battery.py record before.npz
    python benchmarks/battery.py record after.npz --only "kinds/*/float32"
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
from ihgmm import anndata, metrics, storage
from ihgmm.paper import theory
from ihgmm.statistics.contrasts import telling_features

# How things are called: what the package renames changes in this part only.

RENAMED: dict[str, str] = {}
"""Attributes of results as they are called now, with their names in recordings."""

ESTIMATORS = ("IhGMM", "PSC", "SphericalKMeans", "TwoComponentLloyd")
METHODS = ("predict", "transform", "score", "predict_proba", "score_samples")
GRAMS = ("hollow", "full", "cosine", "hetero")
ORDERS = ("algebraic", "magnitude")
SOLVERS = ("auto", "dense", "lanczos", "block")
ASSIGNMENTS = ("kmeans", "cluster_qr")
NOISES = ("individual", "class", "common")

select = partial(ihgmm.select_n_clusters, random_state=0)
tree = partial(ihgmm.cluster_tree, random_state=0)
diagnose, scale_test = ihgmm.diagnose, ihgmm.scale_heterogeneity_test


def model_of(make, X, k, weights=None, **options):
    """Return a fitted model."""
    given = {"n_clusters": k, "random_state": 0, **options}
    if make == "TwoComponentLloyd":
        del given["n_clusters"]
    build = getattr(ihgmm, make)
    own = build().get_params()
    if "recipe" in own:
        settings = {name: given.pop(name) for name in set(given) - set(own)}
        given["recipe"] = ihgmm.Recipe.of(own["recipe"], **settings)
    more = {} if weights is None else {"sample_weight": weights}
    return build(**given).fit(X, **more)


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


def fitted(make, X, new, k, written=False, **options):
    model = model_of(make, X, k, **options)
    if written:
        storage.save_model(model, "model.npz")
        model = storage.load_model("model.npz")
    return told(model, X, new)


def tree_of_fit(X, k):
    return tree(model_of("IhSC", X, k))


def estimates(X, labels, **options):
    found = ihgmm.estimate_parameters(X, labels, **options)
    noise = float(np.mean(host(found.noise_levels)))
    telling = partial(telling_features, found.centers, n_features=5)
    intervals = {"half": found.scale_intervals(0.5), "usual": found.scale_intervals()}
    return {"of": found, "telling": [telling(), telling(noise)], **intervals}


def annotated(X, k, **options):
    adata = import_module("anndata").AnnData(X)
    anndata.ihsc(adata, k, **options)
    obs = {str(name): list(column) for name, column in adata.obs.items()}
    return {"obs": obs, "obsm": dict(adata.obsm), "uns": dict(adata.uns)}


def reported(make, X, k, given, **options):
    """Return the data inside the page of a report and the numbers that it shows."""
    model = model_of(make, X, k, **options)
    page = Path(model.report(X, "report.html", **given)).read_text("utf-8")
    held = re.search(r'(?s)<script type="application/json"[^>]*>(.*?)</script>', page)
    data = json.loads(held[1])
    for name, value in data.items():
        if isinstance(value, dict) and set(value) == {"type", "data"}:
            kind = np.dtype(f"<{value['type']}")
            data[name] = np.frombuffer(base64.b64decode(value["data"]), kind)
    shown = re.sub(r"(?s)<(script|style).*?</\1>|<[^>]*>", " ", page)
    return {"data": data, "shown": re.findall(r"\d[\d,.]*\d|\d", clean(shown))}


def command(line):
    """Return what ``python -m ihgmm`` says in JSON, and the files it writes."""
    words, before, code = line.split(), sys.argv, 0
    out, err = io.StringIO(), io.StringIO()
    sys.argv = ["ihgmm", *words, "--json"]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            runpy.run_module("ihgmm", run_name="__main__")
    except SystemExit as end:
        code = end.code
    finally:
        sys.argv = before
    if code:
        return {"code": code, "said": err.getvalue()}
    found = json.loads(out.getvalue())
    files = {}
    for path in sorted(Path().glob("out-*.csv")):
        lines = path.read_text("utf-8").splitlines()
        files[path.name] = list(zip(*csv.reader(lines), strict=True))
        path.unlink()
    return {"told": found, "files": files}


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


def place(name):
    """Return a path in a new folder."""
    return Path(tempfile.mkdtemp(dir=".")) / name


def memory_map(X):
    np.save(path := place("x.npy"), X)
    return np.load(path, mmap_mode="r")


def in_file(X, **options):
    file = import_module("h5py").File(place("x.h5"), "w")
    import_module("anndata.io").write_elem(file, "X", X, dataset_kwargs=options)
    return file["X"]


def chunks(X):
    return max(100, len(X) // 8), X.shape[1]


def zarr_array(X):
    create = import_module("zarr").create_array
    return create(place("x.zarr"), data=X, chunks=chunks(X))


def dask_array(X):
    return import_module("dask.array").from_array(X, chunks=chunks(X))


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
    "hdf5": in_file,
    "hdf5_chunks": lambda X: in_file(X, chunks=(20, X.shape[1] // 2)),
    "csr_hdf5": lambda X: in_file(sp.csr_matrix(X)),
    "zarr": zarr_array,
    "parquet": parquet,
    "dask": dask_array,
    "dask_csr": lambda X: dask_array(X).map_blocks(sp.csr_array),
}


def shapes():
    """Return data sets: rows, new rows, labels, number of clusters."""
    X, new, labels = data(220, 60, 4, 0.6, 0.6)
    sparse = sp.csr_array(X), sp.csr_array(new), labels, 4
    sets = {"tall": (240, 30, 4), "wide": (90, 300, 3), "few": (200, 8, 3)}
    return {name: (*data(*s), s[2]) for name, s in sets.items()} | {"sparse": sparse}


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
        "cluster-a-row": (X[:9], 9),
        "too-many-clusters": (X[:4], 6),
        "one-feature": (X[:, :1], 2),
        "three-features": (X[:, :3], 8),
        "very-wide": (data(40, 3000, 3, 0.15)[0], 3),
        "counts": (rng.poisson(np.abs(X)).astype(np.int16), 3),
        "large-numbers": (X * 1e200, 3),
        "small-numbers": (X * 1e-200, 3),
        "small-float32": ((X * 1e-42).astype(np.float32), 3),
        "nan": (np.where(j == 3, np.nan, X), 3),
        "infinite": (np.where(j == 3, -np.inf, X), 3),
        "words": (np.full((5, 2), "a"), 2),
    }


LARGE = {
    "30000x20": (30_000, 20, 6, 0.4),
    "30000x60": (30_000, 60, 6, 0.2, 0, "float32"),
    "3000x50": (3_000, 50, 40, 0.6),
    "110000x100": (110_000, 100, 8, 0.15, 0, "float32"),
    "9000x1200": (9_000, 1_200, 8, 0.06, 0, "float32"),
}

# Cases: a name and a call.


def grid(name, call, **choices):
    """Yield a case for each combination of options, named by their values or keys."""
    named = [
        choice if isinstance(choice, dict) else {str(value): value for value in choice}
        for choice in choices.values()
    ]
    for picked in product(*(choice.items() for choice in named)):
        keys, values = zip(*picked, strict=True)
        given = dict(zip(choices, values, strict=True))
        yield "/".join([name, *keys]), partial(call, **given)


def ihsc_cases():
    refine = {"plain": False, "refined": True}
    ways = {"gram": GRAMS, "order": ORDERS, "solver": SOLVERS}
    ways |= {"labels": ASSIGNMENTS, "refine": refine}
    for shape, (X, new, _, k) in shapes().items():
        name, fit = f"ihsc/{shape}", partial(fitted, "IhSC", X, new)
        yield from grid(name, partial(fit, k), **ways)
        counted = partial(fit, "auto")
        yield from grid(f"{name}/count", counted, gram=GRAMS, refine=refine)
        yield from grid(f"{name}/starts", partial(fit, k, max_iter=1), n_init=(1, 3))
        exact = partial(fit, k, tol=1e-8)
        yield from grid(f"{name}/exact", exact, solver=("block", "lanczos"))
        seeds = {"state": np.random.RandomState(5), "rng": np.random.default_rng(5)}
        yield from grid(f"{name}/seed", partial(fit, k), random_state=seeds)


def estimator_cases():
    for shape, (X, new, labels, k) in shapes().items():
        fit = partial(fitted, X=X, new=new, k=k)
        ways = {"noise": NOISES, "gram": GRAMS}
        yield from grid(f"ihgmm/{shape}", partial(fit, "IhGMM"), **ways)
        call = partial(fit, "IhGMM", k="auto", max_iter=3)
        yield from grid(f"ihgmm/{shape}/count", call, **ways)
        yield f"two/{shape}", partial(fit, "TwoComponentLloyd")
        ways = {"solver": SOLVERS, "labels": ASSIGNMENTS}
        yield from grid(f"psc/{shape}", partial(fit, "PSC"), **ways)
        call = partial(fit, "SDPKMeans", X=X[:40])
        yield from grid(f"sdp/{shape}", call, gram=("full", "cosine"))
        start = (X[:k].toarray() if sp.issparse(X) else X[:k]) + 0.1
        uneven = np.random.default_rng(1).exponential(size=len(labels))
        ways = {"init": {"drawn": "k-means++", "given": start}, "n_init": ("auto", 4)}
        ways["weights"] = {"alike": None, "weighted": uneven}
        yield from grid(f"spherical/{shape}", partial(fit, "SphericalKMeans"), **ways)


def question_cases():
    rng = np.random.default_rng(2)
    noise = rng.standard_normal((150, 40)), None, rng.integers(3, size=150), 3
    for shape, (X, _, labels, k) in {**shapes(), "noise": noise}.items():
        ways = {"signed": {"plain": False, "signed": True}}
        yield from grid(f"select/{shape}", partial(select, X), **ways)
        yield f"tree/{shape}", partial(tree, X)
        yield f"tree/{shape}/model", partial(tree_of_fit, X, k)
        yield f"select/{shape}/few", partial(select, X, max_clusters=2)
        words = np.array(["ash", "birch", "cedar", "dogwood"])[labels]
        given = {"true": labels, "words": words, "one": 0 * labels}
        given["random"] = rng.permutation(labels)
        call = partial(diagnose, X)
        yield from grid(f"diagnose/{shape}", call, labels=given)
        yield from grid(f"test/{shape}", partial(scale_test, X), labels=given)
        yield from grid(f"estimate/{shape}", partial(estimates, X), labels=given)
        call = partial(estimates, X, labels)
        yield f"estimate/{shape}/empty", partial(call, n_clusters=k + 2)


def basics(name, X, new, labels, k, solvers=("auto",), makes=ESTIMATORS):
    """Yield what can be asked of any data."""
    fit = partial(fitted, X=X, new=new, k=k)
    ihsc = partial(fit, "IhSC")
    yield from grid(f"{name}/ihsc", ihsc, gram=GRAMS, solver=solvers)
    yield f"{name}/ihsc/refined", partial(ihsc, refine=True)
    qr = partial(ihsc, labels="cluster_qr", order="magnitude")
    yield f"{name}/ihsc/cluster_qr", qr
    yield f"{name}/ihsc/count", partial(ihsc, k="auto")
    yield from grid(name, fit, make=makes)
    yield f"{name}/select", partial(select, X)
    asked = {"diagnose": diagnose, "estimate": estimates, "test": scale_test}
    for question, ask in asked.items():
        yield f"{name}/{question}", partial(ask, X, labels)


def kind_cases():
    dense, fresh, labels = data(260, 40, 4, 0.5, 0.3)
    for (kind, put), dtype in product(KINDS.items(), ("float64", "float32")):
        X, new = (attempt(partial(put, part.astype(dtype))) for part in (dense, fresh))
        solvers = SOLVERS if dtype == "float64" else ("block",)
        yield from basics(f"kinds/{kind}/{dtype}", X, new, labels, 4, solvers)


def edge_cases():
    for edge, (X, k) in edges().items():
        makes = (*ESTIMATORS, "SDPKMeans") if len(X) < 30 else ESTIMATORS
        labels, solvers = np.arange(len(X)) % k, ("auto", "block")
        yield from basics(f"edge/{edge}", X, X[:30], labels, k, solvers, makes)
    for name in ("gram", "order", "solver", "n_clusters", "tol", "n_init"):
        wrong = partial(model_of, "IhSC", [[1.0]], 1)
        yield from grid(f"edge/{name}", wrong, **{name: ("none",)})


def large_cases():
    for shape, sizes in LARGE.items():
        (X, new, labels), k = data(*sizes), sizes[2]
        yield from basics(f"large/{shape}", X, new, labels, k, makes=ESTIMATORS[:3])
        fit = partial(fitted, "IhSC", new=new, k=k)
        call = partial(fit, X=X)
        yield from grid(f"large/{shape}", call, solver=("block", "lanczos"))
        if len(X) != 3_000:
            kinds = ("memory_map", "zarr", "csr_array", "torch", "dask")
            put = {kind: attempt(partial(KINDS[kind], X)) for kind in kinds}
            yield from grid(f"large/{shape}", fit, X=put)


def function_cases():
    draw = partial(ihgmm.make_ihgmm, 60, random_state=0, return_params=True)
    kinds = {"noise": ("gaussian", "rademacher", "uniform"), "dtype": ("f4", "f8")}
    yield from grid("sample", draw, noise_structure=NOISES, **kinds)
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
    known = {"n_samples": 400, "n_features": 900, "n_clusters": 2, "separation": 9.0}
    model = {"labels": true, "scales": rng.uniform(0.5, 3, 60)}
    model["centers"] = rng.standard_normal((3, 10))
    known |= model | {"noise_level": 1.5, "size_ratio": 2.5}
    true_model = theory.TrueModel(**model)
    for name, member in vars(theory.TrueModel).items():
        if not name.startswith("_"):
            value = partial(getattr, true_model, name)
            yield f"theory/{name}", value() if callable(member) else value
    for name, function in inspect.getmembers(theory, inspect.isfunction):
        if function.__module__ == theory.__name__ and not name.startswith("_"):
            wanted = inspect.signature(function).parameters
            given = {name: known[name] for name in wanted if name in known}
            yield f"theory/{name}", partial(function, **given)


COMMANDS = {
    "fit": "fit rows.csv -k 3 COLUMNS -o out-labels.csv --save fitted.npz",
    "predict": "predict fitted.npz new.csv -o out-placed.csv",
    "fit-auto": "fit rows.csv -k auto --refine --prepare scale COLUMNS",
    "fit-iris": "fit iris -k 3",
    "choose-k": "choose-k rows.csv COLUMNS",
    "choose-k-few": "choose-k rows.csv --max-clusters 2 COLUMNS",
    "no-file": "fit nothing.csv -k 3",
}


def tool_cases():
    X, new, labels = data(240, 30, 4)
    store = partial(fitted, X=X[:60], new=new, k=4, written=True)
    yield from grid("storage", store, make=("IhSC", *ESTIMATORS))
    write = partial(reported, X=X, given={})
    yield from grid("report", write, make=("IhSC", "IhGMM"), k=(4, "auto"))
    given = {"labels_true": labels, "ids": [f"row {i}" for i in range(240)]}
    write = partial(reported, "IhSC", X, 4, given, refine=True)
    yield from grid("report/known", write, gram=GRAMS)
    yield "anndata/dense", partial(annotated, X, 4)
    yield "anndata/sparse", partial(annotated, sp.csr_matrix(X), "auto", refine=True)
    X, new, labels = data(150, 8, 3, 0.6)
    for file, rows in ("rows.csv", X), ("new.csv", new):
        table = frame(rows).assign(kind=[f"kind {i}" for i in labels[: len(rows)]])
        table.to_csv(file, index_label="name")
    for name, line in COMMANDS.items():
        line = line.replace("COLUMNS", "--id-column name --label-column kind")
        yield f"command/{name}", partial(command, line)


GROUPS = [ihsc_cases, estimator_cases, question_cases, kind_cases, edge_cases]
GROUPS += [large_cases, function_cases, tool_cases]

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
    return re.sub(r"0x[0-9a-f]+|tmp\w{8}", "", text)


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
        if type(value).__str__ is not object.__str__:
            held["text"] = str(value)
        yield from flat(name, held)
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
    return found | {f"{name}/warned": np.asarray(sorted(words), str)}


def record(path, only):
    path, found = Path(path).absolute(), {"only": np.asarray(only)}
    print(f"recording {ihgmm.__file__}", file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for group in GROUPS:
            start, before = time.perf_counter(), len(found)
            # Threads are worth their start for large data only.
            with threadpool_limits(None if group is large_cases else 1):
                for name, call in group():
                    if fnmatch(name, f"{only}*"):
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
        old, new = (str(part.tolist()) for part in (a, b))
        pairs = enumerate(zip(old, new, strict=False))
        at = max(0, next((i for i, (x, y) in pairs if x != y), 0) - 20)
        return "" if old == new else f"{old[at:][:120]} -> {new[at:][:120]}"
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
    return "" if gap <= rtol * largest else f"{a.dtype} {share:.1e} of {largest:.1e}"


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
    print("", *lines, sep="\n")
    return 1 if lines else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    todo = parser.add_subparsers(dest="todo", required=True)
    for name, count in (("record", 1), ("compare", 2)):
        part = todo.add_parser(name)
        part.add_argument("files", nargs=count, metavar="FILE")
        part.add_argument(
            "--only", default="", help="names that begin so; * is anything"
        )
        part.add_argument("--rtol", type=float, default=1e-10)
    given = parser.parse_args()
    if given.todo == "record":
        return record(given.files[0], given.only)
    return compare(given.files, given.only, given.rtol)


if __name__ == "__main__":
    sys.exit(main())
