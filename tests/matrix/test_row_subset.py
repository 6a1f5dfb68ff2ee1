"""A subset of rows gives the same parts, positions and spread values as NumPy."""

import numpy as np
import pytest
from array_kinds import FAMILIES, opened
from numpy.testing import assert_array_equal

from ihgmm.matrix import RowSubset, to_host

KINDS = [family[0] for family in FAMILIES]
ENTRIES = np.arange(1.0, 49.0).reshape(12, 4)
VALUES = np.arange(12.0)
IS_MEMBER = VALUES % 3 > 0
IS_LEFT_OUT = VALUES > 8


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_some_rows_of_any_kind_of_array(kind, tmp_path):
    X = opened(kind(ENTRIES, tmp_path))
    subset = RowSubset.where(X, IS_MEMBER)

    selected = subset.select(X.to_device(VALUES))
    scattered = subset.scatter(selected, X.to_device(-VALUES))

    assert not subset.is_everything
    assert_array_equal(subset.positions(), np.flatnonzero(IS_MEMBER))
    assert_array_equal(subset.matrix(X).toarray(), ENTRIES[IS_MEMBER])
    assert_array_equal(to_host(selected), VALUES[IS_MEMBER])
    assert_array_equal(to_host(scattered), np.where(IS_MEMBER, VALUES, -VALUES))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_all_rows_are_passed_on_as_they_are(kind, tmp_path):
    X = opened(kind(ENTRIES, tmp_path))
    subset = RowSubset.where(X, np.ones(12, dtype=bool))
    values = X.to_device(VALUES)

    assert subset.is_everything
    assert subset.matrix(X) is X
    assert subset.select(values) is values
    assert subset.scatter(values) is values
    assert_array_equal(subset.positions(), np.arange(12))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_rows_are_left_out_of_all_rows_and_of_some(kind, tmp_path):
    X = opened(kind(ENTRIES, tmp_path))
    is_left_out = X.to_device(IS_LEFT_OUT)

    of_all = RowSubset.everything(X).without(is_left_out)
    of_some = RowSubset.where(X, IS_MEMBER).without(is_left_out)

    is_member_still = IS_MEMBER & ~IS_LEFT_OUT

    assert_array_equal(of_all.positions(), np.flatnonzero(~IS_LEFT_OUT))
    assert_array_equal(of_some.positions(), np.flatnonzero(is_member_still))
