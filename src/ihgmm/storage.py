"""Models on disk: plain files that hold numbers and names, and run nothing.

A file is a zip archive of ``header.json`` and one ``.npy`` for each array. Nothing in
it is compressed, so that no file unpacks to more than its own size; nothing in it is
pickled, so that nothing can run.
"""

from __future__ import annotations

import errno
import io
import json
import math
import os
import struct
import tokenize
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from ihgmm._files import atomic_write
from ihgmm.estimators import PSC, IhGMM, IhSC, SphericalKMeans
from ihgmm.matrix import to_host
from ihgmm.numerics.embedding import Embedding
from ihgmm.numerics.labels import LinearRule, NeighborRule
from ihgmm.numerics.missing import Filler
from ihgmm.numerics.recipe import Recipe
from ihgmm.numerics.spectral import CosinePlacement, Placement
from ihgmm.numerics.whitening import NOISES, Whitener
from ihgmm.statistics.outliers import OutlierRule

__all__ = ["StorageError", "load_model", "save_model"]


class StorageError(ValueError):
    """A file or a model that cannot be used; the message says why and what to do.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from ihgmm.storage import StorageError, load_model
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "model.npz"
    ...     _ = path.write_bytes(b"something else")
    ...     try:
    ...         load_model(path)
    ...     except StorageError as error:
    ...         print("model.npz" in str(error))
    True
    """


class SavedModel(NamedTuple):
    """What a file holds: a fitted estimator, and names of columns of its data."""

    model: Any
    id_column: str | None = None  # that held names of rows
    label_column: str | None = None  # that held known labels
    layer: str | None = None  # of an AnnData file, that held the data
    empty_is_zero: bool = False  # missing cells of the data were taken for 0
    cluster_names: list[str] | None = None  # "" for a cluster that has none


class Layout(NamedTuple):
    """The fitted attributes of a class: arrays with their shapes, and numbers.

    A shape has a letter for each axis: n rows, p features, k clusters, m directions of
    the embedding, w directions of a whitener.
    """

    build: type
    arrays: Mapping[str, str]
    numbers: Mapping[str, type]


# By IhGMM's "noise".
NOISE_SHAPES = {"individual": "n", "class": "k", "common": "1", "tied": "1"}
TIED = {"noise_components_": "mp", "component_levels_": "m"}
ROWS_AND_CENTERS = {"labels_": "n", "cluster_centers_": "kp"}
SCALES = {**ROWS_AND_CENTERS, "scales_": "n"}
SPECTRAL = {**ROWS_AND_CENTERS, "embedding_": "nm", "eigenvalues_": "m"}
ERRORS = {"center_errors_": "kp", "scale_errors_": "n"}
MIXTURE = {"memberships_": "nk", "weights_": "k", **ERRORS}
COUNTS = {"n_clusters_": int, "n_iter_": int}
LAYOUTS = {
    layout.build.__name__: layout
    for layout in (
        Layout(
            IhSC,
            {**SPECTRAL, **SCALES, "noise_levels_": "n"},
            {**COUNTS, "space_": str, "noise_share_": float},
        ),
        Layout(
            IhGMM,
            {**SCALES, **MIXTURE},
            {**COUNTS, "log_likelihood_": float, "converged_": bool},
        ),
        Layout(PSC, {**SPECTRAL, "components_": "kp"}, {"n_iter_": int}),
        Layout(SphericalKMeans, ROWS_AND_CENTERS, {"inertia_": float, "n_iter_": int}),
    )
}
# How IhSC places rows: arrays and numbers of each kind of placement.
EMBEDDING = {"directions": "pm", "eigenvalues": "m", "weights": "m"}
PLACEMENTS = {
    "linear": {**EMBEDDING, "coefficients": "mk", "intercepts": "k"},
    "neighbors": {**EMBEDDING, "rows": "sm", "labels": "s"},
    "cosine": {"directions": "kp"},
}
PLACING = {
    "rank": int,
    "diagonal": str,
    "longest": float,
    "unit": float,
    "unit_norm": bool,
}
# How outliers are found: c centres in d directions.
OUTLIERS = {
    "directions": "pd",
    "eigenvalues": "d",
    "weights": "d",
    "centers": "cd",
    "lengths": "c",
    "noises": "c",
    "length_quantiles": "q",
    "noise_quantiles": "q",
    "knots": "2j",
}
STRANGENESS = {"tail": float, "noise_share": float, "threshold": float}
# What is done to rows before all else.
MAPS = {
    "filler": Layout(
        Filler,
        {"loadings": "pr", "noise_levels": "p", "mean": "r", "sizes": "p"},
        {"spread": float, "nonnegative": bool},
    ),
    "whitener": Layout(
        Whitener,
        {"columns": "p", "directions": "pw"},
        {"noise": str, "dispersion": float},
    ),
}
# Arrays that may lack numbers, of outliers and of what has no error; those of them that
# do so only where every row has its own noise, for predictions need them elsewhere; and
# others in which numbers may be too large for their type.
UNKNOWN = ("scales_", "scale_errors_")
UNKNOWN_BY_ROW = ("noise_levels_", "center_errors_")
UNBOUNDED = ("eigenvalues_", "outlier_scores_")
# Arrays by whose entries predictions divide, or of which they take logarithms.
POSITIVE = (
    "weights_",
    "component_levels_",
    "filler.noise_levels",
    "filler.sizes",
    "outliers.lengths",
    "scaler.scale_",
)
SCALER = ("scaler.mean_", "scaler.scale_", "scaler.var_")

