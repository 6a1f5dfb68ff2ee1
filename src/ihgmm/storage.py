"""Models on disk: plain files that hold numbers and names, and run nothing.

A file is a zip archive of ``header.json`` and one ``.npy`` for each array. A model that
was read places a few rows before anybody gets it.
"""

import io
import json
import os
import warnings
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from importlib.metadata import version
from typing import IO, Any

import numpy as np
from numpy.random import Generator, RandomState
from scipy.sparse import csr_array
from sklearn.feature_extraction import text as texts
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils.validation import check_is_fitted

from ihgmm._files import atomic_write, regular_target
from ihgmm._parameters import usual_errors
from ihgmm._warnings import ignored
from ihgmm.estimators import Biwhitener, ColumnScaler, IhGMM, IhSC, SphericalKMeans
from ihgmm.matrix import to_host
from ihgmm.numerics.batches import Batches
from ihgmm.numerics.embedding import Embedding
from ihgmm.numerics.incremental import (
    ClusterSums,
    DirectionMemory,
    DriftRecord,
    IncrementalState,
    RowSample,
)
from ihgmm.numerics.missing import Donors, Filler
from ihgmm.numerics.placement import CosinePlacement, Placement
from ihgmm.numerics.recipe import Recipe
from ihgmm.numerics.root_choice import RootChoice
from ihgmm.numerics.roots import RootColumns
from ihgmm.numerics.rules import LinearRule
from ihgmm.numerics.whitening import Columns, Whitener, columns_for_noise
from ihgmm.numerics.wild_cells import CellFiller
from ihgmm.statistics.clouds import CloudComparison
from ihgmm.statistics.number_evidence import NumberEvidence
from ihgmm.statistics.ordinary_rows import ClusterLines, OrdinaryRows
from ihgmm.statistics.outliers import OutlierRule
from ihgmm.statistics.selection import ClusterCount, Confidence

__all__ = ["StorageError", "load_model", "save_model"]

ESTIMATORS = (IhSC, IhGMM, SphericalKMeans)
VECTORIZERS = (texts.CountVectorizer, texts.TfidfVectorizer)
SCALERS = (ColumnScaler, texts.TfidfTransformer, Biwhitener)
STEPS = (*ESTIMATORS, *VECTORIZERS, *SCALERS)

# What models hold beside numbers, texts and arrays; fields are written by name.
VALUES = (
    Batches,
    CellFiller,
    CloudComparison,
    ClusterCount,
    ClusterLines,
    ClusterSums,
    Confidence,
    CosinePlacement,
    DirectionMemory,
    Donors,
    DriftRecord,
    Embedding,
    Filler,
    IncrementalState,
    LinearRule,
    NumberEvidence,
    OrdinaryRows,
    OutlierRule,
    Placement,
    Recipe,
    RootChoice,
    RootColumns,
    RowSample,
    Whitener,
)
CLASSES: dict[str, Any] = {kind.__name__: kind for kind in (*STEPS, *VALUES)}

# Arrays with a line for each row of the fit, and all those that may not be finite:
# outliers have NaN, and errors of a single row, or squares of huge ones, are infinite.
ROW_ATTRIBUTES = (
    "embedding_",
    "memberships_",
    "scales_",
    "scale_errors_",
    "outlier_scores_",
)
UNBOUNDED = (
    "data_min_",
    "data_max_",
    "noise_levels_",
    "center_errors_",
    "scales_",
    "scale_errors_",
    "outlier_scores_",
    "eigenvalues_",
)

HEADER = "header.json"
FORMAT = "ihgmm-model"
FORMAT_VERSION = 8  # another one where other versions of ihgmm could not read it
READABLE_VERSIONS = (7, 8)  # ihgmm 0.4 wrote 7, with ``whiten`` in the place of columns

Arrays = dict[str, np.ndarray]


class StorageError(ValueError):
    """A file or a model that cannot be used; the message says why and what to do."""


