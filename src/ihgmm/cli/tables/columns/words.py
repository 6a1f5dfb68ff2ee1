"""Texts: a column of them becomes a table of the words that they have."""

from dataclasses import replace

import scipy.sparse as sp

from ihgmm.cli.tables import notes
from ihgmm.cli.tables.columns.judging import judge_column
from ihgmm.cli.tables.files.raw_table import RawTable
from ihgmm.cli.tables.names import quote
from ihgmm.cli.tables.request import BESIDE, Request
from ihgmm.cli.tables.table import Note, RowFacts, Table


def table_of_words(
    raw: RawTable, request: Request, rows: RowFacts, messages: list[Note]
) -> Table:
    """Make a table of the words of a column of texts; other columns have no part."""
    from sklearn.feature_extraction.text import CountVectorizer

    name = str(request.text_column)
    option = f"--text-column {quote(name)}"

    column = judge_column(name, raw, is_asked=True)
    if not column.is_text or column.texts is None:
        where = f"that column of {request.source}"
        raise ValueError(f"{option}: {where} holds no texts; name another.")

    texts = column.texts.fillna("")
    # A word of one text alone says nothing about others.
    counter = CountVectorizer(vocabulary=request.features, min_df=2, dtype=float)
    try:
        counts = sp.csr_array(counter.fit_transform(texts))  # (n_texts, n_words)
    except ValueError:
        raise ValueError(
            f"{option}: the texts of {request.source} have no word that is in 2 of "
            "them or more; give more texts, or longer ones."
        ) from None

    names_beside = {column_name for _, column_name in request.named_columns(BESIDE)}
    columns_aside = raw.frame.columns.drop([*{name, *names_beside}])

    return Table(
        source=request.source,
        X=counts,
        rows=replace(rows, texts=texts.to_numpy(object)),
        names=counter.get_feature_names_out().tolist(),
        notes=[*notes.how_it_was_read(raw.phrases), *messages],
        is_sparse=True,
        left_out=dict.fromkeys(columns_aside, "beside the texts"),
    )