# What zipfile raises at bytes that make no sense.
NO_ARCHIVE = (
    zipfile.BadZipFile,
    NotImplementedError,
    RuntimeError,
    EOFError,
    ValueError,
    OverflowError,
    struct.error,
)
HEADER, FORMAT = "header.json", "ihgmm-model"
FORMAT_VERSION = 4  # another one where older versions of ihgmm could not read on
SCALAR = (str, int, float, bool, type(None))  # what a parameter may be


def save_model(
    model: Any,
    path: str | os.PathLike[str],
    *,
    feature_names: Sequence[str] | None = None,
    id_column: str | None = None,
    label_column: str | None = None,
    layer: str | None = None,
    empty_is_zero: bool = False,
    cluster_names: Sequence[str] | None = None,
) -> None:
    """Write a fitted model to a file, whole or not at all.

    Parameters
    ----------
    model : IhSC, IhGMM, PSC or SphericalKMeans
        The fitted estimator; or a scikit-learn pipeline of a ``StandardScaler`` and
        one of these.
    path : path
        The file. One that is there is replaced.
    feature_names : sequence of str, optional
        Names of the features, where the model was fitted on an array without names.
    id_column, label_column : str, optional
        Columns with names of rows and known labels, which ``ihgmm predict`` then takes
        from new data that have them.
    layer : str, optional
        The layer of an AnnData file that held the data, which ``ihgmm predict`` then
        takes.
    empty_is_zero : bool, default=False
        Whether missing cells of the data were taken for 0 before the fit, which ``ihgmm
        predict`` then does with those of new data.
    cluster_names : sequence of str, optional
        A name for each cluster, in the order of ``cluster_centers_``, which ``ihgmm
        predict`` then writes beside the numbers; ``""`` for a cluster without one.

    Raises
    ------
    StorageError
        If the model is of another kind, or a name is no text.

    Notes
    -----
    All fitted attributes are kept but ``selection_``. Arrays of a GPU come back as
    NumPy arrays. A ``random_state`` that is a generator is kept as None: it has no say
    in predictions.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from ihgmm import IhSC, make_ihgmm
    >>> from ihgmm.storage import load_model, save_model
    >>> X, labels = make_ihgmm(100, 20, 3, random_state=0)
    >>> model = IhSC(3, random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(model, Path(folder) / "model.npz")
    ...     loaded = load_model(Path(folder) / "model.npz")
    >>> (loaded.predict(X) == model.predict(X)).all()
    np.True_
    """
    scaler, estimator, layout = _split(model)
    class_name = layout.build.__name__
    if not hasattr(estimator, "cluster_centers_"):
        raise NotFittedError(
            f"This {class_name} is not fitted; call fit before saving it."
        )
    parameters, arrays = _contents(estimator, layout)
    placement, placing = _placement_contents(getattr(estimator, "placement_", None))
    arrays |= placing
    preparation, maps = _preparation_contents(getattr(estimator, "preparation_", ()))
    arrays |= maps
    outliers, finding = _outlier_contents(getattr(estimator, "outlier_rule_", None))
    arrays |= finding
    if outliers is not None:
        arrays["outlier_scores_"] = to_host(estimator.outlier_scores_)
    if feature_names is None:
        feature_names = getattr(scaler or estimator, "feature_names_in_", None)
    header: dict[str, Any] = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "ihgmm": version("ihgmm"),
        "class": class_name,
        "parameters": parameters,
        "numbers": {
            key: kind(getattr(estimator, key)) for key, kind in layout.numbers.items()
        },
        "n_features": int(estimator.n_features_in_),
        "feature_names": None if feature_names is None else [*map(str, feature_names)],
        "id_column": id_column,
        "label_column": label_column,
        "layer": layer,
        "empty_is_zero": empty_is_zero,
        "cluster_names": None if cluster_names is None else [*cluster_names],
        "placement": placement,
        "preparation": preparation,
        "outliers": outliers,
        "scaler": None,
    }
    if scaler is not None:
        header["scaler"] = {
            "with_mean": bool(scaler.with_mean),
            "with_std": bool(scaler.with_std),
            "n_samples_seen_": int(np.max(scaler.n_samples_seen_)),
        }
        parts = {key: getattr(scaler, key.removeprefix("scaler.")) for key in SCALER}
        arrays |= {key: values for key, values in parts.items() if values is not None}
    _check_header(header)
    _check_cluster_names(header, len(arrays["cluster_centers_"]))
    with atomic_write(path) as file:
        file.write(_pack(header, arrays))


