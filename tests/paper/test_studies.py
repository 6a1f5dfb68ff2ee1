"""The studies: what is sampled where, and how it is drawn."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from ihgmm.paper.figures import LIMIT, threshold_constants
from ihgmm.paper.methods import center_oracle, label_oracle
from ihgmm.paper.runner import Run, Summary, summarize
from ihgmm.paper.studies import EXPERIMENTS, PHASE, STUDIES, correlated_sample
from ihgmm.paper.theory import ihsc_threshold, thresholds
from ihgmm.statistics.model import default_separation, make_ihgmm


def arguments(study, name):
    """Return the values that an argument of the sampler takes in a study."""
    return sorted({s.options[name] for s in study.settings})


def test_grids_are_the_papers():
    first, second, third, fourth = EXPERIMENTS

    assert [len(study.settings) for study in EXPERIMENTS] == [30, 42, 40, 20]
    assert arguments(first, "n_clusters") == [4]

    square = [s.options for s in first.settings if s.panel == "n=p"]

    assert all(o["n_samples"] == o["n_features"] for o in square)
    assert sorted({o["n_samples"] for o in square}) == [100, 200, 300, 400, 500]

    sizes = {(s.options["n_samples"], s.options["n_features"]) for s in second.settings}

    assert sizes == {(5000, 1000), (1000, 1000), (1000, 5000)}
    assert arguments(second, "n_clusters") == [2, 3, 4, 5, 6, 7, 8]
    assert arguments(third, "scale_ratio") == list(range(5, 101, 5))
    assert_allclose(arguments(fourth, "balance"), np.arange(1, 11) / 10)

    for study, separation in ((third, 16.2408), (fourth, 20.4217)):
        options = study.settings[0].options
        size = [options[f"n_{name}"] for name in ("samples", "features", "clusters")]
        assert default_separation(*size) == pytest.approx(separation, abs=5e-5)

    for study in EXPERIMENTS:
        assert {"IhSC", "PSC", "k-means"} <= set(study.methods)

    assert "IhSC, magnitude" in fourth.methods


def test_every_setting_can_be_sampled_and_has_a_name_of_its_own():
    settings = [s for study in STUDIES.values() for s in study.settings]

    assert len({s.key for s in settings}) == len(settings) == 132 + 2 * 10 * 33

    for s in settings:
        options = {**s.options, "n_samples": 30, "n_features": 20, "noise": s.noise}

        sample = s.sampler(**options, random_state=0, return_params=True)

        constant = options.get("separation_constant", 3.0)
        expected = default_separation(30, 20, len(sample.centers), constant)
        assert sample.separation == pytest.approx(expected)


def test_a_choice_of_settings_and_their_seeds():
    study = STUDIES["exp2"]

    assert len(study.choose()) == 42
    assert {s.panel for s in study.choose("n=p")} == {"n=p"}
    assert {s.panel for s in study.choose(quick=True)} == {"n=p"}
    assert study.choose("moon") == []

    setting = EXPERIMENTS[0].settings[0]

    assert setting.key == "exp1/n>>p/500/gaussian"
    assert setting.draw(0)[1] == 902423127
    assert setting.draw(1)[1] != 902423127


@pytest.mark.parametrize("cosine", [0.0, 0.3, 0.9])
def test_correlated_centres(cosine):
    options = {"cosine": cosine, "separation_constant": 0.7, "random_state": 3}

    sample = correlated_sample(40, 30, 5, **options, return_params=True)

    unit_centers = sample.centers / np.linalg.norm(
        sample.centers, axis=1, keepdims=True
    )
    is_off_diagonal = ~np.eye(5, dtype=bool)

    assert_allclose(
        (unit_centers @ unit_centers.T)[is_off_diagonal], cosine, atol=1e-12
    )

    differences = sample.centers[:, None] - sample.centers
    distances = np.linalg.norm(differences, axis=2)[is_off_diagonal]

    assert_allclose(distances, default_separation(40, 30, 5, 0.7))
    assert_array_equal(correlated_sample(40, 30, 5, **options)[0], sample.X)

    with pytest.raises(ValueError, match=r"at least 0 and at most 0\.99"):
        correlated_sample(40, 30, 3, cosine=cosine + 1, separation_constant=1.0)

    for n, d, message in ((0, 30, "n_samples=0"), (40, 3, "n_features=3")):
        with pytest.raises(ValueError, match=message):
            correlated_sample(n, d, 3, cosine=cosine, separation_constant=1.0)


def test_summary():
    key = "exp4/beta/0.2/gaussian"
    results = [Run(key, rep, "IhSC", 10, e) for rep, e in enumerate([0, 0, 5, 1])]
    results += [Run("exp4/beta/9/gaussian", 0, "IhSC", 10, 3)]  # of another version

    expected = Summary("exp4", "beta", 0.2, "gaussian", "IhSC", 4, 0.15, 0.5)

    assert summarize(STUDIES["exp4"], results) == [expected]


def test_the_limit_is_where_the_centre_oracle_gets_half_of_the_samples_right():
    panels = {panel.name: panel for panel in PHASE.panels}
    constants = threshold_constants(panels["K=3"])

    for name, value in thresholds(200, 500, 3).items():
        assert_allclose(default_separation(200, 500, 3, constants[name]), value)

    for name in ("K=12", "R=1", "cosine=0.9", "noise=1/3 to 3"):
        panel = panels[name]
        k = panel.fixed["n_clusters"]
        # Few features: the directions of the centres are all that counts.
        options = {**panel.fixed, "n_features": 20, "noise": "gaussian"}
        ratio = ihsc_threshold(200, 500, k) / ihsc_threshold(200, 20, k)
        options["separation_constant"] = threshold_constants(panel)[LIMIT] * ratio
        n_exact = 0

        for seed in range(100):
            sample = panel.sampler(**options, random_state=seed, return_params=True)
            n_exact += bool((center_oracle(sample) == sample.labels).all())

        assert 35 <= n_exact <= 68, name  # 50 give or take three standard errors

    # Clusters that share the rows otherwise, or the centres, change nothing.
    similar_panels = ("beta=0.1", "cosine=0.6", "K=4")
    values = [threshold_constants(panels[name])[LIMIT] for name in similar_panels]

    assert_allclose(values, values[0], rtol=0.02)


def naive_label_oracle(sample, i):
    """Place row i with nothing but the other rows and their labels."""
    is_other = np.arange(len(sample.X)) != i
    X = sample.X[is_other]
    labels = sample.labels[is_other]
    norms = np.linalg.norm(X, axis=1)
    weights = 1 / norms

    for _ in range(5):
        cosines = np.empty(len(X))
        for j in range(len(X)):
            is_mate = (labels == labels[j]) & (np.arange(len(X)) != j)
            center = weights[is_mate] @ X[is_mate]
            cosines[j] = X[j] @ center / (np.linalg.norm(center) * norms[j])
        cosines = np.maximum(cosines, 0)
        weights = cosines * norms / ((1 - cosines**2) * norms**2)

    centers = [weights[labels == k] @ X[labels == k] for k in range(labels.max() + 1)]
    scores = [sample.X[i] @ center / np.linalg.norm(center) for center in centers]
    return np.argmax(scores)


@pytest.mark.parametrize("seed", range(4))
def test_label_oracle_is_the_naive_one(seed):
    options = {"scale_ratio": 3.0, "separation_constant": 0.3, "random_state": seed}
    sample = make_ihgmm(50, 60, 3, **options, return_params=True)

    result = label_oracle(sample)

    assert (result != sample.labels).any()  # or the test would show nothing

    naive = [naive_label_oracle(sample, i) for i in range(len(result))]

    np.testing.assert_array_equal(result, naive)
