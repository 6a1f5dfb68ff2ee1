"""What belongs to rows goes with them: through every view of every kind, and two."""

from itertools import product

import numpy as np
import pytest
from array_kinds import FAMILIES, opened
from numpy.testing import assert_allclose, assert_array_equal

from ihgmm import IhGMM, IhSC, SphericalKMeans, estimate_parameters, make_ihgmm
from ihgmm.matrix import Scaled, Shifted, Stretched, as_matrix, filled, to_host
from ihgmm.numerics.sign_flips import flip_signs

KINDS = [kind for family in FAMILIES for kind in family[:2]]
N = 60
P = 8
UNIT = 2.0**40
RNG = np.random.default_rng(0)
ENTRIES = RNG.integers(1, 9, (N, P)).astype(float)
HIDDEN = RNG.random((N, P)) < 0.1
WEIGHTS = RNG.integers(1, 4, N).astype(float)
ROWS = 2.0 ** RNG.integers(-3, 4, N)
COLUMNS = 2.0 ** RNG.integers(-3, 4, P)
SOME = np.flatnonzero(RNG.random(N) < 0.7)
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
        gaps = None if self.incomplete is None else change(self.incomplete)
        return Oracle(change(self.complete), gaps, change(self.redrawn), self.weights)


def scaled(X, known):
    rows = ROWS[: X.shape[0]]
    columns = COLUMNS
    view = Scaled(X, X.to_device(rows), columns)
    return view, known.mapped(lambda D: D * rows[:, None] * columns)


def chosen(X, known):
    rows = SOME[X.shape[0] > SOME]
    second = known.mapped(lambda D: D[rows])
    parts = second.complete, second.incomplete, second.redrawn
    return X.keep_rows(rows), Oracle(*parts, known.weights[rows])


def shifted(X, known):
    return Shifted(X, COLUMNS), known.mapped(lambda D: D - COLUMNS)


def stretched(X, known):
    change = np.eye(P) + B @ np.diag(FACTORS - 1) @ B.T
    second = known.mapped(lambda D: D @ change)
    second.incomplete = None  # cells of a row mix
    return Stretched(X, B, FACTORS), second


def rescaled(X, known):
    return X.rescaled(2.0**-5), known


VIEWS = (scaled, chosen, shifted, stretched, rescaled)


def held(kind, folder):
    """Return rows with weights, a unit and filled cells, and what they should be."""
    gaps = np.where(HIDDEN, np.nan, ENTRIES) * 2.0**3
    X = opened(kind(gaps, folder)).weighted(WEIGHTS).rescaled(1 / UNIT)
    X = filled(X, constant(7 * 2.0**3 / X.unit), draw)
    known_labels = [np.where(HIDDEN, value, ENTRIES) * 2.0**3 for value in (7, 10)]
    return X, Oracle(known_labels[0], gaps, known_labels[1], WEIGHTS)


def check(X, known):
    in_units = {"rtol": 1e-12}

    assert X.shape == known.complete.shape

    D = known.complete
    square = X.unit**2
    W = np.arange(1.0, P + 1)[:, None]
    V = np.arange(1.0, len(D) + 1)[:, None]
    for result, expected in (
        (X.toarray() * X.unit, D),
        (X.weights, known.weights),
        (to_host(X.sqnorms) * square, (D**2).sum(axis=1)),
        ((X @ W) * X.unit, D @ W),
        (X.adjoint(V) * X.unit, D.T @ V),
        (X.gram_product(W) * square, D.T @ (D @ W)),
        (X.gram_product(W, X.to_device(V[:, 0])) * square, (D * V).T @ (D * V @ W)),
        (X.row_sqnorms(W[:, 0]) * square, D**2 @ W[:, 0]),
        (X.column_sqnorms() * square, (D**2).sum(axis=0)),
        (X.max_abs() * X.unit, np.abs(D).max()),
        (X.to_memory().toarray() * X.unit, D),
    ):
        assert_allclose(to_host(result), expected, **in_units)

    assert_allclose(X.most_negative() * X.unit, min(D.min(), 0), atol=1e-9)

    if known.incomplete is None:
        assert X.incomplete is None
    else:
        gaps = X.incomplete
        assert_allclose(gaps.toarray() * gaps.unit, known.incomplete, **in_units)
        n_missing = X.incomplete.missing().column_sqnorms()
        assert_array_equal(n_missing, np.isnan(known.incomplete).sum(axis=0))
    drawn = X.gaps.redraw(3, None)

    assert_allclose(drawn.toarray() * drawn.unit, known.redrawn, **in_units)

    rows = np.array([1, 4, 9])
    drawn = X.gaps.redraw(3, rows)

    assert_allclose(drawn.toarray() * drawn.unit, known.redrawn[rows], **in_units)

    # Rows that are taken, and blocks that work gets, are in the same unit.
    selected = X.take(rows)

    assert_allclose(
        selected.toarray() * selected.unit, known.complete[rows], **in_units
    )

    blocks = [(block.toarray(), block.unit) for block in X.map(lambda block: block)]
    for entries, unit in blocks:
        assert unit == X.unit
        assert np.isfinite(entries).all()
    sample = selected.to_memory()  # as they are counted
    flipped = flip_signs(sample, np.random.default_rng(0))

    assert flipped.unit == X.unit
    assert_allclose(np.abs(flipped.toarray()), np.abs(selected.toarray()))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize(
    ("inner", "outer"),
    [(None, None), *product((*VIEWS, None), VIEWS)],
    ids=lambda view: getattr(view, "__name__", "-"),
)
def test_views_of_every_kind(kind, inner, outer, tmp_path):
    X, known_labels = held(kind, tmp_path)
    for view in filter(None, (inner, outer)):
        X, known_labels = view(X, known_labels)
    check(X, known_labels)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_matrices_do_not_change(kind, tmp_path):
    X, known_labels = held(kind, tmp_path)
    for matrix in (
        X,
        X.take(slice(0, 3)),
        *(view(X, known_labels)[0] for view in VIEWS),
    ):
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
    tiny = fit(X, weights, labels)
    name = "centers" if hasattr(baseline, "centers") else "cluster_centers_"
    sizes = [np.linalg.norm(getattr(model, name)) for model in (baseline, tiny)]

    assert sizes[1] == pytest.approx(sizes[0], rel=0.1)

    if hasattr(baseline, "noise_levels_"):
        levels = [np.nanmedian(model.noise_levels_) for model in (baseline, tiny)]
        assert levels[1] == pytest.approx(levels[0], rel=0.1)
