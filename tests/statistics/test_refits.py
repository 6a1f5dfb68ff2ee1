import numpy as np
import pytest

from ihgmm import IhSC, diagnose, make_ihgmm
from ihgmm._checks import check_matrix
from ihgmm.statistics.refits import noise_directions, refit_halves


def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize("decay", [0.0, 0.5, 0.8])
def test_noise_directions_are_those_of_the_covariance(decay):
    # Noise of a covariance C has trace(C)**2 / trace(C @ C) directions.
    p, n = 60, 600
    covariance = decay ** np.abs(np.subtract.outer(np.arange(p), np.arange(p)))
    root = np.linalg.cholesky(covariance)
    truth = np.trace(covariance) ** 2 / (covariance**2).sum()
    for seed in range(3):
        draws = np.random.default_rng(seed)
        codes = draws.integers(0, 3, n)
        centers = 10 * np.linalg.qr(draws.standard_normal((p, 3)))[0].T
        X = centers[codes] + draws.standard_normal((n, p)) @ root.T
        found = noise_directions(check_matrix(X), codes, 3, draws)
        assert found == pytest.approx(truth, rel=0.15)


def test_rows_beyond_the_sample_are_judged_alike(kind):
    X, labels = make_ihgmm(400, 40, 3, separation_constant=0.5, random_state=0)
    X = np.vstack([X, np.zeros((2, 40))])
    codes = np.append(labels, [0, 0])
    data = check_matrix(kind(X))
    full = refit_halves(data, codes, 3, rng())
    few = refit_halves(data, codes, 3, rng(), max_rows=150)
    assert (full.support[-2:] == 0).all()
    assert (few.support[-2:] == 0).all()
    assert few.support[:-2].mean() == pytest.approx(full.support[:-2].mean(), abs=0.03)
    assert np.corrcoef(few.support[:-2], full.support[:-2])[0, 1] > 0.7
    assert few.disputed.mean() == pytest.approx(full.disputed.mean(), abs=0.03)


def test_support_is_a_probability_where_rows_are_gaussian():
    # Where clusters overlap a little, doubts about true labels add up to the share of
    # rows that get another label.
    for seed in range(3):
        X, truth = make_ihgmm(
            600, 50, 3, scale_ratio=1.0, separation_constant=0.8, random_state=seed
        )
        found = refit_halves(check_matrix(X), truth, 3, rng())
        doubt = 1 - found.support.mean()
        assert doubt > 0.01
        assert doubt == pytest.approx(found.disputed.mean(), abs=0.03)


def test_few_rows_of_a_cluster_are_fitted_with_most_rows():
    X, labels = make_ihgmm(60, 200, 12, random_state=0)
    found = refit_halves(check_matrix(X), labels, 12, rng())
    assert found.support.mean() > 0.6
    assert refit_halves(check_matrix(X[:14]), labels[:14], 12, rng()) is None


def test_names_of_clusters_do_not_matter():
    X, labels = make_ihgmm(200, 50, 4, separation_constant=0.5, random_state=0)
    first = refit_halves(check_matrix(X), labels, 4, rng())
    second = refit_halves(check_matrix(X), 3 - labels, 4, rng())
    np.testing.assert_allclose(first.support, second.support, rtol=1e-9)
    assert first.agreement == second.agreement
    np.testing.assert_array_equal(first.disputed, second.disputed)


@pytest.mark.filterwarnings("ignore:In .* of the rows noise outweighs")
@pytest.mark.parametrize("options", [{"signed": True}, {"whiten": "learned"}])
def test_rows_with_missing_cells_are_not_the_more_certain(options):
    # Cells filled by their means make rows look like their cluster: judged by these
    # alone, the certainty of such rows is larger by 0.12.
    X, _ = make_ihgmm(
        300, 300, 3, noise_levels=1.0, separation_constant=0.25, scale_ratio=2,
        random_state=1,
    )  # fmt: skip
    lacking = np.arange(300) % 2 == 0
    missing = np.random.default_rng(1).random(X.shape) < 0.6
    X[lacking[:, None] & missing] = np.nan
    model = IhSC(3, missing="fit", random_state=0, **options).fit(X)
    certainty = diagnose(model, X).certainty
    assert certainty[lacking].mean() < certainty[~lacking].mean() + 0.05
