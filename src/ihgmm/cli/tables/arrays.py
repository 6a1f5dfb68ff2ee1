"""Arrays in files: NumPy's, sparse ones, and AnnData files with names beside them."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ihgmm.cli.tables.columns import labels_beside
from ihgmm.cli.tables.loading import check_size, explain_damage
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
    names, is_sparse = [], False
    with explain_damage(path), path.open("rb") as file:
        is_archive = file.read(2) == b"PK"
        file.seek(0)
        # NumPy leaves an archive that it opened itself open where it is cut off.
        whence = file if is_archive else path
        X: Any = np.load(whence, mmap_mode="r", allow_pickle=False)
        if is_archive:
            with X as archive:
                names = archive.files
                name = "X" if "X" in names else names[0] if len(names) == 1 else None
                is_sparse = name is None and "format" in names
                # A member that is no array comes as bytes.
                X = None if name is None else np.asarray(archive[name])
        if is_sparse:
            X = sp.load_npz(path)
            if hasattr(X, "check_format"):
                X.check_format(full_check=True)  # places beyond X crash later
    source = request.source
    if X is None:
        raise ValueError(
            f"{source} holds several arrays ({quote_all(names)}); name the data X, or "
            "save it alone."
        )
    if is_sparse:
        check_size(path, request, 8 * sum(X.shape))  # also of rows without entries
        X = sp.csr_array(X)
    if X.ndim != 2:
        raise ValueError(f"{source} has shape {X.shape}; give rows by columns.")
    if 0 in X.shape:
        raise ValueError(f"{source} has shape {X.shape}: there is nothing to cluster.")
    if X.dtype.kind not in "fiub":
        raise ValueError(f"{source} holds {X.dtype} entries; give real numbers.")
    may_stay = not (names or request.transpose) and X.flags.c_contiguous
    if may_stay and X.nbytes > request.memory:
        return request.numbered(as_matrix(X), [BY_BLOCKS])
    if request.transpose:
        X = sp.csr_array(X.T) if is_sparse else X.T
    kind = X.dtype if X.dtype in (np.float32, np.float64) else np.float64
    X = X.astype(kind) if is_sparse else np.array(X, kind)
    return request.numbered(X, is_sparse=is_sparse)


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
        why = "is of anndata before 0.7, whose tables are not read. Write it again"
        if foreign:
            why = f"takes {foreign[0]!r} from other files, and could name any of yours."
            why += " If you trust it, write it again with its data"
        cure = "anndata.read_h5ad(FILE).write_h5ad(NEW_FILE)"
        raise ValueError(f"{path} {why}: {cure}.")
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
        name = request.id_column
        beside["id_name"] = name or obs.index.name or "obs_name"
        beside["ids"] = np.array(obs.index if name is None else obs[name], object)
        beside |= labels_beside(obs, request)
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
    stays = X.n_entries * X.dtype.itemsize * (2 if X.sparse else 1) > request.memory
    if stays:
        notes.insert(0, BY_BLOCKS)
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
