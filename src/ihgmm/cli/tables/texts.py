"""Texts: how often each has which words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import scipy.sparse as sp

LEAST = 2  # texts that have a word; in one alone, it says nothing about others


def count_words(
    texts: Sequence[str], words: Sequence[str] | None = None
) -> tuple[Any, list[str]]:
    """Return how often each text has each word, as a sparse matrix, and the words.

    They are those given, or all that are in at least ``LEAST`` texts. A word has two
    letters or digits at least, and its case does not matter. Stop words stay: what to
    leave out depends on the language, and rarity weighs them down.
    """
    from sklearn.feature_extraction.text import CountVectorizer

    counter = CountVectorizer(vocabulary=words, min_df=LEAST, dtype=float)
    counts = counter.fit_transform(texts)
    return sp.csr_array(counts), counter.get_feature_names_out().tolist()
