"""Models on disk: plain files that hold numbers and names, and run nothing.

A file is a zip archive of ``header.json`` and one ``.npy`` for each array. Nothing in
it is compressed, so that no file unpacks to more than its own size; nothing in it is
pickled, so that nothing can run. One codec turns frozen values into JSON and arrays and
back; types of their fields, and of an estimator's attributes, say what may be read.
"""

from __future__ import annotations

import errno
import inspect
import io
import json
import math
import os
import struct
import tokenize
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import numpy as np
from scipy.sparse import csr_array
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from ihgmm._files import atomic_write
from ihgmm._values import OPTIONAL, Count, Domain, decode, encode
from ihgmm._warnings import ignored
from ihgmm.estimators import PSC, IhGMM, IhSC, SphericalKMeans
from ihgmm.estimators.base import Clusterer

__all__ = ["StorageError", "load_model", "save_model"]

ESTIMATORS = {kind.__name__: kind for kind in (IhSC, IhGMM, PSC, SphericalKMeans)}
# Types of attributes that scikit-learn sets, and of those of its scaler.
FEATURES: dict[str, Any] = {
    "n_features_in_": Count,
    "feature_names_in_": Annotated[list[str], OPTIONAL],
}
SCALER: dict[str, Any] = {
    "mean_": Annotated[np.ndarray, Domain("p")] | None,
    "var_": Annotated[np.ndarray, Domain("p", least=0)] | None,
    "scale_": Annotated[np.ndarray, Domain("p", above=0)] | None,
    "n_samples_seen_": int | float | np.ndarray,
}
PREPARATIONS: dict[type, dict[str, Any]] = {
    StandardScaler: SCALER,
    TfidfTransformer: {"idf_": Annotated[np.ndarray, Domain("p", above=0)]},
}
# What libraries raise at bytes that make no sense, beside errors of their own.
SENSELESS = (ValueError, TypeError, RuntimeError, OverflowError)
GENERATORS = (np.random.Generator, np.random.RandomState)
HEADER, FORMAT = "header.json", "ihgmm-model"
FORMAT_VERSION = 4  # another one where other versions of ihgmm could not read it


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


@dataclass(frozen=True)
class SavedModel:
    """What a file holds: a fitted estimator, and what was said of its data."""

    model: Any
    id_column: str | None = None  # that held names of rows
    label_column: str | None = None  # that held known labels
    text_column: str | None = None  # that held texts, whose words are the features
    layer: str | None = None  # of an AnnData file, that held the data
    empty_is_zero: bool = False  # missing cells of the data were taken for 0
    cluster_names: list[str] | None = None  # "" for a cluster that has none


