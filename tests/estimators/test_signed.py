import warnings

import numpy as np
import pytest

from ihgmm import IhSC, Recipe, diagnose, make_ihgmm, select_n_clusters
from ihgmm.matrix import HOST
from ihgmm.metrics import misclassification_rate
from ihgmm.numerics.labels import learn_rule


def lines(seed, n=240, p=60, k=4, length=6.0, noise=1.0):
    """Rows along k orthogonal lines, either way."""
    rng = np.random.default_rng(seed)
    centers = length * np.linalg.qr(rng.standard_normal((p, k)))[0].T
    labels = rng.permutation(np.arange(n) % k)
    scales = rng.lognormal(0, 0.5, n) * rng.choice([-1, 1], n)
    X = scales[:, None] * centers[labels] + noise * rng.standard_normal((n, p))
    return X, labels, scales


def signed_fit(X, k=4, **options):
    return IhSC(k, signed=True, random_state=0, **options).fit(X)


@pytest.mark.parametrize("seed", range(2))
def test_opposite_rows_are_of_one_kind(seed):
    X, labels, _ = lines(seed)
    model = signed_fit(X)

    assert misclassification_rate(labels, model.labels_) < 0.06
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    # What a row is does not depend on the way it points.
    np.testing.assert_array_equal(model.predict(-X), model.labels_)


def test_scales_have_both_signs():
    X, _, scales = lines(0, noise=0.1)
    model = signed_fit(X)

    for k in range(4):
        is_member = model.labels_ == k
        member_scales = model.scales_[is_member]
        correlation = np.corrcoef(member_scales, scales[is_member])[0, 1]

        np.testing.assert_allclose(np.abs(member_scales).mean(), 1)
        assert (member_scales > 0).mean() >= 0.5  # the centre is the majority's
        assert abs(correlation) > 0.999

    signal = model.scales_[:, None] * model.cluster_centers_[model.labels_]

    assert np.abs(signal - X).mean() < 0.15
    assert model.score(X) > 0.95


def test_clusters_are_counted_by_their_directions():
    X, *_ = lines(0)
    model = IhSC("auto", signed=True, random_state=0).fit(X)
    count = model.selection_

    assert model.n_clusters_ == count.n_clusters == 4
    assert count.plausible == (4,)

    # A row and its opposite are of one cluster, unless nobody says so.
    assert select_n_clusters(X, random_state=0).n_clusters == 8

    # Rows may be turned round: evidence is that of lines.
    turned = X * np.random.default_rng(1).choice([-1, 1], (len(X), 1))
    count_of_turned = select_n_clusters(turned, signed=True, random_state=0)

    for one, other in zip(count.evidence, count_of_turned.evidence, strict=True):
        assert other.links_inside == pytest.approx(one.links_inside, abs=0.02)
    assert count_of_turned.n_clusters == 4
    assert count_of_turned.lead == pytest.approx(count.lead, abs=0.02)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"recipe": "psc"}, "labels=.* cannot be combined with signed=True"),
        ({"recipe": "paper"}, "labels='kmeans' expects positive scales"),
        ({"recipe": Recipe(unit_norm=False)}, "unit_norm=False expects positive"),
    ],
)
def test_bad_use(options, message):
    with pytest.raises(ValueError, match=message):
        signed_fit(lines(0)[0], 2, **options)


def test_lines_of_many_clusters_are_found():
    rng = np.random.default_rng(0)
    labels = np.arange(200) % 40  # many: squares of 40 directions would be 820 columns
    rows = np.eye(40)[labels] * rng.choice([-1, 1], (200, 1))
    rows = HOST.unit_rows(rows + 0.05 * rng.standard_normal(rows.shape))
    rule = learn_rule([rows], 40, signed=True).rule

    assert misclassification_rate(labels, rule(HOST, rows)) == 0


def with_hint(X, k):
    """Return a fit that knows no signs, and whether it gave the hint."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = IhSC(k, random_state=0).fit(X)
    return model, any("signed=True" in str(warning.message) for warning in caught)


@pytest.mark.parametrize(("seed", "k"), [(0, 2), (1, 4), (2, 8)])
def test_hint_where_signs_are_random(seed, k):
    X, labels, _ = lines(seed, k=k)
    unsigned_model, is_hinted = with_hint(X, k)

    assert is_hinted

    unsigned_rate = misclassification_rate(labels, unsigned_model.labels_)
    rate = misclassification_rate(labels, signed_fit(X, k).labels_)

    assert rate < unsigned_rate


def test_a_signed_fit_is_judged_on_one_side():
    X, *_ = lines(0, p=100)
    model = signed_fit(X)
    turned_rows = X * np.sign(model.scales_)[:, None]

    for diagnosis in (diagnose(X, model), diagnose(turned_rows, model.labels_)):
        assert diagnosis.expected_error < 0.1


@pytest.mark.parametrize("seed", range(2))
def test_hint_where_few_rows_are_flipped(seed):
    rng = np.random.default_rng(seed)
    centers = 6 * np.linalg.qr(rng.standard_normal((100, 4)))[0].T
    signs = np.where(rng.random(300) < 0.15, -1, 1)
    scales = np.exp(0.5 * rng.standard_normal(300))
    X = scales[:, None] * centers[rng.integers(0, 4, 300)]
    noise = rng.standard_normal(X.shape)

    assert with_hint(signs[:, None] * X + noise, 4)[1]
    assert not with_hint(X + noise, 4)[1]


def one_sided():
    rng = np.random.default_rng(0)
    for k in (2, 3, 4):
        X, _ = make_ihgmm(200, 60, k, random_state=k)
        yield f"{k} clusters", X, k
        yield f"{k} clusters without their mean", X - X.mean(axis=0), k
        yield f"{k} clusters in standard units", (X - X.mean(0)) / X.std(0), k
    angles = np.repeat(np.pi / 3 * np.arange(6), 40)
    plane = np.column_stack([np.cos(angles), np.sin(angles)]) * 10
    plane = plane @ np.linalg.qr(rng.standard_normal((50, 2)))[0].T
    yield "six rays in a plane", plane + rng.standard_normal(plane.shape), 6
    yield "noise", rng.standard_normal((200, 30)), 3


@pytest.mark.parametrize(("X", "k"), [x[1:] for x in one_sided()])
def test_no_hint_where_clusters_lie_on_one_side(X, k):
    assert not with_hint(X, k)[1]