@dataclass(frozen=True)
class SavedModel:
    """What a file holds: a fitted estimator, and what was said of its data."""

    model: Any
    id_column: str | None = None  # that held names of rows
    label_column: str | None = None  # that held known labels
    batch_column: str | None = None  # that held batches
    text_column: str | None = None  # that held texts, whose words are the features
    layer: str | None = None  # of an AnnData file, that held the data
    empty_is_zero: bool = False  # missing cells of the data were taken for 0

    def __post_init__(self) -> None:
        for field in fields(self)[1:]:
            value = getattr(self, field.name)
            kinds = bool if field.name == "empty_is_zero" else str | None
            _require(
                isinstance(value, kinds),
                f"{field.name} is {value!r}; give a text or None, True or False.",
            )

        _, first_step = steps_of(self.model)[0]
        _require(
            self.text_column is None or hasattr(first_step, "feature_names_in_"),
            "text_column is given, and the features have no names, which are words.",
        )


@usual_errors()
def save_model(
    model: Any,
    path: str | os.PathLike[str],
    *,
    feature_names: Sequence[str] | None = None,
    **about: Any,
) -> None:
    """Write a fitted model to a file, whole or not at all.

    Parameters
    ----------
    model : IhSC, IhGMM or SphericalKMeans
        The fitted estimator; or a scikit-learn pipeline that ends with one of these,
        after text vectorizers, a ``TfidfTransformer``, a :class:`~ihgmm.ColumnScaler`
        or a :class:`~ihgmm.Biwhitener`.
    path : path
        The file. One that is there is replaced.
    feature_names : sequence of str, optional
        Names of the features, where the model was fitted on an array without names.
    **about
        What ``ihgmm predict`` should know of the data: ``id_column``, ``label_column``,
        ``batch_column``, ``text_column``, ``layer`` and ``empty_is_zero``.

    Notes
    -----
    All fitted attributes are kept, those of a GPU as NumPy arrays. A ``random_state``
    that is a generator is kept as None. What cannot be kept raises a
    :class:`StorageError`.

    Examples
    --------
    >>> import tempfile
    >>> from ihgmm import IhSC, make_ihgmm
    >>> from ihgmm.storage import load_model, save_model
    >>> X, labels = make_ihgmm(100, 20, 3, random_state=0)
    >>> model = IhSC(3, random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(model, f"{folder}/model.npz")
    ...     loaded = load_model(f"{folder}/model.npz")
    >>> (loaded.predict(X) == model.labels_).all()
    np.True_
    """
    names, steps = zip(*steps_of(model), strict=True)
    kinds = [type(step).__name__ for step in steps]
    _require(
        _is_known(steps),
        f"A model of {' and '.join(kinds)} cannot be saved; give one of IhSC, IhGMM "
        "and SphericalKMeans, or a pipeline that ends with one. Before it may "
        "come CountVectorizer or TfidfVectorizer, then ColumnScaler, which can do what "
        "StandardScaler does, TfidfTransformer or Biwhitener; keep others yourself.",
    )

    check_is_fitted(steps[-1], msg="This %(name)s is not fitted: fit before saving.")

    # The arrays of the last step have the names of its attributes.
    prefixes = [*(f"step{i}." for i in range(len(steps) - 1)), ""]
    arrays: Arrays = {}
    nodes = [
        _encode(step, prefix, arrays)
        for step, prefix in zip(steps, prefixes, strict=True)
    ]

    if feature_names is not None:
        _require(
            type(steps[0]) not in VECTORIZERS,
            "feature_names is given, and the model takes texts; leave it out.",
        )
        nodes[0][kinds[0]]["feature_names_in_"] = {"O": [*map(str, feature_names)]}

    header = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "ihgmm": version("ihgmm"),
        "names": names,
        "model": nodes,
        **about,
    }

    _decode_model(dict(header), arrays)  # what could not be read is not written
    with atomic_write(path) as file, zipfile.ZipFile(file, "w") as archive:
        # ZipInfo has no time of its own: the same model gives the same bytes.
        archive.writestr(zipfile.ZipInfo(HEADER), json.dumps(header, indent=1))
        for name, array in arrays.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w") as member:
                np.save(member, array, allow_pickle=False)


