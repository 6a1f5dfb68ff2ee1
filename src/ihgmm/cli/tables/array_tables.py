"""Tables of arrays, whose columns need not be chosen."""

from dataclasses import replace

import numpy as np

from ihgmm.cli.tables.columns.beside import row_facts
from ihgmm.cli.tables.files.raw_table import RawArray
from ihgmm.cli.tables.request import BESIDE, Request
from ihgmm.cli.tables.table import Table


def array_table(raw: RawArray, request: Request) -> Table:
    """Return a table of an array; a frame may tell about its rows."""
    places = np.arange(1, raw.X.shape[0] + 1)
    ids = places
    id_name = "row"
    names_beside: list[str] = []
    where = f"beside its features, {request.source}"

    if raw.obs is not None:
        ids = np.array(raw.obs.index, object)
        id_name = raw.obs.index.name or "obs_name"
        names_beside = list(raw.obs.columns)
        where = f"obs of {request.source}"

    request, notes_on_fit = request.resolve(names_beside)
    request.check(names_beside, where, BESIDE)
    rows = row_facts(raw.obs, request, ids=ids, places=places, id_name=id_name)
    if raw.labels is not None:
        rows = replace(rows, labels=raw.labels)

    table = Table(
        source=request.source,
        X=raw.X,
        rows=rows,
        names=raw.names,
        notes=[*raw.notes, *notes_on_fit],
        is_sparse=raw.is_sparse,
        is_mixed=raw.is_mixed,
    )
    return request.select(table)