def load_model(path: str | os.PathLike[str]) -> Any:
    """Read a model that :func:`save_model` has written.

    Nothing in the file is executed, whatever it holds; a file that is damaged, cut off
    or made by others for other ends is refused.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    IhSC, IhGMM, PSC, SphericalKMeans or Pipeline
        What was saved, ready for ``predict``.

    Raises
    ------
    StorageError
        If the file is not a model, or one of a version that is not known.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from ihgmm import IhSC, make_ihgmm
    >>> from ihgmm.storage import load_model, save_model
    >>> X, kinds = make_ihgmm(100, 20, 3, random_state=0)
    >>> model = IhSC(3, random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(model, Path(folder) / "model.npz")
    ...     loaded = load_model(Path(folder) / "model.npz")
    >>> bool((loaded.predict(X) == model.labels_).all())
    True
    """
    return load_saved(path).model


def load_saved(path: str | os.PathLike[str]) -> SavedModel:
    """Read a model, and what the fit was told of the data."""
    try:
        return _restored(*_unpack(Path(path).expanduser()))
    except StorageError as error:
        raise StorageError(f"{path}: {error}") from error


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise StorageError(message)


def _split(model: Any) -> tuple[StandardScaler | None, Any, Layout]:
    """Return the scaler, if there is one, the estimator, and its layout."""
    steps = [s for _, s in model.steps] if isinstance(model, Pipeline) else [model]
    *before, estimator = steps
    layout = LAYOUTS.get(type(estimator).__name__)
    scaled = [type(step) for step in before] in ([], [StandardScaler])
    if layout is None or type(estimator) is not layout.build or not scaled:
        raise StorageError(
            f"{' and '.join(type(step).__name__ for step in steps)} cannot be saved; "
            f"give one of {', '.join(LAYOUTS)}, or a pipeline of a StandardScaler and "
            "one of them."
        )
    return before[0] if before else None, estimator, layout


