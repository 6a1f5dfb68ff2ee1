"""Cases for estimators and functions: plain data, drawn, run and judged.

A case is a dictionary that JSON can hold: how to make the data, what to ask of them,
with which options. The same case always does the same, so that one that failed can be
run again, or become a test, as it is printed.
"""

import io
import pickle
import traceback
import warnings
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import fields
from tempfile import TemporaryDirectory

import dask.array as da
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import scipy.sparse as sp
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

import ihgmm
from ihgmm import metrics
from ihgmm.numerics.recipe import RECIPES
from ihgmm.storage import load_model, save_model


def make_data(spec):
    """Return the data of a case."""
    rng = np.random.default_rng(spec["seed"])
    n = spec["n"]
    p = spec["p"]
    k = spec["k"]
    labels = rng.integers(k, size=n)
    scales = np.exp(rng.normal(size=n))

    X = SHAPES[spec["shape"]](rng, n, p, k, labels, scales)
    if X.dtype.kind in "iu" and spec["spoils"]:
        X = X.astype(float)

    with np.errstate(all="ignore"):
        for spoil in spec["spoils"]:
            X = SPOILS[spoil](rng, X)
        return X.astype(spec["dtype"])


def _model(rng, n, p, k, labels, scales):
    centers = 5 * rng.normal(size=(k, p))
    return scales[:, None] * centers[labels] + rng.normal(size=(n, p))


SHAPES = {
    "model": _model,
    "normal": lambda rng, n, p, *_: rng.normal(size=(n, p)),
    "exact": lambda rng, n, p, k, labels, scales: (
        scales[:, None] * rng.normal(size=(k, p))[labels]
    ),
    "rank one": lambda rng, n, p, *_: np.outer(rng.normal(size=n), rng.normal(size=p)),
    "one-hot": lambda rng, n, p, k, labels, scales: np.eye(p)[rng.integers(p, size=n)],
    "identity": lambda rng, n, p, *_: np.eye(n, p),
    "constant": lambda rng, n, p, *_: np.full((n, p), 3.0),
    "counts": lambda rng, n, p, *_: rng.poisson(0.4, size=(n, p)),
    "positive": lambda rng, n, p, *rest: np.exp(0.1 * _model(rng, n, p, *rest)),
    "few": lambda rng, n, p, k, labels, scales: rng.integers(-1, 2, (k, p))[
        labels
    ].astype(float),
    "sparse": lambda rng, n, p, *_: (
        rng.normal(size=(n, p)) * (rng.random((n, p)) < 0.1)
    ),
    "cauchy": lambda rng, n, p, *_: rng.standard_cauchy(size=(n, p)),
    "zero": lambda rng, n, p, *_: np.zeros((n, p)),
    "one column": lambda rng, n, p, *_: np.eye(p)[0] * rng.normal(size=(n, 1)),
}


def _at(rng, X, count, value, rows=False):
    X = X.copy()
    positions = rng.integers(X.size, size=count)
    if rows:
        X[rng.integers(len(X), size=count)] = value
    else:
        X.flat[positions] = value
    return X


def _times(rng, X, factor, axis):
    factors = np.ones(X.shape[axis])
    factors[rng.integers(len(factors))] = factor
    return X * np.expand_dims(factors, 1 - axis)


def _sized(X, largest):
    peak = np.abs(X[np.isfinite(X)]).max(initial=0)
    return X / peak * largest if peak else X