def save_model(
    model: Any,
    path: str | os.PathLike[str],
    *,
    feature_names: Sequence[str] | None = None,
    **told: Any,
) -> None:
    """Write a fitted model to a file, whole or not at all.

    Parameters
    ----------
    model : IhSC, IhGMM, PSC or SphericalKMeans
        The fitted estimator; or a scikit-learn pipeline of a ``StandardScaler`` or a
        ``TfidfTransformer`` and one of these.
    path : path
        The file. One that is there is replaced.
    feature_names : sequence of str, optional
        Names of the features, where the model was fitted on an array without names.
    **told
        What ``ihgmm predict`` should know of the data. ``text_column`` has texts, if
        features are their words. Others are the columns with names of rows and with
        known labels (``id_column``, ``label_column``), the ``layer`` of an
        AnnData file, whether missing cells were taken for 0 (``empty_is_zero``), and a
        list of ``cluster_names``, ``""`` for a cluster without one.

    Raises
    ------
    StorageError
        If the model is of another kind, or a name is no text.

    Notes
    -----
    All fitted attributes are kept. Arrays of a GPU come back as NumPy arrays. A
    ``random_state`` that is a generator is kept as None: it has no say in predictions.

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
    steps = [step for _, step in model.steps] if type(model) is Pipeline else [model]
    *before, estimator = steps
    known = ESTIMATORS.get(type(estimator).__name__) is type(estimator)
    if not known or len(before) > 1 or any(type(s) not in PREPARATIONS for s in before):
        raise StorageError(
            f"A model of {' and '.join(type(s).__name__ for s in steps)} cannot be "
            f"saved; give one of {', '.join(ESTIMATORS)}, or a pipeline of a "
            "StandardScaler or a TfidfTransformer and one of them, and keep other "
            "steps yourself."
        )
    if not hasattr(estimator, "cluster_centers_"):
        kind = type(estimator).__name__
        raise NotFittedError(f"This {kind} is not fitted; call fit before saving it.")
    arrays: dict[str, np.ndarray] = {}
    try:
        header: dict[str, Any] = {
            **vars(SavedModel(model, **told)),
            "format": FORMAT,
            "version": FORMAT_VERSION,
            "ihgmm": version("ihgmm"),
            "scaler": None,
            "model": _encode_estimator(estimator, "", arrays),
        }
        if before:
            header["scaler"] = _encode_estimator(before[0], "scaler.", arrays)
        if feature_names is not None:
            (first,) = (header["scaler"] or header["model"]).values()
            first["feature_names_in_"] = [*map(str, feature_names)]
        _decode_model(header, dict(arrays))  # what could not be read is not written
    except ValueError as error:
        raise StorageError(str(error)) from error
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
        return _decode_model(*_unpack(Path(path).expanduser()))
    except (ValueError, RecursionError) as error:
        raise StorageError(f"{path}: {error}") from error


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise StorageError(message)


def _encode_estimator(
    estimator: Any, prefix: str, arrays: dict[str, np.ndarray]
) -> dict[str, Any]:
    """Return the parameters and the fitted attributes of an estimator, by its class."""
    parts = estimator.get_params(deep=False)
    if isinstance(parts.get("random_state"), GENERATORS):
        parts["random_state"] = None
    parts |= {key: value for key, value in vars(estimator).items() if key[-1] == "_"}
    if "feature_names_in_" in parts:
        parts["feature_names_in_"] = [*map(str, parts["feature_names_in_"])]
    encoded = {key: encode(part, prefix + key, arrays) for key, part in parts.items()}
    return {type(estimator).__name__: encoded}


def _decode_estimator(
    node: Any, known: Mapping[str, type], arrays: dict[str, np.ndarray]
) -> Any:
    """Return an estimator of a known class, its parts of the types that they have."""
    name: Any
    given: Any
    name, given = next(iter(node.items())) if node and type(node) is dict else (None, 0)
    text = f"it holds a model of class {name!r}; known are {', '.join(known)}."
    _require(name in known and isinstance(given, dict), text)
    hints, p = _types(known[name]), given.get("n_features_in_")
    odd = min(set(given) - set(hints), default=None)
    _require(odd is None, f"{name} has no parameter or attribute {odd}.")
    sizes = {"p": p}
    parts = {
        key: decode(given[key], hint, key, arrays, sizes)
        for key, hint in hints.items()
        if key in given
    }
    fitted = {key: parts.pop(key) for key in [*parts] if key[-1] == "_"}
    if "feature_names_in_" in fitted:
        names = fitted["feature_names_in_"]
        text = f"feature_names has {len(set(names))} different names; the model has {p}"
        fits = len(names) == len(set(names)) == p
        _require(fits, f"{text} features and wants one for each.")
        fitted["feature_names_in_"] = np.array(names, dtype=object)
    try:
        estimator: Any = known[name](**parts)
        if isinstance(estimator, Clusterer):
            estimator._check_parameters()
    except (TypeError, ValueError) as error:
        raise StorageError(f"its parameters make no sense: {error}") from error
    vars(estimator).update(fitted)
    for key, hint in hints.items():
        optional = key[-1] != "_" or OPTIONAL in get_args(hint)
        _require(optional or hasattr(estimator, key), f"{key} is missing.")
    return estimator


@cache
def _types(kind: type) -> dict[str, Any]:
    """Return the types of parameters and attributes; first what counts the clusters."""
    declared = get_type_hints(kind, include_extras=True)
    declared = PREPARATIONS.get(kind, declared)
    names = sorted(declared, key=lambda name: name != "cluster_centers_")
    hints = FEATURES | {name: declared[name] for name in names if name[-1] == "_"}
    of_init = get_type_hints(kind.__init__)  # type: ignore[misc]
    return hints | {
        name: of_init.get(name, Any) for name in inspect.signature(kind).parameters
    }


def _decode_model(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> SavedModel:
    """Return the model of a header and arrays that make sense together."""
    _require(header.get("format") == FORMAT, "this is no model of ihgmm.")
    _require(
        header.get("version") == FORMAT_VERSION,
        f"this is a model of format {header.get('version')!r}, written by ihgmm "
        f"{header.get('ihgmm')!r}; this is ihgmm {version('ihgmm')} and reads format "
        f"{FORMAT_VERSION}. Use the version that wrote it, or fit again.",
    )
    model = _decode_estimator(header.get("model"), ESTIMATORS, arrays)
    before = []
    if header.get("scaler") is not None:
        known = {kind.__name__: kind for kind in PREPARATIONS}
        before = [_decode_estimator(header["scaler"], known, arrays)]
    odd = min(arrays, default=None)
    _require(odd is None, f"the array {odd!r} does not belong in it.")
    hints = get_type_hints(SavedModel)
    told = {
        key: decode(header.get(key), hints[key], key, {}, {})
        for key in hints
        if key != "model"
    }
    k, names = len(model.cluster_centers_), told["cluster_names"]
    text = f"cluster_names is {names!r}; give a text for each of the {k} clusters."
    _require(names is None or len(names) == k, text)
    has_words = hasattr((*before, model)[0], "feature_names_in_")
    text = "text_column is given, and the features have no names, which are words."
    _require(told["text_column"] is None or has_words, text)
    count = getattr(model, "n_clusters_", k)
    _require(count == k, f"n_clusters_={count} and there are {k} centres.")
    _try_out(before, model)
    return SavedModel(make_pipeline(*before, model) if before else model, **told)


def _try_out(before: list[Any], model: Any) -> None:
    """Raise unless parts of a model, each whole in itself, place a row together."""
    row = np.abs(model.cluster_centers_[:1]) / 2  # in the units of the data
    methods = ("predict", "transform", "predict_proba", "score_samples")
    inside = model.labels_ >= 0
    try:
        with ignored(Warning):
            # Words stay sparse.
            answers = [csr_array(s.transform(0 * row)).toarray() for s in before]
            answers += [getattr(model, m)(row) for m in methods if hasattr(model, m)]
        # Only outliers have no scale and noise of their own.
        lines = [getattr(model, key, inside) for key in ("scales_", "noise_levels_")]
        answers += [x[inside] if len(x) == len(inside) else x for x in lines]
        # Where every row has its own noise, errors of centres have no say.
        if getattr(model, "noise_", "individual") != "individual":
            answers.append(model.center_errors_)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as err:
        raise StorageError(f"its parts do not fit together ({err}).") from err
    finite = all(np.isfinite(answer).all() for answer in answers)
    _require(finite, "what it says of a row is not finite.")


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
    except (*SENSELESS, zipfile.BadZipFile, EOFError, struct.error, OSError) as error:
        # An archive may point before its beginning, an invalid argument to the system.
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            raise
        raise StorageError(
            f"this is no model, or only a part of one ({error}); save it again."
        ) from error
    _require(HEADER in raw, f"this is no model: it has no {HEADER}.")
    try:
        header = json.loads(raw.pop(HEADER))
    except SENSELESS as error:
        raise StorageError(f"its {HEADER} cannot be read ({error}).") from error
    _require(isinstance(header, dict), f"its {HEADER} is not an object.")
    return header, {
        name.removesuffix(".npy"): _read_array(name, raw[name]) for name in raw
    }


def _check_members(members: list[zipfile.ZipInfo], size: int) -> None:
    """Refuse an archive that would unpack to more than it is."""
    count = len(members)  # a model has two dozen at most
    _require(count <= 64, f"this is no model: it has {count} members.")
    different = len({member.filename for member in members})
    _require(different == count, "this is no model: two of its members share a name.")
    for member in members:
        text = f"{member.filename!r} is compressed, which models never are."
        _require(member.compress_type == zipfile.ZIP_STORED, text)
    unpacked = sum(member.file_size for member in members)
    _require(unpacked <= size, f"it claims to hold more than its {size:,} bytes.")


def _read_array(name: str, raw: bytes) -> np.ndarray:
    """Return an array from the bytes of a ``.npy`` file that holds numbers only."""
    stream = io.BytesIO(raw)
    try:
        if np.lib.format.read_magic(stream) != (1, 0):
            raise ValueError("its version is not 1.0")
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
    except (*SENSELESS, SyntaxError, tokenize.TokenError) as error:
        raise StorageError(f"{name!r} is not an array ({error}).") from error
    text = f"{name!r} holds {dtype} entries; models hold numbers only."
    _require(dtype.str in ("<f4", "<f8", "<i8", "|b1"), text)
    rest = len(raw) - stream.tell()
    whole = all(type(length) is int and 0 <= length < 2**63 for length in shape)
    whole = whole and math.prod(shape) * dtype.itemsize == rest
    _require(whole, f"{name!r} says that its shape is {shape}, and has {rest:,} bytes.")
    flat = np.frombuffer(raw, dtype, offset=stream.tell())
    return flat.reshape(shape, order="F" if fortran else "C").copy(order="K")
