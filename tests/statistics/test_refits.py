import numpy as np
import pytest

from ihgmm import IhSC, diagnose, make_ihgmm
from ihgmm._checks import check_matrix
from ihgmm.statistics.refits import refit_halves


def rng():
    return np.random.default_rng(0)


def test_rows_beyond_the_sample_are_judged_alike(kind):
    X, labels = make_ihgmm(400, 40, 3, separation_constant=0.5, random_state=0)
    X = np.vstack([X, np.zeros((2, 40))])
    codes = np.append(labels, [0, 0])
    data = check_matrix(kind(X))
    full = refit_halves(data, codes, 3, rng())
    few = refit_halves(data, codes, 3, rng(), max_rows=150)
    for found in (full, few):
        for view in (found.stays, found.doubt, found.lead):
            assert view.shape == (402,)
            assert (view[-2:] == 0).all()
    assert few.doubt[:-2].mean() == pytest.approx(full.doubt[:-2].mean(), abs=0.05)
    assert np.corrcoef(few.lead[:-2], full.lead[:-2])[0, 1] > 0.7
    assert few.stays.mean() == pytest.approx(full.stays.mean(), abs=0.03)


@pytest.mark.filterwarnings("ignore:Labels may be unstable")
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
    certainty = diagnose(X, model).certainty
    assert certainty[lacking].mean() < certainty[~lacking].mean() + 0.05
