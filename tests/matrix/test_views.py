"""What belongs to rows goes with them: through every view of every kind, and two."""

from itertools import product

import numpy as np
import pytest
from array_kinds import FAMILIES, csr, memory_map, numpy_c, opened
from numpy.testing import assert_allclose, assert_array_equal

from ihgmm import IhGMM, IhSC, SphericalKMeans, estimate_parameters, make_ihgmm
from ihgmm.matrix import (
    Rooted,
    Scaled,
    Shifted,
    Stretched,
    as_matrix,
    filled,
    to_host,
)

KINDS = [kind for family in FAMILIES for kind in family[:2]]
N = 60
P = 8
UNIT = 2.0**40
RNG = np.random.default_rng(0)
ENTRIES = RNG.integers(1, 9, (N, P)).astype(float)
IS_HIDDEN = RNG.random((N, P)) < 0.1
WEIGHTS = RNG.integers(1, 4, N).astype(float)
ROW_SCALES = 2.0 ** RNG.integers(-3, 4, N)
COLUMN_SCALES = 2.0 ** RNG.integers(-3, 4, P)
KEPT_ROWS = np.flatnonzero(RNG.random(N) < 0.7)
B = np.eye(P)[:, [1, 4]]
FACTORS = np.array([4.0, 0.5])


def constant(value):
    """Fill in a number: 7 by the model, more by a seed; in units of the data."""

    def fill(rows):
        host = to_host(rows)
        complete = np.where(np.isnan(host), host.dtype.type(value), host)
        return as_matrix(rows).ops.cast_like(complete, rows)

    return fill


def draw(X, seed):
    return filled(X, constant((7 + seed) * 2.0**3 / X.unit))


class Oracle:
    """Dense rows in the units of the data, and what belongs to them."""

    def __init__(self, complete, incomplete, redrawn, weights):
        self.complete = complete
        self.incomplete = incomplete
        self.redrawn = redrawn
        self.weights = weights / weights.mean()

    def mapped(self, change):
        incomplete = None if self.incomplete is None else change(self.incomplete)
        return Oracle(
            complete=change(self.complete),
            incomplete=incomplete,
            redrawn=change(self.redrawn),
            weights=self.weights,
        )


def scaled(X, oracle):
    rows = ROW_SCALES[: X.shape[0]]
    columns = COLUMN_SCALES
    view = Scaled(X, X.to_device(rows), columns)
    return view, oracle.mapped(lambda D: D * rows[:, None] * columns)


def chosen(X, oracle):
    rows = KEPT_ROWS[X.shape[0] > KEPT_ROWS]
    mapped = oracle.mapped(lambda D: D[rows])
    oracle_of_kept = Oracle(
        complete=mapped.complete,
        incomplete=mapped.incomplete,
        redrawn=mapped.redrawn,
        weights=oracle.weights[rows],
    )
    return X.keep_rows(rows), oracle_of_kept


def shifted(X, oracle):
    return Shifted(X, COLUMN_SCALES), oracle.mapped(lambda D: D - COLUMN_SCALES)


def stretched(X, oracle):
    change = np.eye(P) + B @ np.diag(FACTORS - 1) @ B.T
    mapped = oracle.mapped(lambda D: D @ change)
    mapped.incomplete = None  # cells of a row mix
    return Stretched(X, B, FACTORS), mapped


def rooted_rows(X, oracle):
    def rooted_entries(D):
        return np.sign(D) * np.sqrt(np.abs(D))

    return Rooted(X), oracle.mapped(rooted_entries)


def rescaled(X, oracle):
    return X.rescaled(2.0**-5), oracle


VIEWS = (scaled, chosen, shifted, stretched, rooted_rows, rescaled)


def held(kind, folder):
    """Return rows with weights, a unit and filled cells, and what they should be.

    Opposite rows are of one kind.
    """
    incomplete = np.where(IS_HIDDEN, np.nan, ENTRIES) * 2.0**3
    X = opened(kind(incomplete, folder)).with_signed(True).weighted(WEIGHTS)
    X = X.rescaled(1 / UNIT)
    X = filled(X, constant(7 * 2.0**3 / X.unit), draw)
    oracle = Oracle(
        complete=np.where(IS_HIDDEN, 7, ENTRIES) * 2.0**3,
        incomplete=incomplete,
        redrawn=np.where(IS_HIDDEN, 10, ENTRIES) * 2.0**3,
        weights=WEIGHTS,
    )
    return X, oracle