SPOILS = {
    "zero rows": lambda rng, X: _at(rng, X, max(len(X) // 2, 1), 0, rows=True),
    "nearly all rows zero": lambda rng, X: X * (np.arange(len(X)) < 2)[:, None],
    "zero column": lambda rng, X: _times(rng, X, 0.0, 1),
    "nan": lambda rng, X: _at(rng, X, 1 + X.size // 20, np.nan),
    "nan row": lambda rng, X: _at(rng, X, 1, np.nan, rows=True),
    "inf": lambda rng, X: _at(rng, X, 1, np.inf),
    "huge row": lambda rng, X: _times(rng, X, 1e160, 0),
    "large row": lambda rng, X: _times(rng, X, 1e9, 0),
    "small row": lambda rng, X: _times(rng, X, 1e-160, 0),
    "huge column": lambda rng, X: _times(rng, X, 1e150, 1),
    "small column": lambda rng, X: _times(rng, X, 1e-150, 1),
    "negative zeros": lambda rng, X: np.where(X == 0, -0.0, X),
    "denormal": lambda rng, X: _sized(X, 1e-310),
    "tiny": lambda rng, X: _sized(X, 1e-40),
    "float32 limit": lambda rng, X: _sized(X, 3e38),
    "float64 limit": lambda rng, X: _sized(X, 1.7e308),
    "squares overflow": lambda rng, X: _sized(X, 1e300),
    "scales over decades": lambda rng, X: X * 10.0 ** rng.uniform(-12, 12, (len(X), 1)),
    "twice": lambda rng, X: np.repeat(X[: (len(X) + 1) // 2], 2, axis=0)[: len(X)],
    "signs": lambda rng, X: X * rng.choice([-1, 1], (len(X), 1)),
    "offset": lambda rng, X: X + 1e8,
}


def make_weights(spec):
    """Return weights by name; all are drawn, so that cases stay."""
    rng = np.random.default_rng(spec["seed"])
    n = spec["n"]
    return {
        "ones": np.ones(n),
        "uniform": rng.random(n),
        "zeros": np.where(rng.random(n) < 0.7, 0, rng.random(n)),
        "one": np.eye(n)[0],
        "huge": rng.random(n) * 1e308,
        "tiny": rng.random(n) * 1e-310,
        "decades": 10.0 ** rng.uniform(-300, 300, n),
        "negative": -rng.random(n),
        "nan": np.full(n, np.nan),
        "short": np.ones(max(n - 1, 0)),
        "whole": rng.integers(0, 4, n),
    }


def make_known(spec):
    """Return by name what may be known of the classes of rows."""
    rng = np.random.default_rng(spec["seed"])
    n = spec["n"]
    classes = rng.integers(spec["k"], size=n)
    some_classes = np.where(rng.random(n) < 0.3, classes, -1)

    return {
        "all": classes,
        "some": some_classes,
        "texts": [f"k{c}" if c >= 0 else None for c in some_classes.tolist()],
        "floats": np.where(some_classes < 0, np.nan, some_classes + 0.5),
        "one": np.where(np.arange(n) == 0, 7, -1),
        "none": np.full(n, -1),
        "each its own": np.arange(n),
        "short": classes[1:],
        "mixed": [None, "a", 3, np.nan][:n] + [-1] * (n - 4),
    }


def make_batch(spec):
    """Return batches by name."""
    n = spec["n"]
    return {
        "two": np.arange(n) % 2,
        "texts": [f"lab {i % 3}" for i in range(n)],
        "one": ["a"] * n,
        "each its own": np.arange(n),
        "halves": np.arange(n) > n // 2,
        "nan": np.full(n, np.nan),
        "short": np.arange(n)[1:],
    }


BESIDE = {"weights": make_weights, "known": make_known, "batch": make_batch}


def _beside(case, what):
    """Return the weights, known classes or batches of a case, or None."""
    return BESIDE[what](case["data"])[case[what]] if case.get(what) else None


def _frame(X):
    return pd.DataFrame(X, columns=[f"c{i}" for i in range(X.shape[1])])


def _nullable(X):
    return _frame(X).astype(X.dtype.name.title() if X.dtype.itemsize > 2 else "Float32")


def _arrow_frame(X):
    return _frame(X).astype(pd.ArrowDtype(pa.from_numpy_dtype(X.dtype)))


def _torch(X):
    import torch

    return torch.as_tensor(X)


KINDS = {
    "array": np.asarray,
    "fortran": np.asfortranarray,
    "list": lambda X: X.tolist(),
    "csr": sp.csr_array,
    "csc": sp.csc_matrix,
    "frame": _frame,
    "nullable": _nullable,
    "sparse frame": lambda X: _frame(X).astype(pd.SparseDtype(X.dtype, 0)),
    "arrow frame": _arrow_frame,
    "arrow": lambda X: pa.table({f"c{i}": x for i, x in enumerate(X.T.copy())}),
    "polars": lambda X: pl.from_numpy(X, schema=[*_frame(X)]),
    "masked": lambda X: np.ma.masked_invalid(X),
    "objects": lambda X: X.astype(object),
    "view": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "read only": lambda X: np.frombuffer(X.tobytes(), X.dtype).reshape(X.shape),
    "torch": _torch,
    "dask": lambda X: da.from_array(X, chunks=(max(len(X) // 3, 1), X.shape[1])),
}

BAD = st.sampled_from([-1, 0, 1.5, "none", None, True, float("nan"), float("inf")])
DATA = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 2**20),
        "n": st.one_of(st.integers(1, 12), st.integers(13, 60)),
        "p": st.one_of(st.integers(1, 6), st.integers(7, 40)),
        "k": st.integers(1, 5),
        "shape": st.sampled_from(list(SHAPES)),
        "spoils": st.lists(st.sampled_from(list(SPOILS)), max_size=2),
        "dtype": st.sampled_from(["float64", "float64", "float32", "int64", "float16"]),
        # torch and dask take ten times as long as the others.
        "kind": st.sampled_from([*KINDS, *4 * list(KINDS)[:-2], *["array"] * 20]),
    }
)
N_CLUSTERS = st.one_of(st.integers(1, 6), st.integers(1, 6), st.just("auto"))
COMMON = {
    "max_iter": st.sampled_from([1, 2, 30, 300]),
    "tol": st.sampled_from([1e-12, 1e-4, 0.01, 1.0]),
    "n_init": st.sampled_from(["auto", 1, 3]),
    "missing": st.sampled_from(["fit", "error"]),
}
SETTINGS = {field.name for field in fields(ihgmm.Recipe)}
LABELS = st.sampled_from(["tied", "kmeans"])
GRAM = {
    "rows": st.sampled_from(["unit", "given"]),
    "diagonal": st.sampled_from(["full", "zero"]),
}
OUTLIERS = st.one_of(st.none(), st.just("auto"), st.sampled_from([0.02, 0.2, 0.5]))
COLUMNS = st.sampled_from(["auto", "given", "roots", "counts", "noise"])
NOISE = st.sampled_from(["auto", "counts", "learned"])
NAMES = {
    what: st.sampled_from([*make({"seed": 0, "n": 1, "k": 1})])
    for what, make in BESIDE.items()
}
OPTIONS = {
    "IhSC": {
        **COMMON,
        "n_clusters": N_CLUSTERS,
        "recipe": st.sampled_from([*RECIPES]),
        **GRAM,
        "order": st.sampled_from(["algebraic", "magnitude"]),
        "n_components": st.sampled_from(["auto", None, 1, 3, 50]),
        "space": st.sampled_from(["auto", "eigenvectors", "projected"]),
        "labels": LABELS,
        "neighbors": st.booleans(),
        "unit_norm": st.booleans(),
        "placement": st.sampled_from(["embedding", "cosine"]),
        "signed": st.booleans(),
        "columns": COLUMNS,
        "outliers": OUTLIERS,
    },
    "IhGMM": {
        **{key: COMMON[key] for key in ("max_iter", "tol", "missing")},
        "n_clusters": N_CLUSTERS,
        "noise": st.sampled_from(["individual", "class", "common", "tied"]),
        **GRAM,
        "outliers": OUTLIERS,
    },
    "SphericalKMeans": {
        **{key: COMMON[key] for key in ("max_iter", "tol", "n_init")},
        "n_clusters": st.integers(1, 6),
    },
    "TwoComponentLloyd": {key: COMMON[key] for key in ("max_iter", "tol")},
    "Biwhitener": {"noise": NOISE},
    "ColumnScaler": {
        "method": st.sampled_from(["auto", "none", "scale", "standardize"])
    },
}
CALLS = {
    "select_n_clusters": {
        "max_clusters": st.sampled_from([1, 2, 8, 50]),
        "signed": st.booleans(),
        "columns": COLUMNS,
        "missing": COMMON["missing"],
    },
    "cluster_tree": {"max_clusters": st.sampled_from([1, 2, 8, 50])},
    "diagnose": {},
    "estimate_parameters": {},
    "top_features": {"n_features": st.sampled_from([1, 3, 100])},
    "typical_rows": {"n_rows": st.sampled_from([1, 3, 100])},
    "scale_heterogeneity_test": {},
    "make_ihgmm": {
        "scale_ratio": st.sampled_from([1.0, 20.0, 1e12, 1e200, 0.5]),
        "balance": st.sampled_from([1.0, 0.1, 0.001, 1.5]),
        "separation": st.sampled_from([None, 0.0, 1.0, 1e-200, 1e200]),
        "noise": st.sampled_from(["gaussian", "rademacher", "uniform"]),
        "dtype": st.sampled_from(["float64", "float32"]),
    },
    "metrics": {},
}
# After some of these the model is another one: that of a file or a pickle, or one that
# learnt from other rows.
AFTER = [
    "predict", "transform", "score", "predict_proba", "score_samples", "bic", "icl",
    "aic", "diagnose", "estimate", "report", "top_features", "typical_rows",
    "stability", "save", "pickle", "partial_fit", "fit", "follow",
]  # fmt: skip


@st.composite
def _options(draw, strategies):
    """Draw some options; in one case of twelve, one of them is wrong."""
    if not strategies:
        return {}

    any_name = st.sampled_from(sorted(strategies))
    names = draw(st.lists(any_name, unique=True, max_size=6))
    options = {name: draw(strategies[name]) for name in names}
    if draw(st.integers(0, 11)) == 0:
        options[draw(any_name)] = draw(BAD)

    return options


@st.composite
def cases(draw):
    """Draw a case: in three of four an estimator, else a function."""
    data = draw(DATA)
    is_fit = draw(st.integers(0, 3)) > 0
    strategies_of = OPTIONS if is_fit else CALLS
    names = [*strategies_of, "IhSC", "IhSC", "IhGMM"] if is_fit else [*strategies_of]
    ask = draw(st.sampled_from(names))
    case = {"data": data, "ask": ask, "options": draw(_options(strategies_of[ask]))}

    if draw(st.integers(0, 3)) == 0:
        case["weights"] = draw(NAMES["weights"])
    if is_fit:
        case["then"] = draw(st.lists(st.sampled_from(AFTER), max_size=5))
        case["new"] = draw(st.sampled_from([None, *SPOILS]))

    if ask == "IhSC":
        # A part of the sequences begins with a model that grows.
        case["grows"] = draw(st.integers(0, 5)) == 0
        if case["grows"]:
            options = {"n_clusters": N_CLUSTERS, "missing": COMMON["missing"]}
            case["options"] = draw(_options(options))
            case["then"] += ["partial_fit", *draw(st.lists(st.sampled_from(AFTER)))]
        elif draw(st.integers(0, 3)) == 0:
            case["known"] = draw(NAMES["known"])
        elif draw(st.integers(0, 3)) == 0:
            case["batch"] = draw(NAMES["batch"])
            shape = st.sampled_from(["positive", "counts", "one-hot", data["shape"]])
            case["data"]["shape"] = draw(shape)

    return case


def run(case):
    """Do what a case asks; return None, or what was not clear about it."""
    ask = _fit if case["ask"] in OPTIONS else _call
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
                ask(case)
        except UnclearError as unclear:
            return str(unclear)
        except Exception as error:
            if not is_sentence(error):
                return f"{type(error).__name__}: {error} ({_place(error)})"

    for warning in caught:
        if not issubclass(warning.category, UserWarning):
            place = f"{warning.filename}:{warning.lineno}"
            return f"{warning.category.__name__}: {warning.message} ({place})"

    return None


class UnclearError(Exception):
    """A result that is wrong by itself."""


def _place(error):
    frames = traceback.extract_tb(error.__traceback__)
    places = [
        f"{frame.filename.rpartition('src/')[2]}:{frame.lineno}"
        for frame in frames
        if "ihgmm" in frame.filename or frame is frames[-1]
    ]
    return " < ".join(places[:-5:-1])


def is_sentence(error):
    """Return whether an error was raised on purpose, by this package or its checks.

    What a library raises about numbers it was handed is no answer to a user: the last
    line of Python has to be a ``raise`` of this package, or of scikit-learn's checks.
    """
    if not isinstance(error, (ValueError, TypeError, NotFittedError, ImportError)):
        return False
    if isinstance(error, np.linalg.LinAlgError) or not str(error).strip():
        return False

    frames = traceback.extract_tb(error.__traceback__)
    checks = {"check_array", "validate_data", "check_n_features"}
    if checks & {frame.name for frame in frames}:
        return True

    last = frames[-1]
    is_ours = "ihgmm" in last.filename or "sklearn" in last.filename
    return is_ours and last.line.startswith("raise")


def _prepared(case):
    spec = case["data"]
    X = make_data(spec)
    if X.dtype == np.float16 and spec["kind"] in ("csr", "csc", "sparse frame"):
        X = X.astype(np.float32)  # scipy knows no smaller ones
    return X, KINDS[spec["kind"]](X)


def _fit(case):
    X, data = _prepared(case)
    copy = X.copy()
    model = _with_options(getattr(ihgmm, case["ask"])(), dict(case["options"]))

    fit_arguments = {}
    if case["ask"] in ("IhSC", "IhGMM"):
        fit_arguments["sample_weight"] = _beside(case, "weights")
    if case.get("grows"):
        model.partial_fit(data, **fit_arguments)
    else:
        if case.get("known"):
            fit_arguments["known_labels"] = _beside(case, "known")
        if case.get("batch"):
            fit_arguments["batch"] = _beside(case, "batch")
        model.fit(data, **fit_arguments)
    _check_model(model, X)

    for step in case.get("then", ()):
        attributes = dict(vars(model))
        try:
            model = _go_on(model, step, case, X, data) or model
        except Exception as error:
            # What says why it cannot be done leaves the model as it was.
            if isinstance(error, UnclearError) or not is_sentence(error):
                raise
            if _identities(vars(model)) != _identities(attributes):
                raise UnclearError(f"{step} failed and changed the model") from error

    if not np.array_equal(X, copy, equal_nan=True):
        raise UnclearError("a call changed X")


def _with_options(model, options):
    """Return a model with the options of a case; those of a recipe go into its own."""
    if "recipe" in model.get_params():
        # What the estimator has itself, as IhGMM has tol, is no setting of its recipe.
        settings = SETTINGS & set(options) - set(model.get_params())
        changes = {name: options.pop(name) for name in settings}
        recipe = options.get("recipe", model.recipe)
        options["recipe"] = ihgmm.Recipe.of(recipe, **changes)

    # scikit-learn would refuse them with a sentence, and so hide a fault of a case.
    if unknown_options := set(options) - set(model.get_params()):
        raise UnclearError(f"no options: {unknown_options}")

    model.set_params(**options)
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    return model


def _identities(attributes):
    return {name: id(value) for name, value in attributes.items()}


# Errors are not known of all rows and centres; the square of a large number is none.
UNBOUNDED = ("center_errors_", "scale_errors_", "eigenvalues_", "outlier_threshold_")


def _check_model(model, X):
    if not hasattr(model, "labels_"):
        _check_finite("transform", model.transform(X), model)
        return

    labels = _host(model.labels_)
    if labels.shape != X.shape[:1]:
        raise UnclearError(f"labels_ have shape {labels.shape}")

    is_outlier = labels < 0
    for name, value in vars(model).items():
        if not name.endswith("_") or name in UNBOUNDED:
            continue
        if name in ("scales_", "noise_levels_"):
            value = _host(value)
            value = value[~is_outlier] if value.shape == labels.shape else value
        if isinstance(value, float) or hasattr(value, "dtype"):
            _check_finite(name, value)

    minimum = -1 if getattr(model, "outliers", None) is not None else 0
    if labels.min() < minimum or labels.max() >= len(model.cluster_centers_):
        raise UnclearError(f"labels_ from {labels.min()} to {labels.max()}")


def _host(value):
    if hasattr(value, "compute"):
        value = value.compute()
    return np.asarray(value)


def _check_finite(name, value, model=None):
    array = _host(value.toarray() if sp.issparse(value) else value)
    if isinstance(model, ihgmm.ColumnScaler):
        array = np.where(np.isnan(array), 0.0, array)  # missing cells stay so
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        count = np.count_nonzero(~np.isfinite(array))
        raise UnclearError(f"{name} has {count} not finite")


def _go_on(model, step, case, X, data):
    """Do one more thing; return the model with which to go on, if it is another."""
    if not hasattr(model, "labels_") and step not in ("transform", "pickle", "save"):
        return None

    batch = {"batch": _beside(case, "batch")} if hasattr(model, "batches_") else {}
    new_rows = X
    if case.get("new"):
        rng = np.random.default_rng(case["data"]["seed"])
        with np.errstate(all="ignore"):
            new_rows = SPOILS[case["new"]](rng, X.astype(float)).astype(X.dtype)
    new_rows = KINDS[case["data"]["kind"]](new_rows)

    if step in ("save", "pickle"):
        return _revived(model, step, data, batch)
    if step == "fit":
        model.fit(new_rows)
        _check_model(model, X)
    elif step == "partial_fit":
        if hasattr(model, step):
            model.partial_fit(new_rows)
            _check_model(model, X)
    elif step == "follow":
        if hasattr(model, "partial_fit"):
            follower = ihgmm.IhSC(model.n_clusters_, init=model).fit(new_rows)
            _check_model(follower, X)
            return follower
    elif step == "diagnose":
        missing = getattr(model, "missing", None) or "error"
        str(ihgmm.diagnose(data, model.labels_, missing=missing))
    elif step == "estimate":
        result = ihgmm.estimate_parameters(data, model.labels_)
        _check_finite("centers", result.centers)
    elif step == "report":
        with TemporaryDirectory() as folder:
            model.report(data, f"{folder}/a.html")
    elif step in ("top_features", "typical_rows"):
        str(getattr(ihgmm, step)(data, model))
    elif step == "stability":
        metrics.stability_score(model, data)
    elif not hasattr(model, step):
        return None
    elif step in ("bic", "icl", "aic"):
        _check_finite(step, getattr(model, step)(data))
    else:
        answer = getattr(model, step)(new_rows, **batch)
        # Squared distances of large numbers are infinite.
        answer = np.maximum(answer, -1e308) if step == "score" else answer
        _check_finite(step, answer, model)
    return None


def _revived(model, step, data, batch):
    """Return the model of a file or a pickle, which has to answer as the model does."""
    if step == "pickle":
        revived = pickle.loads(pickle.dumps(model))
    else:
        with TemporaryDirectory() as folder:
            save_model(model, f"{folder}/model")
            revived = load_model(f"{folder}/model")

    ask = "predict" if hasattr(model, "predict") else "transform"
    with suppress(ValueError, TypeError):
        expected = _host(getattr(model, ask)(data, **batch))
        result = _host(getattr(revived, ask)(data, **batch))
        if not np.array_equal(expected, result, equal_nan=ask == "transform"):
            raise UnclearError(f"a model after {step} answers otherwise")

    return revived


def _call(case):
    ask = case["ask"]
    options = dict(case["options"])
    spec = case["data"]
    rng = np.random.default_rng(spec["seed"])
    n = spec["n"]
    k = spec["k"]
    labels = rng.integers(k, size=n)

    if ask == "make_ihgmm":
        X, _ = ihgmm.make_ihgmm(n, spec["p"], k, **options, random_state=0)
        _check_finite("X", X)
    elif ask == "metrics":
        other_labels = make_data({**spec, "p": 1})[:, 0]
        metrics.match_labels(labels, other_labels)
        metrics.exact_recovery(labels, other_labels)
        metrics.misclassification_loss(labels, other_labels)
        metrics.misclassification_rate(labels, other_labels)
    else:
        _, data = _prepared(case)
        call = getattr(ihgmm, ask)
        if ask in ("select_n_clusters", "estimate_parameters"):
            options["sample_weight"] = _beside(case, "weights")
        if ask in ("select_n_clusters", "cluster_tree"):
            result = call(data, **options, random_state=0)
            str(result)
            _check_finite("lead", getattr(result, "lead", 0.0))
            return
        result = call(data, labels, **options)
        str(result)
        if ask == "estimate_parameters":
            _check_finite("centers", result.centers)
