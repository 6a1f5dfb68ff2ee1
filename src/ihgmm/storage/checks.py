"""Whether what a file holds makes a model."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from ihgmm.storage.archive import StorageError
from ihgmm.storage.layouts import LAYOUTS, NOISE_SHAPES, Layout

__all__ = ["FORMAT", "SCALAR", "VERSION", "check_arrays", "check_header", "check_name"]

FORMAT, VERSION = "ihgmm-model", 1
"""What a header says it is; the second changes when old readers could not follow."""

SCALAR = (str, int, float, bool, type(None))
"""What a parameter may be."""


def check_header(path: Path, header: dict[str, Any]) -> tuple[Layout, dict[str, Any]]:
    """Return the layout and the parameters of a header that makes sense."""
    if header.get("format") != FORMAT:
        raise StorageError(f"{path} is no model of ihgmm.")
    if header.get("version") != VERSION:
        raise StorageError(
            f"{path} is a model of format {header.get('version')!r}, written by ihgmm "
            f"{header.get('ihgmm')!r}; this is ihgmm {version('ihgmm')} and reads "
            f"format {VERSION}. Use the version that wrote it, or fit again."
        )
    name = header.get("class")
    if not isinstance(name, str) or name not in LAYOUTS:
        raise StorageError(
            f"{path} holds a model of class {name!r}; known are {', '.join(LAYOUTS)}."
        )
    layout = LAYOUTS[name]
    p, names = header.get("n_features"), header.get("feature_names")
    if type(p) is not int or p < 1:
        raise StorageError(f"{path}: n_features={p!r} is not a count.")
    if names is not None and not (
        isinstance(names, list)
        and len(names) == p == len(set(map(str, names)))
        and all(isinstance(entry, str) for entry in names)
    ):
        raise StorageError(f"{path}: its feature names are not {p} different names.")
    for key in ("id_column", "label_column"):  # older files have none
        check_name(f"{path}: its {key}", header.get(key))
    parameters, numbers = header.get("parameters"), header.get("numbers")
    known = layout.build().get_params(deep=False)
    if not isinstance(parameters, dict) or not isinstance(numbers, dict):
        raise StorageError(f"{path}: its parameters or numbers are missing.")
    for key, value in parameters.items():
        if key not in known or not isinstance(value, SCALAR):
            raise StorageError(f"{path}: {name} has no parameter {key}={value!r}.")
    for key, kind in layout.numbers.items():
        if type(numbers.get(key)) is not kind:
            raise StorageError(
                f"{path}: {key}={numbers.get(key)!r} is no {kind.__name__}."
            )
    if "noise" in known and parameters.get("noise") not in NOISE_SHAPES:
        raise StorageError(f"{path}: noise={parameters.get('noise')!r} is not known.")
    return layout, dict(parameters)


def check_name(what: str, name: Any) -> str | None:
    """Return the name of a column, or None where there is none."""
    if name is None or isinstance(name, str):
        return name
    raise StorageError(f"{what} is {name!r}; the name of a column is text.")


def check_arrays(
    path: Path, arrays: dict[str, np.ndarray], shapes: dict[str, str], p: int
) -> None:
    """Raise if arrays are missing, unasked for, or do not fit together."""
    odd = set(arrays) ^ set(shapes)
    if odd:
        what = "is missing" if min(odd) in shapes else "does not belong in it"
        raise StorageError(f"{path}: the array {min(odd)!r} {what}.")
    sizes = {"1": 1, "p": p}
    for key, letters in shapes.items():
        array = arrays[key]
        fits = array.ndim == len(letters) and all(
            sizes.setdefault(letter, length) == length
            for letter, length in zip(letters, array.shape, strict=False)
        )
        if not fits:
            raise StorageError(
                f"{path}: {key} has shape {array.shape}, which does not fit the other "
                "arrays."
            )
        if (array.dtype.kind == "i") != (key == "labels_"):
            raise StorageError(f"{path}: {key} holds {array.dtype} entries.")
    labels = arrays["labels_"]
    if labels.size and not 0 <= labels.min() <= labels.max() < sizes["k"]:
        raise StorageError(f"{path}: labels_ go beyond its {sizes['k']} clusters.")
    if not np.isfinite(arrays["cluster_centers_"]).all():
        raise StorageError(f"{path}: cluster_centers_ are not finite.")
