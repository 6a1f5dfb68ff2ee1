import numpy as np
import pytest
from numpy.testing import assert_allclose

from ihgmm.matrix import as_matrix, to_host
from ihgmm.statistics.covariance import Covariance, leading_covariance


def spiked(seed, n=600, p=40, k=3, levels=(6.0, 4.0)):
    """Rows of k clusters; noise has level 1 but along two directions."""
    rng = np.random.default_rng(seed)
    B = np.linalg.qr(rng.standard_normal((p, 2)))[0]
    noise = Covariance(B, np.array(levels)).color(rng.standard_normal((n, p)))
    labels = np.arange(n) % k
    centers = 8 * np.linalg.qr(rng.standard_normal((p, k)))[0].T
    X = rng.lognormal(0, 0.5, (n, 1)) * centers[labels] + noise
    S = np.eye(p) + B @ np.diag(np.square(levels) - 1) @ B.T
    return X, labels, S, centers


def whole(found):
    """The covariance as a matrix, in units of the level."""
    B, squares = found.directions, found.deviations**2 - 1
    return np.eye(len(B)) + B @ np.diag(squares) @ B.T


def test_a_covariance_and_its_maps():
    rng = np.random.default_rng(0)
    B = np.linalg.qr(rng.standard_normal((6, 2)))[0]
    found = Covariance(B, np.array([3.0, 0.5]))
    S, rows = whole(found), rng.standard_normal((5, 6))
    assert_allclose(found.color(found.color(rows), -1), rows)
    assert_allclose(found.color(found.color(np.eye(6))), S, atol=1e-12)
    assert_allclose(to_host(found.whiten(as_matrix(rows)) @ np.eye(6)),
                    found.color(rows, -1))  # fmt: skip
    assert found.mean_variance == pytest.approx(np.trace(S) / 6)
    assert found.log_volume == pytest.approx(np.linalg.slogdet(S)[1] / 2)
    assert found.n_parameters == 6 * 2 - 1
    none = Covariance.none(6)
    assert (none.log_volume, none.n_parameters) == (0.0, 0)
    assert none.whiten(data := as_matrix(rows)) is data


def test_leading_directions_of_the_noise_are_found():
    for seed in range(3):
        X, labels, S, centers = spiked(seed)
        found = leading_covariance(
            as_matrix(X), labels, 3, rng=np.random.default_rng(0)
        )
        assert len(found.deviations) == 5  # the span of the centres and two
        assert_allclose(found.directions.T @ found.directions, np.eye(5), atol=1e-9)
        assert found.deviations[::-1][:2] == pytest.approx([6, 4], rel=0.12)
        # Along the centres too, where a row's own scale hides its noise.
        units = centers / 8
        along = np.einsum("kp,pq,kq->k", units, whole(found), units)
        assert_allclose(along, np.einsum("kp,pq,kq->k", units, S, units), rtol=0.3)
