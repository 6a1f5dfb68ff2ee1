"""AnnData files: a matrix, and frames with names and facts of its rows and columns."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ihgmm.cli.tables import notes
from ihgmm.cli.tables.files.array_files import sparse_by_rows
from ihgmm.cli.tables.files.raw_table import RawArray, damaged, explain_damage
from ihgmm.cli.tables.names import check_there, quote, unique_names
from ihgmm.cli.tables.request import Request
from ihgmm.cli.tables.table import Note
from ihgmm.matrix import Matrix, as_matrix
from ihgmm.matrix.hdf5_zarr import check_claim

if TYPE_CHECKING:
    import h5py
    import pandas as pd

# Columns of var that hold symbols of genes, as programs write them.
SYMBOLS = (
    "gene_symbols",
    "feature_name",
    "gene_symbol",
    "gene_name",
    "symbol",
    "gene_short_name",
    "hgnc_symbol",
    "external_gene_name",
)


@dataclass(frozen=True)
class _Layer:
    """A matrix of the file, and where it is."""

    name: str
    place: str  # in the file
    others: list[str]  # further layers
    is_of_fit: bool  # whether the layer was chosen as the fit did


def read_h5ad(path: Path, request: Request) -> RawArray:
    """Read X or a layer, or leave it on disk if there is no room for it."""
    file = _open(path)
    layer = _choose_layer(file, path, request)

    with explain_damage(path), _memory_for(path):
        obs = _frame(file, "obs")
        var = _frame(file, "raw/var" if layer.name == "raw" else "var")
        X = _matrix(file[layer.place], request.memory)
    _check_length(path, obs, X.shape[0])
    _check_length(path, var, X.shape[1])

    messages: list[Note] = []
    # Beside each entry of a sparse matrix stands its place.
    n_bytes = X.n_entries * X.dtype.itemsize * (2 if X.sparse else 1)
    stays_on_disk = n_bytes > request.memory
    if stays_on_disk:
        messages.append(notes.BY_BLOCKS)
    if layer.is_of_fit:
        messages.append(notes.layer_of_fit(layer.name))
    if request.features is None:  # else the layer is that of the model
        is_logged = "uns/log1p" in file and layer.name == "X"
        messages += _notes_on_counts(X, path, layer, is_logged)

    names = None if var is None else [str(name) for name in var.index]
    if var is not None and names and _wants_symbols(names, request):
        names, symbol_notes = _with_symbols(names, var)
        messages += symbol_notes

    data = X if stays_on_disk else X.to_memory().array
    return RawArray(X=data, obs=obs, names=names, notes=messages, is_sparse=X.sparse)


def _open(path: Path) -> "h5py.File":
    """Return an AnnData file; raise if it takes parts from others, or is too old."""
    import h5py

    with explain_damage(path), _memory_for(path):
        file = h5py.File(path, "r")
        is_old = "obs" in file and not hasattr(file["obs"], "keys")
        is_refused = _is_foreign(file) or is_old
    if is_refused:
        raise ValueError(
            f"{path} takes parts from other files, and could name any of yours, or is "
            "of anndata before 0.7. If you trust it, write it again with its data: "
            "anndata.read_h5ad(FILE).write_h5ad(NEW_FILE)."
        )
    return file


def _choose_layer(file: "h5py.File", path: Path, request: Request) -> _Layer:
    """Return the layer that is asked for, else that of the fit, else X."""
    with explain_damage(path), _memory_for(path):
        places = {"X": "X", "raw": "raw/X"}
        places |= {name: f"layers/{name}" for name in file.get("layers", ())}
        places = {name: place for name, place in places.items() if place in file}

    layer_of_fit = getattr(request.fit, "layer", None)
    is_of_fit = request.layer is None and layer_of_fit is not None
    name = request.layer or layer_of_fit or "X"

    option = "give --layer; that of the fit was" if is_of_fit else "--layer"
    check_there(option, name, list(places), str(path), "layer")

    return _Layer(
        name=name,
        place=places[name],
        others=[layer for layer in places if layer != name],
        is_of_fit=is_of_fit,
    )


def _frame(file: "h5py.File", place: str) -> "pd.DataFrame | None":
    """Return a frame of the file, if it has one there."""
    from anndata.io import read_elem

    return read_elem(file[place]) if place in file else None


def _matrix(stored: Any, memory: int) -> Matrix:
    """Return a matrix of the file; one that is stored by columns comes into memory."""
    from anndata.io import read_elem

    if stored.attrs.get("encoding-type") == "csc_matrix":
        # Beside each entry stands its place; for a while there are two copies. What
        # has no room stays, for the message that says how to write the file again.
        entries = stored["data"]
        if 4 * entries.size * entries.dtype.itemsize <= memory:
            stored = sparse_by_rows(read_elem(stored))
    return as_matrix(stored)


def _check_length(path: Path, frame: "pd.DataFrame | None", size: int) -> None:
    """Raise unless a frame has a line for each row, or column, of the matrix."""
    if frame is not None and len(frame) != size:
        raise damaged(path, f"{len(frame):,} names are for {size:,} lines")


def _notes_on_counts(
    X: Matrix, path: Path, layer: _Layer, is_logged: bool
) -> list[Note]:
    """Warn of counts that were changed: in others, cells of a type are no multiples."""
    from ihgmm.numerics.whitening import preparation_of_counts

    change = preparation_of_counts(X, is_logged)
    if change is None:
        return []

    untouched = [name for name in ("counts", "raw") if name in layer.others]
    other_layer = untouched[0] if untouched else None
    return [notes.changed_counts(path, layer.name, change, other_layer)]


def _wants_symbols(names: Sequence[str], request: Request) -> bool:
    """Return whether genes go by ids of Ensembl that nobody asks for."""
    # Ids that are asked for, or that a model knows, stay.
    features = request.features or ()
    asked_for = {*request.columns, *request.drop_columns, *features}
    return names[0].startswith("ENS") and not asked_for.intersection(names)


def _with_symbols(
    names: list[str], var: "pd.DataFrame"
) -> tuple[list[str], list[Note]]:
    """Return names of genes in the place of their ids, if there are any, with notes."""
    columns = [name for name in SYMBOLS if name in var]
    if not columns:
        return names, []
    symbols = unique_names([str(symbol) for symbol in var[columns[0]]])
    return symbols, [notes.names_of_genes(quote(columns[0]))]


@contextmanager
def _memory_for(path: Path) -> Iterator[None]:
    """Let the system refuse memory beyond what a file of this size needs, on Linux."""
    # HDF5 takes the up to 4 GB that a damaged text claims, before it looks for them.
    if sys.platform != "linux":
        yield
        return
    import resource

    data_pages = int(Path("/proc/self/statm").read_text().split()[5])
    in_use = data_pages * resource.getpagesize()
    needed = in_use + 2**29 + 1000 * path.stat().st_size

    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limits = [limit for limit in (needed, soft, hard) if limit >= 0]  # -1: none
    resource.setrlimit(resource.RLIMIT_DATA, (min(limits), hard))

    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _is_foreign(file: "h5py.File") -> bool:
    """Return whether a file takes parts from others: a stranger's could name any."""
    import h5py

    places: list[str] = []
    file.visit_links(places.append)

    is_foreign = False
    for place in places:
        link = file.get(place, getlink=True)
        is_foreign |= isinstance(link, h5py.ExternalLink)

        stored = file[place] if isinstance(link, h5py.HardLink) else None
        if isinstance(stored, h5py.Dataset):
            check_claim(stored)
            is_foreign |= stored.is_virtual or bool(stored.external)
    return is_foreign
