"""What a user has NumPy do at overflow and underflow is no matter of a fit."""

import numpy as np
import pytest

import ihgmm
from ihgmm import metrics
from ihgmm.storage import load_model, save_model

ESTIMATORS = [
    ihgmm.IhSC(3, random_state=0),
    ihgmm.IhSC("auto", columns="noise", outliers="cells"),
    ihgmm.IhGMM("auto", missing="fit", outliers="auto"),
    ihgmm.IhGMM(3, noise="tied", random_state=0),
    ihgmm.IhSC(3, recipe="psc"),
    ihgmm.SphericalKMeans(3, random_state=0),
    ihgmm.Biwhitener(),
]
METHODS = ["predict", "transform", "score", "predict_proba", "score_samples"]
METHODS += ["bic", "icl", "report"]


@pytest.fixture(scope="module")
def rows():
    return ihgmm.make_ihgmm(120, 12, 3, random_state=0)[0]


@pytest.mark.parametrize("model", ESTIMATORS, ids=lambda model: type(model).__name__)
def test_estimators_do_as_usual_where_the_user_wants_errors(model, rows, tmp_path):
    answers = []
    for mode in ("raise", "warn"):
        with np.errstate(all=mode, under="raise" if mode == "raise" else "ignore"):
            settings_before = np.geterr()
            model.fit(rows)
            methods = [name for name in METHODS if hasattr(model, name)]
            answers.append([getattr(model, name)(rows) for name in methods])
            if hasattr(model, "labels_"):
                save_model(model, tmp_path / "model.npz")
                load_model(tmp_path / "model.npz").predict(rows)
            assert np.geterr() == settings_before

    for first, second in zip(*answers, strict=True):
        if isinstance(first, np.ndarray | float):
            np.testing.assert_array_equal(first, second)


def test_functions_do_as_usual_where_the_user_wants_errors(rows):
    with np.errstate(all="raise"):
        settings_before = np.geterr()
        rows, labels = ihgmm.make_ihgmm(120, 12, 3, random_state=0)
        assert ihgmm.select_n_clusters(rows, random_state=0).n_clusters == 3
        assert ihgmm.cluster_tree(rows, random_state=0).levels == (3,)
        ihgmm.diagnose(rows, labels)
        ihgmm.estimate_parameters(rows, labels)
        ihgmm.scale_heterogeneity_test(rows, labels)
        metrics.stability_score(ihgmm.IhSC(3).fit(rows), rows)
        assert np.geterr() == settings_before
