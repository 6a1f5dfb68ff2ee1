"""From a fitted estimator to a file, and back."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from ihgmm._devices import to_host
from ihgmm._files import atomic_write
from ihgmm.memberships import Directions
from ihgmm.storage.archive import StorageError, pack, unpack
from ihgmm.storage.checks import (
    FORMAT,
    SCALAR,
    VERSION,
    check_arrays,
    check_header,
    check_name,
)
from ihgmm.storage.layouts import DIRECTIONS, LAYOUTS, NOISE_SHAPES, SCALER, Layout

__all__ = ["SavedModel", "load_model", "load_saved", "save_model"]


@dataclass(frozen=True)
class SavedModel:
    """What a file holds.

    Attributes
    ----------
    model : IhSC, IhGMM, PSC, SphericalKMeans or Pipeline
        The fitted estimator.
    id_column, label_column : str or None
        Columns of the data of the fit that held names of rows and known labels.
    """

    model: Any
    id_column: str | None
    label_column: str | None


def save_model(
    model: Any,
    path: str | os.PathLike[str],
    *,
    feature_names: Sequence[str] | None = None,
    id_column: str | None = None,
    label_column: str | None = None,
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
    ...     again = load_model(Path(folder) / "model.npz")
    >>> (again.predict(X) == model.predict(X)).all()
    np.True_
    """
    scaler, estimator = _parts(model)
    name = type(estimator).__name__
    layout = LAYOUTS[name]
    if not hasattr(estimator, "cluster_centers_"):
        raise NotFittedError(f"This {name} is not fitted; call fit before saving it.")
    p = int(estimator.n_features_in_)
    names = feature_names
    if names is None:
        names = getattr(scaler or estimator, "feature_names_in_", None)
    kept, arrays = _kept(estimator, layout)
    if scaler is not None:
        for key in SCALER:
            values = getattr(scaler, key.removeprefix("scaler."))
            if values is not None:
                arrays[key] = values
    header = {
        "format": FORMAT,
        "version": VERSION,
        "ihgmm": version("ihgmm"),
        "class": name,
        "parameters": kept,
        "numbers": {k: t(getattr(estimator, k)) for k, t in layout.numbers.items()},
        "n_features": p,
        "feature_names": None if names is None else _names(names, p),
        "id_column": check_name("id_column", id_column),
        "label_column": check_name("label_column", label_column),
        "scaler": None if scaler is None else _scaler_header(scaler),
    }
    content = pack(header, arrays)
    with atomic_write(path) as file:
        file.write(content)


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
    """
    return load_saved(path).model


def load_saved(path: str | os.PathLike[str]) -> SavedModel:
    """Read a model, and what the fit was told of the data."""
    where = Path(path)
    header, arrays = unpack(where)
    layout, parameters = check_header(where, header)
    shapes = dict(_shapes(layout, parameters))
    scaled = header.get("scaler")
    if scaled is not None:
        shapes |= {key: shape for key, shape in SCALER.items() if key in arrays}
    if "init" in arrays and "init" not in parameters:
        shapes["init"] = "kp"
        parameters["init"] = arrays["init"]
    p = header["n_features"]
    check_arrays(where, arrays, shapes, p)
    model = layout.build(**parameters)
    if "directions.sums" in shapes:
        parts = (arrays[key] for key in DIRECTIONS)
        model._directions = Directions(*parts)
    for key in shapes:
        if key.endswith("_") and "." not in key:
            setattr(model, key, arrays[key])
    for key in layout.numbers:
        setattr(model, key, header["numbers"][key])
    model.n_features_in_ = p
    scaler = None if scaled is None else _scaler(where, scaled, arrays, p)
    if header.get("feature_names") is not None:
        names = np.array(header["feature_names"], dtype=object)
        (scaler or model).feature_names_in_ = names
    return SavedModel(
        model if scaler is None else make_pipeline(scaler, model),
        header.get("id_column"),
        header.get("label_column"),
    )


def _parts(model: Any) -> tuple[StandardScaler | None, Any]:
    """Return the scaler, if there is one, and the estimator."""
    steps = [s for _, s in model.steps] if isinstance(model, Pipeline) else [model]
    if len(steps) == 2 and type(steps[0]) is StandardScaler:
        scaler, estimator = steps
    else:
        scaler, estimator = None, steps[-1]
    layout = LAYOUTS.get(type(estimator).__name__)
    known = layout is not None and type(estimator) is layout.build
    if not known or len(steps) != (1 if scaler is None else 2):
        raise StorageError(
            f"{' and '.join(type(step).__name__ for step in steps)} cannot be saved; "
            f"give one of {', '.join(LAYOUTS)}, or a pipeline of a StandardScaler and "
            "one of them."
        )
    return scaler, estimator


def _kept(
    estimator: Any, layout: Layout
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the parameters and the arrays of an estimator."""
    parameters = estimator.get_params(deep=False)
    arrays = {
        key: np.asarray(to_host(_held(estimator, key)))
        for key in _shapes(layout, parameters)
    }
    kept: dict[str, Any] = {}
    for key, value in parameters.items():
        value = value.item() if isinstance(value, np.generic) else value
        if isinstance(value, SCALAR):
            kept[key] = value
        elif key == "init":
            arrays["init"] = np.asarray(value, dtype=np.float64)
        elif key == "random_state":
            kept[key] = None
        else:
            name = type(estimator).__name__
            raise StorageError(f"{key}={value!r} of {name} cannot be saved.")
    return kept, arrays


def _held(estimator: Any, key: str) -> Any:
    if key in DIRECTIONS:
        return getattr(estimator._directions, key.removeprefix("directions."))
    return getattr(estimator, key)


def _shapes(layout: Layout, parameters: dict[str, Any]) -> dict[str, str]:
    shapes = dict(layout.arrays)
    if "noise" in parameters:
        shapes["noise_levels_"] = NOISE_SHAPES[parameters["noise"]]
    return shapes


def _names(names: Sequence[str], p: int) -> list[str]:
    found = [str(name) for name in names]
    if len(found) != p or len(set(found)) != p:
        raise StorageError(
            f"feature_names has {len(set(found))} different names; the model has {p} "
            "features and wants one for each."
        )
    return found


def _scaler_header(scaler: StandardScaler) -> dict[str, Any]:
    return {
        "with_mean": bool(scaler.with_mean),
        "with_std": bool(scaler.with_std),
        "n_samples_seen_": int(np.max(scaler.n_samples_seen_)),
    }


def _scaler(
    path: Path, scaled: Any, arrays: dict[str, np.ndarray], p: int
) -> StandardScaler:
    kinds = {"with_mean": bool, "with_std": bool, "n_samples_seen_": int}
    if not isinstance(scaled, dict) or any(
        type(scaled.get(key)) is not kind for key, kind in kinds.items()
    ):
        raise StorageError(f"{path}: its scaler is {scaled!r}, which is not known.")
    needed = ["mean_"] * scaled["with_mean"] + ["scale_"] * scaled["with_std"]
    for key in needed:
        if f"scaler.{key}" not in arrays:
            raise StorageError(f"{path}: the array 'scaler.{key}' is missing.")
    scaler = StandardScaler(with_mean=scaled["with_mean"], with_std=scaled["with_std"])
    for key in SCALER:
        setattr(scaler, key.removeprefix("scaler."), arrays.get(key))
    scaler.n_samples_seen_ = scaled["n_samples_seen_"]
    scaler.n_features_in_ = p
    return scaler
