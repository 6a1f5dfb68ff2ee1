"""AnnData files: X or a layer, with names and labels of the observations beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ihgmm.cli.tables.columns import known_labels
from ihgmm.cli.tables.loading import explain_damage
from ihgmm.cli.tables.table import (
    BESIDE,
    Note,
    Request,
    Table,
    near,
    quote,
    quote_all,
    unique_names,
)
from ihgmm.matrix import as_matrix

# Columns of var that hold symbols of genes, as programs write them.
SYMBOLS = (
    *("gene_symbols", "feature_name", "gene_symbol", "gene_name", "symbol"),
    *("gene_short_name", "hgnc_symbol", "external_gene_name"),
)
WRITE_AGAIN = "anndata.read_h5ad(FILE).write_h5ad(NEW_FILE)"


def read_h5ad(path: Path, request: Request, memory: float) -> Table:
    """Read X or a layer, or leave it on disk if it would take more than ``memory``."""
    import h5py
    from anndata.io import read_elem

    from ihgmm.numerics.whitening import preparation_of_counts

    with explain_damage(path):
        file = h5py.File(path, "r")
        foreign = _foreign_parts(file)
        is_old = "obs" in file and not hasattr(file["obs"], "keys")
        layers = {"X": "X", "raw": "raw/X"}
        layers |= {name: f"layers/{name}" for name in file.get("layers", ())}
        layers = {name: place for name, place in layers.items() if place in file}
    if foreign:
        raise ValueError(
            f"{path} takes {foreign[0]!r} from other files, and could name any of "
            f"yours. If you trust it, write it again with its data: {WRITE_AGAIN}."
        )
    if is_old:
        raise ValueError(
            f"{path} is of anndata before 0.7, whose tables are not read. Write it "
            f"again: {WRITE_AGAIN}."
        )
    of_fit = getattr(request.fit, "layer", None)
    layer = request.layer or of_fit or "X"
    if layer not in layers:
        raise ValueError(
            f"--layer {quote(layer)}: {path} has no such layer"
            f"{near(layer, list(layers))}; it has {quote_all(list(layers))}."
        )
    with explain_damage(path):
        place = "raw/var" if layer == "raw" else "var"
        obs: Any = read_elem(file["obs"]) if "obs" in file else None
        var: Any = read_elem(file[place]) if place in file else None
        X = as_matrix(file[layers[layer]])
    n, p = X.shape
    for kind, frame, size in (("obs", obs, n), ("var", var, p)):
        if frame is not None and len(frame) != size:
            raise ValueError(
                f"{path} holds {n} rows by {p} columns, and {kind} has {len(frame)}; "
                "write it again."
            )
    beside: dict[str, Any] = {"ids": np.arange(1, n + 1)}
    columns = [] if obs is None else list(obs.columns)
    request, notes = request.resolve(columns)
    request.check(columns, f"obs of {path}", *BESIDE)
    if obs is not None:
        name, label = request.id_column, request.label_column
        beside["id_name"] = name or obs.index.name or "obs_name"
        beside["ids"] = np.array(obs.index if name is None else obs[name], object)
        beside["labels"] = None if label is None else known_labels(obs[label])
    if request.layer is None and of_fit is not None:
        notes.append(Note(f"Took layer {quote(layer)}, as the fit did."))
    # Cells of a type are multiples of one pattern in counts, and in nothing else.
    is_logged = "uns/log1p" in file and layer == "X"
    what = {
        "logged": f"{layer} of {path} holds logarithms",
        "centred": f"In {layer} of {path}, columns were centred",
    }.get(preparation_of_counts(X, is_logged) or "")
    if what is not None and request.features is None:  # which are those of a model
        others = [name for name in ("counts", "raw") if name in layers.keys() - {layer}]
        text = f"{what}: cells of a type are then no multiples of one pattern."
        cure = f"If there are counts, take them: --layer {[*others, 'LAYER'][0]}."
        notes.append(Note(text, cure, loud=True))
    # Beside each entry of a sparse matrix stands its place.
    stays = X.n_entries * X.dtype.itemsize * (2 if X.sparse else 1) > memory
    if stays:
        notes.insert(0, Note("The data are read block by block."))
    names = [] if var is None else list(map(str, var.index))
    asked = {*request.columns, *request.drop_columns, *(request.features or ())}
    # Ids that are asked for, or that a model knows, stay.
    if names and names[0][:3] == "ENS" and not asked.intersection(names):
        for column in [name for name in SYMBOLS if name in var][:1]:
            names = unique_names(list(map(str, var[column])))
            notes.append(Note(f"Took names of genes from {quote(column)} of var."))
    beside |= {"names": names or None, "notes": notes, "is_sparse": X.sparse}
    data: Any = X if stays else X.to_memory().array  # type: ignore[attr-defined]
    return request.select(Table(request.source, data, **beside))


def _foreign_parts(file: Any) -> list[str]:
    """Return what a file takes from others: one from a stranger could name any."""
    import h5py

    places: list[str] = []
    file.visit_links(places.append)
    links = {place: file.get(place, getlink=True) for place in places}
    foreign = [p for p in places if isinstance(links[p], h5py.ExternalLink)]
    hard = [p for p in places if isinstance(links[p], h5py.HardLink)]
    stored = {p: file[p] for p in hard if isinstance(file[p], h5py.Dataset)}
    return foreign + [p for p, d in stored.items() if d.is_virtual or d.external]