def _shapes(layout: Layout, parameters: dict[str, Any]) -> dict[str, str]:
    """Return the shapes of the arrays of an estimator with these parameters."""
    shapes = dict(layout.arrays)
    if "noise" in parameters:
        shapes["noise_levels_"] = NOISE_SHAPES[parameters["noise"]]
        if parameters["noise"] == "tied":
            shapes |= TIED
    return shapes


def _contents(
    estimator: Any, layout: Layout
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the parameters and the arrays of an estimator."""
    parameters: dict[str, Any] = estimator.get_params(deep=False)
    shapes = _shapes(layout, parameters)
    arrays = {key: to_host(getattr(estimator, key)) for key in shapes}
    kept: dict[str, Any] = {}
    for key, value in parameters.items():
        value = value.item() if isinstance(value, np.generic) else value
        if isinstance(value, SCALAR):
            kept[key] = value
        elif isinstance(value, Recipe):
            kept[key] = asdict(value)
        elif key == "init":
            arrays["init"] = np.asarray(value, dtype=np.float64)
        elif key == "random_state":
            kept[key] = None
        else:
            name = layout.build.__name__
            raise StorageError(f"{key}={value!r} of {name} cannot be saved.")
    return kept, arrays


def _placement_contents(
    placement: Any,
) -> tuple[dict[str, Any] | None, dict[str, np.ndarray]]:
    """Return the numbers and the arrays of a placement; none of None."""
    if placement is None:
        return None, {}
    if isinstance(placement, CosinePlacement):
        return {"kind": "cosine"}, {"placement.directions": placement.directions}
    embedding, rule = placement.embedding, placement.rule
    numbers = _embedding_numbers(embedding)
    if isinstance(rule, NeighborRule):
        numbers |= {"kind": "neighbors", "n_neighbors": rule.n_neighbors}
    else:
        numbers["kind"] = "linear"
    arrays = {
        f"placement.{key}": getattr(embedding if key in EMBEDDING else rule, key)
        for key in PLACEMENTS[numbers["kind"]]
    }
    return numbers, arrays


def _preparation_contents(
    preparation: tuple[Any, ...],
) -> tuple[list[dict[str, Any]], dict[str, np.ndarray]]:
    """Return what maps are called with their numbers, and their arrays."""
    found: list[dict[str, Any]] = []
    arrays: dict[str, np.ndarray] = {}
    for change in preparation:
        name = next(n for n, known in MAPS.items() if type(change) is known.build)
        numbers = {key: getattr(change, key) for key in MAPS[name].numbers}
        found.append({"kind": name, **numbers})
        for key in MAPS[name].arrays:
            arrays[f"{name}.{key}"] = getattr(change, key)
    return found, arrays


def _check_preparation(found: Any) -> None:
    text = f"its preparation is {found!r}, which is not known."
    _require(isinstance(found, list), text)
    for change in found:
        kind = change.get("kind") if isinstance(change, dict) else None
        _require(isinstance(kind, str) and kind in MAPS, text)
        for key, kind in MAPS[change["kind"]].numbers.items():
            value: Any = change.get(key)
            _require(type(value) is kind, text)
            _require(value in NOISES if kind is str else 0 <= value < np.inf, text)


def _preparation(
    found: list[dict[str, Any]], arrays: Mapping[str, np.ndarray]
) -> tuple[Any, ...]:
    """Return the maps that numbers and arrays describe."""
    maps = []
    for change in found:
        name = change["kind"]
        parts = {key: arrays[f"{name}.{key}"] for key in MAPS[name].arrays}
        parts |= {key: change[key] for key in MAPS[name].numbers}
        maps.append(MAPS[name].build(**parts))
    return tuple(maps)


def _embedding_numbers(embedding: Embedding) -> dict[str, Any]:
    numbers = {key: kind(getattr(embedding, key)) for key, kind in PLACING.items()}
    return {key: _no_infinity(value) for key, value in numbers.items()}


def _no_infinity(value: Any) -> Any:
    """Return None for infinity, which JSON does not have."""
    return None if value == np.inf else value


def _or_infinity(value: Any) -> Any:
    """Return infinity for None, which stands for it in JSON."""
    return np.inf if value is None else value


def _outlier_contents(
    rule: OutlierRule | None,
) -> tuple[dict[str, Any] | None, dict[str, np.ndarray]]:
    """Return the numbers and the arrays of a rule of outliers; none of None."""
    if rule is None:
        return None, {}
    numbers = {key: _no_infinity(float(getattr(rule, key))) for key in STRANGENESS}
    arrays = {
        f"outliers.{key}": getattr(rule.embedding if key in EMBEDDING else rule, key)
        for key in OUTLIERS
    }
    return numbers | _embedding_numbers(rule.embedding), arrays


def _check_outliers(numbers: Any) -> None:
    _require(isinstance(numbers, dict), f"its outliers are {numbers!r}, not known.")
    _check_numbers(numbers, STRANGENESS, "outliers")


def _check_placement(numbers: Any) -> None:
    kind = numbers.get("kind") if isinstance(numbers, dict) else None
    _require(
        isinstance(kind, str) and kind in PLACEMENTS,
        f"its placement is {numbers!r}, which is not known.",
    )
    if kind != "cosine":
        more = {"n_neighbors": int} if kind == "neighbors" else {}
        _check_numbers(numbers, more, "placement")


def _check_numbers(
    numbers: dict[str, Any], more: Mapping[str, type], what: str
) -> None:
    """Check the numbers of an embedding, and more that were stored beside them."""
    kinds: dict[str, Any] = {**PLACING, **more}
    for key, kind in kinds.items():
        value: Any = numbers.get(key)
        fits = type(value) is kind and (kind is str or 0 <= value < np.inf)
        fits |= key in ("longest", "threshold") and key in numbers and value is None
        _require(fits, f"{key}={value!r} of its {what} makes no sense.")
    known = ("full", "zero", "imputed")
    text = f"diagonal={numbers['diagonal']!r} of its {what} is not known."
    _require(numbers["diagonal"] in known, text)
    _require(numbers["unit"] > 0, f"unit=0 of its {what} makes no sense.")


def _outlier_rule(
    numbers: dict[str, Any], arrays: Mapping[str, np.ndarray], signed: bool
) -> OutlierRule:
    """Return the rule of outliers that numbers and arrays describe."""
    given: dict[str, Any] = {key: arrays[f"outliers.{key}"] for key in OUTLIERS}
    embedding = _embedding(numbers, given)
    given |= {key: _or_infinity(numbers[key]) for key in STRANGENESS}
    return OutlierRule(embedding, **given, signed=signed)


def _embedding(numbers: dict[str, Any], arrays: dict[str, Any]) -> Embedding:
    """Return an embedding, made of what is taken out of some arrays."""
    options = {key: _or_infinity(numbers[key]) for key in PLACING}
    return Embedding(**{key: arrays.pop(key) for key in EMBEDDING}, **options)


def _placement(
    numbers: dict[str, Any], arrays: Mapping[str, np.ndarray], signed: bool
) -> Any:
    """Return the placement that numbers and arrays describe."""
    kind = numbers["kind"]
    given: dict[str, Any] = {
        key: arrays[f"placement.{key}"] for key in PLACEMENTS[kind]
    }
    if kind == "cosine":
        return CosinePlacement(given["directions"], signed)
    embedding = _embedding(numbers, given)
    if kind == "neighbors":
        count = min(max(numbers["n_neighbors"], 1), len(given["labels"]))
        return Placement(embedding, NeighborRule(**given, n_neighbors=count))
    return Placement(embedding, LinearRule(**given, signed=signed))


def _pack(header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> bytes:
    """Return the content of a file."""
    content = io.BytesIO()
    # One time for every member, so that the same model gives the same bytes.
    epoch = (1980, 1, 1, 0, 0, 0)
    with zipfile.ZipFile(content, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo(HEADER, epoch), json.dumps(header, indent=1))
        for name, array in arrays.items():
            stream = io.BytesIO()
            kind = "<i8" if array.dtype.kind in "iu" else array.dtype.newbyteorder("<")
            plain = array.astype(kind, order="K", copy=False)
            np.lib.format.write_array(stream, plain, (1, 0), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy", epoch), stream.getvalue())
    return content.getvalue()


def _unpack(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the header and the arrays of a file, or say why it is no model."""
    try:
        _require(not path.exists() or path.is_file(), "this is no file.")
        with zipfile.ZipFile(path) as archive:
            _check_members(archive.infolist(), path.stat().st_size)
            raw = {name: archive.read(name) for name in archive.namelist()}
    except StorageError:
        raise
    except (*NO_ARCHIVE, OSError) as error:
        # An archive may point before its beginning, an invalid argument to the system.
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            raise
        raise StorageError(
            f"this is no model, or only a part of one ({error}); save it again."
        ) from error
    _require(HEADER in raw, f"this is no model: it has no {HEADER}.")
    try:
        header = json.loads(raw.pop(HEADER))
    except (ValueError, RecursionError) as error:
        raise StorageError(f"its {HEADER} cannot be read ({error}).") from error
    _require(isinstance(header, dict), f"its {HEADER} is not an object.")
    arrays = {name.removesuffix(".npy"): _array(name, raw[name]) for name in raw}
    return header, arrays


def _check_members(members: list[zipfile.ZipInfo], size: int) -> None:
    """Refuse an archive that would unpack to more than it is."""
    count = len(members)  # a model has about a dozen
    _require(count <= 64, f"this is no model: it has {count} members.")
    different = len({member.filename for member in members})
    _require(different == count, "this is no model: two of its members share a name.")
    for member in members:
        text = f"{member.filename!r} is compressed, which models never are."
        _require(member.compress_type == zipfile.ZIP_STORED, text)
    unpacked = sum(member.file_size for member in members)
    _require(unpacked <= size, f"it claims to hold more than its {size:,} bytes.")


def _array(name: str, raw: bytes) -> np.ndarray:
    """Return an array from the bytes of a ``.npy`` file that holds numbers only."""
    # What NumPy raises at the header of an array that makes no sense.
    senseless = (ValueError, TypeError, SyntaxError, RecursionError)
    stream = io.BytesIO(raw)
    try:
        if np.lib.format.read_magic(stream) != (1, 0):
            raise ValueError("its version is not 1.0")
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
    except (*senseless, tokenize.TokenError) as error:
        raise StorageError(f"{name!r} is not an array ({error}).") from error
    text = f"{name!r} holds {dtype} entries; models hold numbers only."
    _require(dtype.str in ("<f4", "<f8", "<i8", "|b1"), text)
    rest = len(raw) - stream.tell()
    whole = min(shape, default=0) >= 0 and math.prod(shape) * dtype.itemsize == rest
    text = f"{name!r} says that its shape is {shape}, and has {rest:,} bytes."
    _require(whole, text)
    flat = np.frombuffer(raw, dtype, offset=stream.tell())
    return flat.reshape(shape, order="F" if fortran else "C").copy(order="K")


def _check_header(header: dict[str, Any]) -> Layout:
    """Return the layout of a header that makes sense."""
    _require(header.get("format") == FORMAT, "this is no model of ihgmm.")
    _require(
        header.get("version") == FORMAT_VERSION,
        f"this is a model of format {header.get('version')!r}, written by ihgmm "
        f"{header.get('ihgmm')!r}; this is ihgmm {version('ihgmm')} and reads format "
        f"{FORMAT_VERSION}. Use the version that wrote it, or fit again.",
    )
    name, known = str(header.get("class")), ", ".join(LAYOUTS)
    _require(name in LAYOUTS, f"it holds a model of class {name!r}; known are {known}.")
    layout = LAYOUTS[name]
    p, names = header.get("n_features"), header.get("feature_names")
    _require(type(p) is int and p >= 1, f"n_features={p!r} is not a count.")
    if names is not None:
        words = names if isinstance(names, list) else []
        different = len({name for name in words if isinstance(name, str)})
        text = f"feature_names has {different} different names; the model has {p}"
        fits = len(words) == p == different
        _require(fits, f"{text} features and wants one for each.")
    for key in ("id_column", "label_column", "layer"):  # older files have none
        column = header.get(key)
        what = "layer" if key == "layer" else "column"
        text = f"{key} is {column!r}; the name of a {what} is text."
        _require(column is None or isinstance(column, str), text)
    zero = header.get("empty_is_zero", False)
    _require(type(zero) is bool, f"empty_is_zero={zero!r} is no bool.")
    parameters, numbers = header.get("parameters"), header.get("numbers")
    if not isinstance(parameters, dict) or not isinstance(numbers, dict):
        raise StorageError("its parameters or numbers are missing.")
    accepted = layout.build().get_params(deep=False)
    for key, value in parameters.items():
        is_recipe = key == "recipe" and isinstance(value, dict)
        fits = key in accepted and (is_recipe or isinstance(value, SCALAR))
        _require(fits, f"{name} has no parameter {key}={value!r}.")
    if layout.build is IhSC:
        _check_placement(header.get("placement"))
        signed = parameters.get("signed", False)
        _require(type(signed) is bool, f"signed={signed!r} is no bool.")
    if header.get("outliers") is not None:
        _check_outliers(header["outliers"])
    _check_preparation(header.get("preparation", []))
    for key, kind in layout.numbers.items():
        number: Any = numbers.get(key)
        text = f"{key}={number!r} is no {kind.__name__}."
        _require(type(number) is kind and number == number, text)
        _require(kind is not int or number >= 0, f"{key}={number!r} is no count.")
    if "noise" in accepted:
        noise = parameters.get("noise")
        fits = isinstance(noise, str) and noise in NOISE_SHAPES
        _require(fits, f"noise={noise!r} is not known.")
    scaler = header.get("scaler")
    if scaler is not None:
        kinds = {"with_mean": bool, "with_std": bool, "n_samples_seen_": int}
        fits = isinstance(scaler, dict) and all(
            type(scaler.get(key)) is kind for key, kind in kinds.items()
        )
        _require(fits, f"its scaler is {scaler!r}, which is not known.")
    return layout


def _restored(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> SavedModel:
    """Return the model of a header and arrays that make sense together."""
    layout = _check_header(header)
    parameters, scaler = dict(header["parameters"]), header.get("scaler")
    shapes = _shapes(layout, parameters)
    if scaler is not None:
        needed = [scaler["with_mean"], scaler["with_std"], False]
        shapes |= {
            key: "p"
            for key, need in zip(SCALER, needed, strict=True)
            if need or key in arrays
        }
    if "init" in arrays and "init" not in parameters:
        shapes["init"] = "kp"
        parameters["init"] = arrays["init"]
    if isinstance(parameters.get("recipe"), dict):
        try:
            parameters["recipe"] = Recipe(**parameters["recipe"])
        except (TypeError, ValueError) as error:
            raise StorageError(f"its recipe makes no sense: {error}") from None
    p = header["n_features"]
    placement = None
    if layout.build is IhSC:
        placement = header["placement"]
        kind = PLACEMENTS[placement["kind"]]
        shapes |= {f"placement.{key}": letters for key, letters in kind.items()}
    outliers = header.get("outliers")
    if outliers is not None:
        shapes |= {f"outliers.{key}": letters for key, letters in OUTLIERS.items()}
        shapes["outlier_scores_"] = "n"
    preparation = header.get("preparation", [])
    for name in (change["kind"] for change in preparation):
        kept = MAPS[name].arrays
        shapes |= {f"{name}.{key}": letters for key, letters in kept.items()}
    _check_arrays(arrays, shapes, p)
    k = len(arrays["cluster_centers_"])
    count = header["numbers"].get("n_clusters_", k)
    _require(count == k, f"n_clusters_={count} and there are {k} centres.")
    _check_cluster_names(header, k)
    model = layout.build(**parameters)
    for key in shapes:
        if key.endswith("_") and "." not in key:
            setattr(model, key, arrays[key])
    if placement is not None:
        signed = parameters.get("signed", False)
        model.placement_ = _placement(placement, arrays, signed)
    if outliers is not None:
        signed = parameters.get("signed", False)
        model.outlier_rule_ = _outlier_rule(outliers, arrays, signed)
        model.outlier_threshold_ = model.outlier_rule_.threshold
    model.preparation_ = _preparation(preparation, arrays)
    for key in layout.numbers:
        if key in header["numbers"]:
            setattr(model, key, header["numbers"][key])
    steps = [model]
    if scaler is not None:
        switches = {key: scaler[key] for key in ("with_mean", "with_std")}
        steps.insert(0, StandardScaler(**switches))
        for key in SCALER:
            setattr(steps[0], key.removeprefix("scaler."), arrays.get(key))
        steps[0].n_samples_seen_ = scaler["n_samples_seen_"]
    for step in steps:
        step.n_features_in_ = p
    if header.get("feature_names") is not None:
        steps[0].feature_names_in_ = np.array(header["feature_names"], dtype=object)
    whole = model if scaler is None else make_pipeline(*steps)
    told = {key: header[key] for key in SavedModel._fields[1:] if key in header}
    return SavedModel(whole, **told)


def _check_cluster_names(header: dict[str, Any], k: int) -> None:
    """Raise unless there is a name for each cluster, or none at all."""
    names = header.get("cluster_names")  # older files have none
    fits = isinstance(names, list) and all(isinstance(name, str) for name in names)
    text = f"cluster_names is {names!r}; give a text for each of the {k} clusters."
    _require(names is None or (fits and len(names) == k), text)


def _check_arrays(
    arrays: dict[str, np.ndarray], shapes: dict[str, str], p: int
) -> None:
    """Raise if arrays are missing, unasked for, or do not fit together."""
    odd = min(set(arrays) ^ set(shapes), default=None)
    what = "is missing" if odd in shapes else "does not belong in it"
    _require(odd is None, f"the array {odd!r} {what}.")
    sizes = {"1": 1, "p": p, "k": len(arrays["cluster_centers_"])}
    by_row = shapes.get("noise_levels_") == "n"
    unknown = (*UNKNOWN, *UNKNOWN_BY_ROW) if by_row else UNKNOWN
    positive = POSITIVE if by_row else (*POSITIVE, "noise_levels_")
    for key, letters in shapes.items():
        array = arrays[key]
        fits = array.ndim == len(letters) and all(
            sizes.setdefault(letter, length) == length
            for letter, length in zip(letters, array.shape, strict=True)
        )
        text = f"{key} has shape {array.shape}, which does not fit the other arrays."
        _require(fits, text)
        whole = key in ("labels_", "placement.labels")
        _require(
            (array.dtype.kind == "i") == whole, f"{key} holds {array.dtype} entries."
        )
        if whole:
            k = sizes["k"]
            least = -1 if key == "labels_" and "outlier_scores_" in shapes else 0
            fits = not array.size or least <= array.min() <= array.max() < k
            _require(fits, f"{key} go beyond its {k} clusters.")
        elif key in UNBOUNDED:
            _require(not np.isnan(array).any(), f"{key} are not all numbers.")
        elif key not in unknown:
            _require(bool(np.isfinite(array).all()), f"{key} are not finite.")
        # They belong to data near 1, see their unit, and are squared.
        if key.startswith(("placement.", "outliers.")):
            within = float(np.abs(array).max(initial=0)) < 1e150
            _require(within, f"{key} are larger than they can be.")
        if key in positive:
            _require(bool((array > 0).all()), f"{key} are not all positive.")
    inside = arrays["labels_"] >= 0
    for key in {"scales_", "noise_levels_"} & set(shapes):
        array = arrays[key]
        known = array[inside] if array.shape == inside.shape else array
        _require(bool(np.isfinite(known).all()), f"{key} are not finite.")
