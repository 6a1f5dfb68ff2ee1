"""AnnData files: X or a layer, with names and labels of the observations beside it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ihgmm.cli.tables.table import Note, Request, Table, quote, quote_all
from ihgmm.matrix import Matrix
from ihgmm.matrix.files import Frame, anndata_layers, near, open_data, says_logarithms
from ihgmm.numerics.whitening import preparation_of_counts


def read_h5ad(path: Path, request: Request, memory: float) -> Table:
    """Read X or a layer of an AnnData file; labels and ids are columns of its ``obs``.

    It stays on disk where it would take more bytes than ``memory``. Rows go by the
    names of the observations, unless a column is asked for.
    """
    layer, place, notes = _layer(path, request)
    X = open_data(path, part=place)
    # Beside each entry of a sparse matrix stands its place.
    size = X.n_entries * X.dtype.itemsize * (2 if X.sparse else 1)
    stays = size > memory
    ids, labels, id_name, more = _beside(path, request, X.shape[0])
    notes += more
    if place == "X":
        notes += _preparation(path, X, request)
    if stays:
        notes = [Note("The data are read block by block."), *notes]
    member = {"X": "X", "raw/X": "raw.X"}.get(place, f"layers[{layer!r}]")
    read = ("import anndata", "", f"X = anndata.read_h5ad({str(path)!r}).{member}")
    table = Table(
        request.source,
        X if stays else X.to_memory().array,  # type: ignore[attr-defined]
        ids,
        id_name,
        labels,
        X.names,
        notes,
        is_sparse=X.sparse,
        python=() if stays else read,
    )
    return request.order(request.choose_features(table))


def _layer(path: Path, request: Request) -> tuple[str, str, list[Note]]:
    """Return the name of the layer, its place in the file, and notes."""
    layers = anndata_layers(path)
    layer, known = request.layer, quote_all(list(layers)) or "none"
    if layer is not None and layer not in layers:
        raise ValueError(
            f"--layer {quote(layer)}: {path} has no such layer"
            f"{near(layer, list(layers))}; it has {known}."
        )
    if layer is not None or request.fit_layer is None:
        return layer or "X", layers.get(layer or "X", "X"), []
    layer = request.fit_layer
    if layer not in layers:
        raise ValueError(
            f"{path} has no layer {quote(layer)}, which the model was fitted on; it "
            f"has {known}. Name the one to take with --layer."
        )
    return layer, layers[layer], [Note(f"Took layer {quote(layer)}, as the fit did.")]


def _preparation(path: Path, X: Matrix, request: Request) -> list[Note]:
    """Return a note on X in which cells of a type are no multiples of one pattern."""
    what = {
        "logged": f"X of {path} holds logarithms, as its uns says",
        "centred": f"The columns of X of {path} were centred",
    }.get(preparation_of_counts(X, says_logarithms(path)) or "")
    if what is None or request.features is not None:  # which are those of a model
        return []
    layers = anndata_layers(path)
    found = next((each for each in ("counts", "raw") if each in layers), "LAYER")
    text = (
        f"{what}: cells of a type are then no multiples of one pattern. If there are "
        "counts, take them"
    )
    return [Note(f"{text}: --layer {found} --whiten counts.", f"{text}.", loud=True)]


def _beside(
    path: Path, request: Request, n_rows: int
) -> tuple[np.ndarray, np.ndarray | None, str, list[Note]]:
    """Return ids, labels, what ids are called, and notes."""
    frame = Frame(path, "obs")
    asked, request = request, request.resolve(frame.names)
    found: list[np.ndarray | None] = []
    for option, name in (
        ("--label-column", request.label),
        ("--id-column", request.ids),
    ):
        if name is not None and name not in frame.names:
            raise ValueError(
                f"{option} {name!r}: obs of {path} has no such column"
                f"{near(name, frame.names)}; it has "
                f"{quote_all(frame.names) or 'none'}."
            )
        found.append(None if name is None else frame.read(name))
    labels, ids = found
    id_name = request.ids or "row"
    if ids is None and frame.index is not None:
        ids = frame.read(frame.index)
        id_name = "obs_name" if frame.index == "_index" else frame.index
    for values in (labels, ids):
        if values is not None and len(values) != n_rows:
            raise ValueError(
                f"{path} has {n_rows} rows and obs has {len(values)}; write it again."
            )
    notes = asked.notes(request.label, request.ids)
    ids = np.arange(1, n_rows + 1) if ids is None else ids
    return ids, labels, id_name, notes
