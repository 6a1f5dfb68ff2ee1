"""Arrays in files: NumPy's, sparse ones, and AnnData files with names beside them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ihgmm.cli.tables.columns import beside_rows
from ihgmm.cli.tables.loading import check_size, damaged, explain_damage
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
from ihgmm.matrix.formats import check_claim

# Columns of var that hold symbols of genes, as programs write them.
SYMBOLS = (
    *("gene_symbols", "feature_name", "gene_symbol", "gene_name", "symbol"),
    *("gene_short_name", "hgnc_symbol", "external_gene_name"),
)
BY_BLOCKS = Note("The data are read block by block.")


def read_array(path: Path, request: Request) -> Table:
    """Read an array, a scipy.sparse matrix, or the only array of an archive, or its X.

    A single array stays on disk if there is no room for it.
    """
    names: list[str] = []
    is_sparse = False
    with explain_damage(path), path.open("rb") as file:
        is_archive = file.read(2) == b"PK"
        file.seek(0)
        # NumPy leaves an archive that it opened itself open where it is cut off.
        whence = file if is_archive else path
        X: Any = np.load(whence, mmap_mode="r", allow_pickle=False)
        if is_archive:
            with X as archive:
                names = archive.files
                is_sparse = "format" in names and "X" not in names
                if not (is_sparse or "X" in names or len(names) == 1):
                    raise ValueError(f"of its arrays, {quote_all(names)}, none is X")
                if not is_sparse:  # a member that is no array comes as bytes
                    X = np.asarray(archive["X" if "X" in names else names[0]])
        if is_sparse:
            X = sp.load_npz(path)
            if hasattr(X, "check_format"):
                X.check_format(full_check=True)  # places beyond X crash later
    if is_sparse:
        check_size(path, request, 8 * sum(X.shape))  # also of rows without entries
        X = sp.csr_array(X)
    if X.ndim != 2 or 0 in X.shape or X.dtype.kind not in "fiub":
        raise ValueError(
            f"{path} has shape {X.shape} and {X.dtype} entries; give real numbers, "
            "rows by columns."
        )
    may_stay = not (names or request.transpose) and X.flags.c_contiguous
    if may_stay and X.nbytes > request.memory:
        return array_table(request, as_matrix(X), notes=[BY_BLOCKS])
    if request.transpose:
        X = sp.csr_array(X.T) if is_sparse else X.T
    kind = X.dtype if X.dtype in (np.float32, np.float64) else np.float64
    X = X.astype(kind) if is_sparse else np.array(X, kind)
    return array_table(request, X, is_sparse=is_sparse)


def array_table(
    request: Request, X: Any, obs: Any = None, notes: Sequence[Note] = (), **more: Any
) -> Table:
    """Return a table of an array; a frame ``obs`` may tell about its rows."""
    columns, source = [] if obs is None else list(obs.columns), request.source
    request, told = request.resolve(columns)
    where = f"beside its features, {source}" if obs is None else f"obs of {source}"
    request.check(columns, where, *BESIDE.values())
    places = ids = np.arange(1, X.shape[0] + 1)
    id_name = "row"
    if obs is not None:
        ids, id_name = np.array(obs.index, object), obs.index.name or "obs_name"
    about = beside_rows(obs, request, ids, id_name) | more
    notes = [*notes, *told]
    return request.select(Table(source, X, **about, places=places, notes=notes))


def read_h5ad(path: Path, request: Request) -> Table:
    """Read X or a layer, or leave it on disk if there is no room for it."""
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
    if foreign or is_old:
        raise ValueError(
            f"{path} takes parts from other files, and could name any of yours, or is "
            "of anndata before 0.7. If you trust it, write it again with its data: "
            "anndata.read_h5ad(FILE).write_h5ad(NEW_FILE)."
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
        X = as_matrix(_by_rows(file[layers[layer]], request.memory))
    for frame, size in ((obs, X.shape[0]), (var, X.shape[1])):
        if frame is not None and len(frame) != size:
            raise damaged(
                path, f"{len(frame):,} names are for {size:,} rows or columns"
            )
    notes = []
    if request.layer is None and of_fit is not None:
        notes.append(Note(f"Took layer {quote(layer)}, as the fit did."))
    # Cells of a type are multiples of one pattern in counts, and in nothing else.
    kind = preparation_of_counts(X, "uns/log1p" in file and layer == "X")
    if kind is not None and request.features is None:  # which are those of a model
        others = [name for name in ("counts", "raw") if name in layers.keys() - {layer}]
        text = f"{layer} of {path} is {kind}: cells of a type are then no multiples"
        cure = f"If there are counts, take them: --layer {[*others, 'LAYER'][0]}."
        notes.append(Note(f"{text} of one pattern.", cure, loud=True))
    # Beside each entry of a sparse matrix stands its place.
    stays = X.n_entries * X.dtype.itemsize * (2 if X.sparse else 1) > request.memory
    if stays:
        notes.insert(0, BY_BLOCKS)
    names = None if var is None else list(map(str, var.index))
    asked = {*request.columns, *request.drop_columns, *(request.features or ())}
    # Ids that are asked for, or that a model knows, stay.
    if names and names[0][:3] == "ENS" and not asked.intersection(names):
        for column in [name for name in SYMBOLS if name in var][:1]:
            names = unique_names(list(map(str, var[column])))
            notes.append(Note(f"Took names of genes from {quote(column)} of var."))
    data: Any = X if stays else X.to_memory().array  # type: ignore[attr-defined]
    is_sparse = X.sparse
    return array_table(request, data, obs, notes, names=names, is_sparse=is_sparse)


def _by_rows(stored: Any, memory: float) -> Any:
    """Return what is stored by columns (CSC) by rows, if it fits in memory."""
    from anndata.io import read_elem

    if stored.attrs.get("encoding-type") != "csc_matrix":
        return stored
    # Beside each entry stands its place; for a while there are two copies.
    if 4 * stored["data"].size * stored["data"].dtype.itemsize > memory:
        return stored  # for the message that says how to write the file again
    X: Any = read_elem(stored)
    X.check_format(full_check=True)  # places beyond X crash later
    return sp.csr_array(X)


def _foreign_parts(file: Any) -> list[str]:
    """Return what a file takes from others: one from a stranger could name any."""
    import h5py

    places: list[str] = []
    file.visit_links(places.append)
    links = {place: file.get(place, getlink=True) for place in places}
    foreign = [p for p in places if isinstance(links[p], h5py.ExternalLink)]
    hard = [p for p in places if isinstance(links[p], h5py.HardLink)]
    stored = {p: file[p] for p in hard if isinstance(file[p], h5py.Dataset)}
    for array in stored.values():
        check_claim(array)
    return foreign + [p for p, d in stored.items() if d.is_virtual or d.external]


def free_memory() -> float:
    """Return the bytes of memory that this process could have, as far as is known."""
    free = [8e9]  # of a small machine
    with suppress(OSError, ValueError, IndexError):  # as Linux tells it
        info = Path("/proc/meminfo").read_text()
        free = [1024 * int(info.partition("MemAvailable:")[2].split()[0])]
    with suppress(OSError, ValueError):  # what a container may have
        names = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current")
        most, used = (int(Path(name).read_text()) for name in names)
        free.append(most - used)
    return max(0.0, min(free))
