"""AnnData files: X or a layer, with names and labels of the observations beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ihgmm.cli.tables.table import Note, Request, Table, quote, quote_all
from ihgmm.matrix.delimited import unique_names
from ihgmm.matrix.faults import near
from ihgmm.matrix.files import frame_index, hdf5_column, open_data, opened_hdf5

# Columns of var that hold symbols of genes, as programs write them.
SYMBOLS = (
    *("gene_symbols", "feature_name", "gene_symbol", "gene_name", "symbol"),
    *("gene_short_name", "hgnc_symbol", "external_gene_name"),
)


def read_h5ad(path: Path, request: Request, memory: float) -> Table:
    """Read X or a layer of an AnnData file; labels and ids are columns of its ``obs``.

    It stays on disk where it would take more bytes than ``memory``. Rows go by the
    names of the observations, unless a column is asked for.
    """
    from ihgmm.numerics.whitening import preparation_of_counts

    with opened_hdf5(path, external=request.external) as file:
        if not hasattr(file.get("obs", {}), "keys"):
            raise ValueError(
                f"{path} is of anndata before 0.7, whose tables are not read. Write it "
                "again: anndata.read_h5ad(FILE).write_h5ad(NEW_FILE)."
            )
        layers = {"X": "X"} if "X" in file else {}
        layers |= {"raw": "raw/X"} if "raw/X" in file else {}
        layers |= {name: f"layers/{name}" for name in file.get("layers", ())}
        layer, notes = _layer(path, request, list(layers))
        is_logged = "uns/log1p" in file
        beside, obs_notes = _beside(path, request, file.get("obs"))
    part = layers.get(layer, "X")
    X = open_data(path, part=part, external=request.external)
    for values in (beside["ids"], beside["labels"]):
        if values is not None and len(values) != X.shape[0]:
            raise ValueError(
                f"{path} has {X.shape[0]} rows and obs has {len(values)}; write it "
                "again."
            )
    if beside["ids"] is None:
        beside["ids"] = np.arange(1, X.shape[0] + 1)
    # Cells of a type are multiples of one pattern in counts, and in nothing else.
    what = {
        "logged": f"{layer} of {path} holds logarithms",
        "centred": f"In {layer} of {path}, columns were centred",
    }.get(preparation_of_counts(X, is_logged and layer == "X") or "")
    if what is not None and request.features is None:  # which are those of a model
        others = [name for name in ("counts", "raw") if name in layers.keys() - {layer}]
        counts = [*others, "LAYER"][0]
        text = f"{what}: cells of a type are then no multiples of one pattern."
        cure = f"If there are counts, take them: --layer {counts}."
        obs_notes.append(Note(text, cure, loud=True))
    # Beside each entry of a sparse matrix stands its place.
    size = X.n_entries * X.dtype.itemsize * (2 if X.sparse else 1)
    stays = size > memory
    names, symbol_notes = _symbols(path, request, layer, X.names)
    table = Table(
        request.source,
        X if stays else X.to_memory().array,  # type: ignore[attr-defined]
        **beside,
        names=names,
        notes=[
            *[Note("The data are read block by block.")] * stays,
            *notes,
            *obs_notes,
            *symbol_notes,
        ],
        is_sparse=X.sparse,
    )
    return request.select(table)


def _symbols(
    path: Path, request: Request, layer: str, names: list[str] | None
) -> tuple[list[str] | None, list[Note]]:
    """Return symbols of genes in the place of ids of Ensembl, where ``var`` has them.

    Ids that are asked for, or that a model knows, stay.
    """
    asked = {*request.columns, *request.drop_columns, *(request.features or ())}
    if not names or not names[0].startswith("ENS") or asked.intersection(names):
        return names, []
    with opened_hdf5(path, external=request.external) as file:
        variables = file["raw/var" if layer == "raw" else "var"]
        for column in SYMBOLS:
            if column in variables:
                symbols = map(str, hdf5_column(variables[column]))
                note = Note(f"Took names of genes from {quote(column)} of var.")
                return unique_names(list(symbols)), [note]
    return names, []


def _layer(path: Path, request: Request, layers: list[str]) -> tuple[str, list[Note]]:
    """Return the layer to take: the one asked for, that of the fit, or X."""
    asked, known = request.layer, quote_all(layers) or "none"
    of_fit = None if request.fit is None else request.fit.layer
    if asked is not None and asked not in layers:
        raise ValueError(
            f"--layer {quote(asked)}: {path} has no such layer{near(asked, layers)}; "
            f"it has {known}."
        )
    if asked is not None or of_fit is None:
        return asked or "X", []
    if of_fit not in layers:
        raise ValueError(
            f"{path} has no layer {quote(of_fit)}, which the model was fitted on; it "
            f"has {known}. Name the one to take with --layer."
        )
    return of_fit, [Note(f"Took layer {quote(of_fit)}, as the fit did.")]


def _beside(
    path: Path, request: Request, frame: Any
) -> tuple[dict[str, Any], list[Note]]:
    """Return ids, what they are called, and labels, of the frame of observations."""
    index = frame_index(frame)
    names = [name for name in frame or () if name != index]
    request, notes = request.resolve(names)
    request.check(names, ["--label-column", "--id-column"], f"obs of {path}")
    id_name, place = request.id_column or "row", request.id_column or index
    if request.id_column is None and index is not None:
        id_name = "obs_name" if index == "_index" else index
    beside = {
        "ids": None if place is None else hdf5_column(frame[place]),
        "id_name": id_name,
        "labels": None
        if request.label_column is None
        else hdf5_column(frame[request.label_column]),
    }
    return beside, notes