def load_model(path: str | os.PathLike[str]) -> Any:
    """Return a model that :func:`save_model` has written, ready for ``predict``.

    Nothing in the file is executed, whatever it holds. A :class:`StorageError` says
    that it is damaged, cut off, of another version, or no model. A model that
    ``ihgmm fit --text-column`` has saved takes texts.

    Examples
    --------
    >>> from ihgmm.storage import load_model
    >>> model = load_model("model.npz")  # doctest: +SKIP
    """
    saved = load_saved(path)
    if saved.text_column is None:
        return saved.model

    # Words are counted as the command did, and counts have no names.
    (_, first_step), *named_steps = steps_of(saved.model)
    words = vars(first_step).pop("feature_names_in_").tolist()
    counter = texts.CountVectorizer(vocabulary=words, dtype=float).fit([""])
    return make_pipeline(counter, first_step, *(step for _, step in named_steps))


@usual_errors()
def load_saved(path: str | os.PathLike[str]) -> SavedModel:
    """Read a model, and what the fit was told of the data."""
    place = regular_target(path)

    with place.open("rb") as file:
        try:
            return _decode_model(*_unpack(file, place.stat().st_size))
        except StorageError as error:
            raise StorageError(f"{path}: {error}") from error
        except Exception as error:  # whatever libraries raise at bytes without sense
            raise StorageError(
                f"{path}: this is no model, or only a part of one "
                f"({type(error).__name__}: {error}); save it again."
            ) from error


def _require(condition: bool, message: str) -> None:
    """Raise a :class:`StorageError` unless a condition holds."""
    if not condition:
        raise StorageError(message)


def steps_of(model: Any) -> list[tuple[str, Any]]:
    """Return the named steps of a pipeline; of any other model, itself."""
    return model.steps if type(model) is Pipeline else [("", model)]


def _is_known(steps: Sequence[Any]) -> bool:
    """Tell whether steps are those of a model that a file can hold."""
    *kinds_before, last = map(type, steps)
    if kinds_before and kinds_before[0] in VECTORIZERS:
        kinds_before = kinds_before[1:]

    return last in ESTIMATORS and all(kind in SCALERS for kind in kinds_before)


