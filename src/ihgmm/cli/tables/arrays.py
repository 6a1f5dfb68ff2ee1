"""Arrays in files: NumPy's, sparse ones, and AnnData files with names beside them."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ihgmm.cli.tables import table as tb
from ihgmm.cli.tables.columns import beside_rows
from ihgmm.cli.tables.loading import check_size, damaged, explain_damage
from ihgmm.cli.tables.table import Request, Table, quote
from ihgmm.matrix import as_matrix
from ihgmm.matrix.hdf5_zarr import check_claim

# Columns of var that hold symbols of genes, as programs write them.
SYMBOLS = (
    *("gene_symbols", "feature_name", "gene_symbol", "gene_name", "symbol"),
    *("gene_short_name", "hgnc_symbol", "external_gene_name"),
)
BY_BLOCKS = "The data are read block by block."


def read_array(path: Path, request: Request) -> Table:
    """Read an array, a scipy.sparse matrix, or the X or only array of an archive."""
    is_sparse = False
    with explain_damage(path), path.open("rb") as file:
        is_archive = file.peek(2)[:2] == b"PK"
        # NumPy leaves an archive that it opened itself open where it is cut off.
        whence = file if is_archive else path
        X: Any = np.load(whence, mmap_mode="r", allow_pickle=False)
        if is_archive:
            with X as archive:
                names = archive.files
                is_sparse = "format" in names and "X" not in names
                if not (is_sparse or "X" in names or len(names) == 1):
                    own = f"of its arrays, {tb.quote_all(names)}, none is X"
                    if "header.json" in names:
                        own = "it is a saved model; give the data that it is for"
                    raise ValueError(own)
                if not is_sparse:  # a member that is no array comes as bytes
                    X = np.asarray(archive["X" if "X" in names else names[0]])
        X = sp.load_npz(path) if is_sparse else X
    if is_sparse:
        check_size(path, request, 8 * sum(X.shape))  # also of rows without entries
        with explain_damage(path):
            X = _by_rows(X)
    if X.ndim != 2 or 0 in X.shape or X.dtype.kind not in "fiub":
        has = f"shape {X.shape} and {X.dtype} entries"
        raise ValueError(f"{path} has {has}; give real numbers, rows by columns.")
    may_stay = not (is_archive or request.transpose) and X.flags.c_contiguous
    if may_stay and X.nbytes > request.memory:
        return array_table(request, as_matrix(X), notes=[BY_BLOCKS])
    X = X.T if request.transpose else X
    kind = X.dtype if X.dtype in (np.float32, np.float64) else np.float64
    X = sp.csr_array(X, dtype=kind) if is_sparse else np.array(X, kind)
    return array_table(request, X, is_sparse=is_sparse)


def _by_rows(X: Any) -> Any:
    """Return a sparse matrix by rows; places beyond it would crash later."""
    if hasattr(X, "check_format"):
        X.check_format(full_check=True)
    return sp.csr_array(X)


def array_table(
    request: Request, X: Any, obs: Any = None, notes: Sequence[str] = (), **more: Any
) -> Table:
    """Return a table of an array; a frame ``obs`` may tell about its rows."""
    places, source = np.arange(1, X.shape[0] + 1), request.source
    names, where = [], f"beside its features, {source}"
    rows: tuple[Any, ...] = (places,)
    if obs is not None:
        names, where = list(obs.columns), f"obs of {source}"
        rows = np.array(obs.index, object), obs.index.name or "obs_name"
    request, told = request.resolve(names)
    request.check(names, where, *tb.BESIDE.values())
    about = beside_rows(obs, request, *rows) | {"notes": [*notes, *told]} | more
    return request.select(Table(source, X, **about, places=places))


def read_h5ad(path: Path, request: Request) -> Table:
    """Read X or a layer, or leave it on disk if there is no room for it."""
    import h5py
    from anndata.io import read_elem

    from ihgmm.numerics.whitening import preparation_of_counts

    with explain_damage(path), _memory_for(path):
        file = h5py.File(path, "r")
        is_old = "obs" in file and not hasattr(file["obs"], "keys")
        is_unfit = _is_foreign(file) or is_old
        layers = {"X": "X", "raw": "raw/X"}
        layers |= {name: f"layers/{name}" for name in file.get("layers", ())}
        layers = {name: place for name, place in layers.items() if place in file}
    if is_unfit:
        raise ValueError(
            f"{path} takes parts from other files, and could name any of yours, or is "
            "of anndata before 0.7. If you trust it, write it again with its data: "
            "anndata.read_h5ad(FILE).write_h5ad(NEW_FILE)."
        )
    of_fit = getattr(request.fit, "layer", None)
    layer = request.layer or of_fit or "X"
    other = request.layer is None and of_fit is not None
    option = "give --layer; that of the fit was" if other else "--layer"
    tb.check_there(option, layer, list(layers), str(path), "layer")
    with explain_damage(path), _memory_for(path):
        place = "raw/var" if layer == "raw" else "var"
        obs: Any = read_elem(file["obs"]) if "obs" in file else None
        var: Any = read_elem(file[place]) if place in file else None
        stored = file[layers[layer]]
        if stored.attrs.get("encoding-type") == "csc_matrix":
            # Beside each entry stands its place; for a while there are two copies. What
            # has no room stays, for the message that says how to write the file again.
            entries = stored["data"]
            if 4 * entries.size * entries.dtype.itemsize <= request.memory:
                stored = _by_rows(read_elem(stored))
        X = as_matrix(stored)
    for frame, size in ((obs, X.shape[0]), (var, X.shape[1])):
        if frame is not None and len(frame) != size:
            raise damaged(path, f"{len(frame):,} names are for {size:,} lines")
    notes = [f"Took layer {quote(layer)}, as the fit did."] * other
    # Cells of a type are multiples of one pattern in counts, and in nothing else.
    kind = preparation_of_counts(X, "uns/log1p" in file and layer == "X")
    if kind is not None and request.features is None:  # which are those of a model
        others = [name for name in ("counts", "raw") if name in layers.keys() - {layer}]
        text = f"{layer} of {path} is {kind}: cells of a type are then no multiples of "
        text += "one pattern. "
        undo = ", or undo the logarithm: np.expm1" * (kind == "logged")
        remedy = f"Give counts{undo}."
        for name in others[:1]:
            remedy = f"If {name} has counts, take it: --layer {name}."
        notes.append(tb.Warned(text + remedy))
    # Beside each entry of a sparse matrix stands its place.
    stays = X.n_entries * X.dtype.itemsize * (2 if X.sparse else 1) > request.memory
    if stays:
        notes.insert(0, BY_BLOCKS)
    names = None if var is None else list(map(str, var.index))
    asked = {*request.columns, *request.drop_columns, *(request.features or ())}
    # Ids that are asked for, or that a model knows, stay.
    if names and names[0][:3] == "ENS" and not asked.intersection(names):
        for column in [name for name in SYMBOLS if name in var][:1]:
            names = tb.unique_names(list(map(str, var[column])))
            notes.append(f"Took names of genes from {quote(column)} of var.")
    data: Any = X if stays else X.to_memory().array
    return array_table(request, data, obs, notes, names=names, is_sparse=X.sparse)


@contextmanager
def _memory_for(path: Path) -> Iterator[None]:
    """Let the system refuse memory beyond what a file of this size needs, on Linux."""
    # HDF5 takes the up to 4 GB that a damaged text claims, before it looks for them.
    if sys.platform != "linux":
        yield
        return
    import resource

    pages = int(Path("/proc/self/statm").read_text().split()[5])  # of data
    before = soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    most = pages * resource.getpagesize() + 2**29 + 1000 * path.stat().st_size
    most = min(bound for bound in (most, soft, hard) if bound >= 0)  # -1: there is none
    resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)


def _is_foreign(file: Any) -> bool:
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
