"""Which noise the data have: IhGMM(noise="auto"), and directions of noise in IhSC."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from ihgmm import IhGMM, IhSC, make_ihgmm
from ihgmm.metrics import match_labels, misclassification_rate

KINDS = ("common", "class", "individual", "tied")


def rows(kind, seed, n=400, p=100, length=6.0):
    """Return rows of four clusters with noise of a kind, and their labels."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(n) % 4)
    centers = length * np.linalg.qr(rng.standard_normal((p, 4)))[0].T
    noise = rng.standard_normal((n, p))
    if kind == "class":
        noise *= np.array([0.5, 0.8, 1.2, 1.6])[labels, None]
    elif kind == "individual":
        noise *= rng.lognormal(0, 0.5, (n, 1))
    elif kind == "tied":
        blocks = rng.standard_normal((n, 10)).repeat(p // 10, axis=1)
        noise = np.sqrt(0.2) * noise + np.sqrt(0.8) * blocks
    return rng.lognormal(0, 0.5, (n, 1)) * centers[labels] + noise, labels


@pytest.mark.parametrize("kind", KINDS)
def test_the_kind_of_noise_is_found(kind):
    for seed in range(3):
        X, labels = rows(kind, seed)
        model = IhGMM(4, noise="auto", random_state=0).fit(X)
        assert model.noise_ == kind, f"seed {seed}"
        assert set(model.noise_evidence_) == set(KINDS)
        assert min(model.noise_evidence_.values()) == model.noise_evidence_[kind] == 0
        known = IhGMM(4, noise=kind, random_state=0).fit(X)
        assert known.noise_ == kind
        assert not hasattr(known, "noise_evidence_")
        assert_array_equal(model.labels_, known.labels_)
        assert misclassification_rate(labels, model.labels_) < 0.05


def test_few_rows_do_not_teach_a_covariance():
    for seed in range(3):
        X, labels = rows("common", seed, n=60, p=1_000, length=12.0)
        model = IhGMM(4, noise="auto", random_state=0).fit(X)
        assert model.noise_ == "common"
        assert misclassification_rate(labels, model.labels_) < 0.02


def test_blocks_of_noise_in_many_columns_and_few_rows_spoil_no_label():
    for seed in range(3):
        X, labels = rows("tied", seed, n=160, p=1_000, length=20.0)
        model = IhGMM(4, noise="auto", random_state=0).fit(X)
        assert misclassification_rate(labels, model.labels_) < 0.02, f"seed {seed}"


def test_the_kind_is_chosen_on_some_of_many_rows():
    X, labels = rows("tied", 0, n=5_000)
    model = IhGMM(4, noise="auto", random_state=0).fit(X)
    assert model.noise_ == "tied"
    assert misclassification_rate(labels, model.labels_) < 0.01


def test_directions_of_noise_are_used_where_they_stand_as_high_as_clusters():
    for seed in range(3):
        X, labels = rows("tied", seed, p=150)
        model = IhSC(4, random_state=0).fit(X)
        assert model.embedding_.shape[1] > 10  # 2K + 2
        assert misclassification_rate(labels, model.labels_) < 0.05, f"seed {seed}"
        alike = make_ihgmm(400, 150, 4, random_state=seed)[0]
        assert IhSC(4, random_state=0).fit(alike).embedding_.shape[1] == 4


@pytest.mark.filterwarnings("ignore:Labels may be unstable")
@pytest.mark.parametrize("noise", ["individual", "common"])
def test_noise_between_the_centres_tempers_memberships(noise):
    # Untempered, rows above .9 said .99 and were right in .90.
    sure, right = [], []
    for seed in range(4):
        rng, labels = np.random.default_rng(seed), np.arange(300) % 4
        blocks = np.eye(10).repeat(10, axis=1)
        turn = np.linalg.qr(rng.standard_normal((10, 4)))[0].T
        X = 1.26 * rng.lognormal(0, 0.5, (300, 1)) * (turn @ blocks)[labels]
        X += np.sqrt(0.9) * rng.standard_normal(X.shape)
        X += np.sqrt(0.3) * rng.standard_normal((300, 10)) @ blocks
        model = IhGMM(4, noise=noise, random_state=0).fit(X)
        assert model.temperature_ == pytest.approx(2.8, abs=0.3)
        assert_allclose(model.predict_proba(X).sum(axis=1), 1)
        sure.append(model.memberships_.max(axis=1))
        right.append(match_labels(labels, model.labels_) == labels)
        same = make_ihgmm(300, 60, 3, noise_structure=noise, random_state=seed)[0]
        assert IhGMM(3, noise=noise, random_state=0).fit(same).temperature_ < 1.1
    sure, right = np.concatenate(sure), np.concatenate(right)
    clear = sure > 0.9
    assert 0.1 < 1 - right.mean() < 0.3
    assert clear.mean() > 0.3
    assert right[clear].mean() == pytest.approx(sure[clear].mean(), abs=0.02)