def _encode(value: Any, name: str, arrays: Arrays) -> Any:
    """Return a value as JSON; its arrays are put apart under names that begin so.

    An object is written as ``{class: {part: value}}``, and an array as its name there.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [_encode(part, f"{name}.{i}", arrays) for i, part in enumerate(value)]

    kind = type(value).__name__
    if isinstance(value, Enum):
        return {kind: value.value}
    if isinstance(value, dict):  # the words of texts, by their column
        return {"words": sorted(value, key=lambda word: value[word])}
    if isinstance(value, type):  # of numbers
        return {"dtype": np.dtype(value).name}

    if is_dataclass(value):
        parts = {field.name: getattr(value, field.name) for field in fields(value)}
        prefix = f"{name}."
    elif type(value) in STEPS:
        parts = _parts_of_estimator(value)
        prefix = name
    else:
        return _encode_array(value, name, arrays)
    return {
        kind: {key: _encode(part, prefix + key, arrays) for key, part in parts.items()}
    }


def _parts_of_estimator(estimator: Any) -> dict[str, Any]:
    """Return the parameters of an estimator and what it has learnt."""
    parts = estimator.get_params(deep=False)
    for key, part in parts.items():
        _require(
            not callable(part) or isinstance(part, type),
            f"A {type(estimator).__name__} with {key} cannot be saved: a file holds no "
            "functions. Apply it to the texts yourself, before fit and predict.",
        )

    if isinstance(parts.get("random_state"), Generator | RandomState):
        parts["random_state"] = None
    if "init" in parts:
        parts["init"] = None  # its numbers are those of the model by now

    fitted = {key: part for key, part in vars(estimator).items() if _is_fitted(key)}
    return parts | fitted


def _is_fitted(name: str) -> bool:
    """Tell whether an attribute was learnt in a fit."""
    return name[-1] == "_" or name == "_tfidf"  # with the weights of a TfidfVectorizer


def _encode_array(value: Any, name: str, arrays: Arrays) -> dict[str, Any]:
    """Return an array as JSON: names as they are, numbers apart under a name."""
    array = to_host(value)
    if array.dtype.kind in "OU" and array.ndim == 1:  # names
        return {array.dtype.kind: [*map(str, array)]}
    _require(array.dtype.kind in "fiub", f"{name}={value!r} cannot be saved.")

    arrays[name] = array
    return {"array": name}


def _decode(node: Any, arrays: Arrays) -> Any:
    """Return the value that JSON stands for, of classes that are known."""
    if isinstance(node, list):
        return tuple(_decode(part, arrays) for part in node)
    if not isinstance(node, dict):
        return node

    ((kind, content),) = node.items()
    if kind == "array":
        return arrays[content]

    if kind in ("O", "U"):
        return np.array([*map(str, content)], dtype=kind)
    if kind == "words":
        return {str(word): column for column, word in enumerate(content)}
    if kind == "dtype":
        number = np.dtype(str(content))
        _require(number.kind in "fiub", f"it has cells of type {number}.")
        return number.type

    _require(kind in CLASSES, f"it holds a {kind!r}, which no model has.")
    make = CLASSES[kind]
    if issubclass(make, Enum):
        return make(content)

    parts = {key: _decode(part, arrays) for key, part in content.items()}
    return make(**parts) if make in VALUES else _fitted_estimator(make, parts)


def _fitted_estimator(make: Any, parts: dict[str, Any]) -> Any:
    """Return an estimator of a class, with its parameters and what it has learnt."""
    fitted = {key: part for key, part in parts.items() if _is_fitted(key)}
    parameters = {key: part for key, part in parts.items() if key not in fitted}

    for key in ("stop_words", "vocabulary"):  # they have to be lists
        if isinstance(parameters.get(key), tuple):
            parameters[key] = [*parameters[key]]

    if "feature_names_in_" in fitted:
        names = fitted["feature_names_in_"]
        n_different = len({*names})
        p = fitted["n_features_in_"]
        _require(
            len(names) == n_different == p,
            f"feature_names has {n_different} different names; the model has {p} "
            "features: give one for each.",
        )

    if "whiten" in parameters:
        del parameters["whiten"]
        parameters["columns"] = _columns_of_whitened(fitted)

    estimator = make(**parameters)
    vars(estimator).update(fitted)
    return estimator


def _without_older_count(node: Any) -> Any:
    """Return a step without how its clusters were counted: on other evidence then."""
    ((kind, parts),) = node.items()
    return {kind: {key: part for key, part in parts.items() if key != "selection_"}}


def _columns_of_whitened(fitted: dict[str, Any]) -> Columns:
    """Return the parameter that does what an older fit did to columns."""
    for change in fitted.get("preparation_", ()):
        if isinstance(change, Whitener):
            return columns_for_noise(change.noise)
    return "given"


def _decode_model(header: Any, arrays: Arrays) -> SavedModel:
    """Return the model of a header and arrays that make sense together."""
    _require(header.pop("format", None) == FORMAT, "this is no model of ihgmm.")
    number = header.pop("version", None)
    writer = header.pop("ihgmm", None)
    _require(
        number in READABLE_VERSIONS,
        f"this is a model of format {number!r}, written by ihgmm {writer!r}; ihgmm "
        f"{version('ihgmm')} reads format {FORMAT_VERSION}. Use the version that "
        "wrote it, or fit again.",
    )
    names = header.pop("names", None)
    nodes = header.pop("model", None)
    if number < FORMAT_VERSION:
        nodes = [_without_older_count(node) for node in nodes]

    for name, array in arrays.items():
        is_unbounded = name.split(".")[-1] in UNBOUNDED
        is_unbounded = is_unbounded or name.startswith("selection_")
        is_finite = is_unbounded or bool(np.isfinite(array).all())
        _require(is_finite, f"{name} is not finite.")

    steps = [_decode(node, arrays) for node in nodes]
    _require(_is_known(steps), f"its steps are {steps}, which make no model.")
    *scalers, model = steps
    model._check_parameters()
    _check_shapes(model)
    _check_answers(scalers, model)

    for step in steps[1:]:  # which get arrays, without names, from the step before
        vars(step).pop("feature_names_in_", None)

    named_steps = [*zip(map(str, names), steps, strict=True)]
    return SavedModel(Pipeline(named_steps) if scalers else model, **header)


def _check_shapes(model: Any) -> None:
    """Raise unless the attributes of a model fit together."""
    labels = model.labels_
    centers = model.cluster_centers_
    k = len(centers)

    faults = []
    if getattr(model, "n_clusters_", k) != k:
        faults.append("n_clusters_")
    for name in ROW_ATTRIBUTES:
        if len(getattr(model, name, labels)) != len(labels):
            faults.append(name)
    if labels.dtype.kind != "i" or not np.isin(labels, range(-1, k)).all():
        faults.append("labels_")

    # Predictions need errors of centres, where rows have no noise level of their own.
    errors = getattr(model, "center_errors_", centers)
    are_needed = getattr(model, "noise_", "individual") != "individual"
    are_usable = errors.shape == centers.shape and np.isfinite(errors).all()
    if are_needed and not are_usable:
        faults.append("center_errors_")

    _require(
        not faults, f"{', '.join(faults)} and its {k} centres do not fit together."
    )


def _check_answers(scalers: list[Any], model: Any) -> None:
    """Raise unless a model places some rows, and answers by finite numbers."""
    rows = np.maximum(model.cluster_centers_, 0) / 2  # one a cluster, no count below 0
    batch = {"batch": model.batches_.names[0]} if hasattr(model, "batches_") else {}

    row: np.ndarray | list[str] = [""]  # for the first scaler, a text or numbers
    if scalers and type(scalers[0]) not in VECTORIZERS:
        row = np.zeros((1, scalers[0].n_features_in_))

    answers = []
    try:
        with ignored(Warning), warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)  # what NumPy warns of
            for scaler in scalers:
                row = scaler.transform(row)
            if scalers:
                answers.append(csr_array(row).toarray())
            for name in ("predict", "transform", "predict_proba", "score_samples"):
                if hasattr(model, name):
                    answers.append(getattr(model, name)(rows, **batch))
            repr(model)
    except Exception as error:
        raise StorageError(f"its parts do not fit together ({error}).") from error

    for answer in answers:
        is_number = answer.dtype.kind in "fiub"
        is_finite = not is_number or bool(np.isfinite(answer).all())
        _require(is_finite, "what it says of a row is not finite.")


def _unpack(file: IO[bytes], size: int) -> tuple[Any, Arrays]:
    """Return the header and the arrays of a file of so many bytes."""
    with zipfile.ZipFile(file) as archive:
        claimed_size = sum(member.file_size for member in archive.infolist())
        _require(
            claimed_size <= size, f"it claims to hold more than its {size:,} bytes."
        )
        contents = {name: archive.read(name) for name in archive.namelist()}

    header = json.loads(contents.pop(HEADER))
    arrays = {}
    for name, content in contents.items():
        array = np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)
        _require(
            array.dtype.kind in "fiub",
            f"it holds {array.dtype} entries; models hold numbers.",
        )
        arrays[name.removesuffix(".npy")] = array

    return header, arrays