def check(X, oracle):
    tolerance = {"rtol": 1e-12}
    D = oracle.complete
    squared_unit = X.unit**2
    W = np.arange(1.0, P + 1)[:, None]
    V = np.arange(1.0, len(D) + 1)[:, None]

    assert X.shape == D.shape
    assert X.signed

    for result, expected in (
        (X.toarray() * X.unit, D),
        (X.weights, oracle.weights),
        (to_host(X.sqnorms) * squared_unit, (D**2).sum(axis=1)),
        ((X @ W) * X.unit, D @ W),
        (X.adjoint(V) * X.unit, D.T @ V),
        (X.gram_product(W) * squared_unit, D.T @ (D @ W)),
        (
            X.gram_product(W, X.to_device(V[:, 0])) * squared_unit,
            (D * V).T @ (D * V @ W),
        ),
        (X.row_sqnorms(W[:, 0]) * squared_unit, D**2 @ W[:, 0]),
        (X.column_sqnorms() * squared_unit, (D**2).sum(axis=0)),
        (X.max_abs() * X.unit, np.abs(D).max()),
        (X.to_memory().toarray() * X.unit, D),
    ):
        assert_allclose(to_host(result), expected, **tolerance)

    assert_allclose(X.most_negative() * X.unit, min(D.min(), 0), atol=1e-9)

    if oracle.incomplete is None:
        assert X.incomplete is None
    else:
        gaps = X.incomplete
        assert gaps.signed
        assert_allclose(gaps.toarray() * gaps.unit, oracle.incomplete, **tolerance)
        n_missing = gaps.missing().column_sqnorms()
        assert_array_equal(n_missing, np.isnan(oracle.incomplete).sum(axis=0))

    drawn = X.gaps.redraw(3, None)

    assert drawn.signed
    assert_allclose(drawn.toarray() * drawn.unit, oracle.redrawn, **tolerance)

    rows = np.array([1, 4, 9])
    drawn = X.gaps.redraw(3, rows)

    assert drawn.signed
    assert_allclose(drawn.toarray() * drawn.unit, oracle.redrawn[rows], **tolerance)

    # Rows that are taken, and blocks that work gets, are in the same unit.
    selected = X.take(rows)

    assert selected.signed
    assert_allclose(selected.toarray() * selected.unit, D[rows], **tolerance)

    for block in X.map(lambda block: block):
        assert block.unit == X.unit
        assert block.signed
        assert np.isfinite(block.toarray()).all()

    in_memory = selected.to_memory()  # as they are counted

    assert in_memory.unit == X.unit
    assert in_memory.signed
    assert_allclose(in_memory.toarray(), selected.toarray())


def views_in_turn():
    """Return each kind with views, and with views of these.

    How two views go together is theirs to know: dense rows, sparse ones and those on
    disk have all pairs. How a kind is viewed is its own: each of the others has every
    view once inside and once outside, in pairs that differ from kind to kind.
    """
    cases = []
    inner_views = (None, *VIEWS)
    for number, kind in enumerate(KINDS):
        pairs = list(product(inner_views, VIEWS))
        if kind not in (numpy_c, csr, memory_map):
            outer_views = [VIEWS[(number + i) % len(VIEWS)] for i in range(len(pairs))]
            pairs = list(zip(inner_views, outer_views, strict=False))
        cases += [(kind, inner, outer) for inner, outer in ((None, None), *pairs)]
    return cases


@pytest.mark.parametrize(
    ("kind", "inner", "outer"),
    views_in_turn(),
    ids=lambda value: getattr(value, "__name__", "-"),
)
def test_views_of_every_kind(kind, inner, outer, tmp_path):
    X, oracle = held(kind, tmp_path)

    for view in filter(None, (inner, outer)):
        X, oracle = view(X, oracle)

    check(X, oracle)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.__name__)
def test_what_is_said_of_a_view_goes_with_it(kind, view, tmp_path):
    matrix, oracle = held(kind, tmp_path)
    X, _ = view(matrix, oracle)
    X = X.with_signed(False).weighted(np.arange(1.0, X.shape[0] + 1))
    weights = to_host(X.weights)
    rows = np.array([1, 4, 9])

    in_another_unit = X.rescaled(2.0**-5)
    kept = X.keep_rows(rows)

    assert_array_equal(to_host(in_another_unit.weights), weights)
    assert_allclose(to_host(kept.weights), weights[rows] / weights[rows].mean())
    for part in (in_another_unit, kept, X.take(rows), X.copy_rows(rows), X.to_memory()):
        assert not part.signed


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_matrices_do_not_change(kind, tmp_path):
    X, oracle = held(kind, tmp_path)
    views = [view(X, oracle)[0] for view in VIEWS]

    for matrix in (X, X.take(slice(0, 3)), *views):
        with pytest.raises(AttributeError, match="unit cannot be set"):
            matrix.unit = 2.0
        with pytest.raises(AttributeError, match="A matrix does not change"):
            matrix.verbose = True


@pytest.mark.filterwarnings("ignore:1 of 1")
@pytest.mark.parametrize(
    "fit",
    [
        lambda X, w, _: IhSC(3, random_state=0).fit(X, sample_weight=w),
        lambda X, w, _: IhGMM(3, random_state=0).fit(X, sample_weight=w),
        lambda X, w, _: IhSC(3, recipe="psc", random_state=0).fit(X, sample_weight=w),
        lambda X, w, _: SphericalKMeans(3, random_state=0).fit(X, sample_weight=w),
        lambda X, w, labels: estimate_parameters(X, labels, sample_weight=w),
    ],
    ids=["IhSC", "IhGMM", "psc", "SphericalKMeans", "estimate_parameters"],
)
def test_centers_keep_their_unit_when_a_row_is_tiny_and_another_does_not_count(fit):
    X, labels = make_ihgmm(120, 30, 3, scale_ratio=2, random_state=0)
    X = X.astype(np.float32)
    weights = np.ones(120)
    weights[7] = 0.0

    baseline = fit(X, weights, labels)
    X[11] *= np.float32(1e-22)
    model_of_tiny = fit(X, weights, labels)

    name = "centers" if hasattr(baseline, "centers") else "cluster_centers_"
    norms = [
        np.linalg.norm(getattr(model, name)) for model in (baseline, model_of_tiny)
    ]

    assert norms[1] == pytest.approx(norms[0], rel=0.1)

    if hasattr(baseline, "noise_levels_"):
        levels = [
            np.nanmedian(model.noise_levels_) for model in (baseline, model_of_tiny)
        ]
        assert levels[1] == pytest.approx(levels[0], rel=0.1)
