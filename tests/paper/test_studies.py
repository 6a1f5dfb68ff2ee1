"""The studies: what is sampled where, and how it is drawn."""

import numpy as np
import pytest

from ihgmm.paper.figures import grid, limit_constant, threshold_constants
from ihgmm.paper.methods import METHODS
from ihgmm.paper.oracles import center_oracle
from ihgmm.paper.runner import Summary
from ihgmm.paper.studies import EXPERIMENTS, PHASE, STUDIES, correlated_sample
from ihgmm.paper.theory import ihsc_threshold, thresholds
from ihgmm.statistics.model import default_separation, make_ihgmm


def count(experiment, panel=None):
    return sum(panel in (None, s.panel) for s in EXPERIMENTS[experiment].settings())


def test_grids_are_the_papers():
    assert [count(e) for e in EXPERIMENTS] == [30, 42, 40, 20]
    first = EXPERIMENTS["exp1"].settings()
    assert {s.options["n_clusters"] for s in first} == {4}
    square = [s.options for s in first if s.panel == "n=p"]
    assert all(o["n_samples"] == o["n_features"] for o in square)
    assert sorted({o["n_samples"] for o in square}) == [100, 200, 300, 400, 500]
    second = EXPERIMENTS["exp2"].settings()
    sizes = {(s.options["n_samples"], s.options["n_features"]) for s in second}
    assert sizes == {(5000, 1000), (1000, 1000), (1000, 5000)}
    assert sorted({s.x for s in second}) == [2, 3, 4, 5, 6, 7, 8]
    assert sorted({s.x for s in EXPERIMENTS["exp3"].settings()}) == list(
        range(5, 101, 5)
    )
    assert sorted({s.x for s in EXPERIMENTS["exp4"].settings()}) == pytest.approx(
        np.arange(1, 11) / 10
    )
    for name, n, p, value in (
        ("exp3", 500, 1000, 16.2408),
        ("exp4", 200, 1000, 20.4217),
    ):
        options = EXPERIMENTS[name].settings()[0].options
        assert (options["n_samples"], options["n_features"]) == (n, p)
        assert default_separation(n, p, options["n_clusters"]) == pytest.approx(
            value, abs=1e-4
        )
    for experiment in EXPERIMENTS.values():
        assert set(experiment.methods) <= set(METHODS)
        assert {"IhSC", "PSC", "k-means"} <= set(experiment.methods)
    assert "IhSC, magnitude" in EXPERIMENTS["exp4"].methods
    keys = [s.key for e in EXPERIMENTS.values() for s in e.settings()]
    assert len(set(keys)) == len(keys)
    for experiment in EXPERIMENTS.values():  # every setting can be sampled
        for s in experiment.settings():
            make_ihgmm(
                **{**s.options, "n_samples": 20, "n_features": 12}, noise=s.noise
            )


def test_phase_varies_one_thing_at_a_time():
    settings = PHASE.settings()
    assert len({s.key for s in settings}) == len(settings) == 2 * 10 * 33
    assert settings[0].key == "phase/p=50/0.05/gaussian"
    assert PHASE.panels == tuple(p for m in PHASE.maps for p in m.panels)
    assert set(PHASE.methods) <= set(METHODS)
    base = {"n_samples": 200, "n_features": 500, "n_clusters": 4, "scale_ratio": 5}
    for panel in PHASE.panels:
        assert panel.values[0] == 0.05
        assert panel.values[-1] == 3
        differ = [k for k, v in panel.fixed.items() if base.get(k) != v]
        assert len(differ) <= 1, panel.name
    rows = {m.name: [p.title for p in m.panels] for m in PHASE.maps}
    assert rows["K"] == ["2", "3", "4", "6", "8", "12"]
    assert rows["cosine"] == ["0", "0.3", "0.6", "0.9"]
    for s in settings:  # every one can be sampled, with the separation it says
        small = {**s.options, "n_samples": 30, "n_features": 20}
        sample = s.sampler(**small, noise=s.noise, random_state=0, return_params=True)
        expected = default_separation(30, 20, len(sample.centers), s.x)
        assert sample.separation == pytest.approx(expected)
    assert STUDIES == {**EXPERIMENTS, "phase": PHASE}


@pytest.mark.parametrize("cosine", [0.0, 0.3, 0.9])
def test_correlated_centres(cosine):
    options = {"cosine": cosine, "separation_constant": 0.7, "random_state": 3}
    sample = correlated_sample(40, 30, 5, **options, return_params=True)
    units = sample.centers / np.linalg.norm(sample.centers, axis=1, keepdims=True)
    cosines = (units @ units.T)[~np.eye(5, dtype=bool)]
    np.testing.assert_allclose(cosines, cosine, atol=1e-12)
    differences = sample.centers[:, None] - sample.centers
    distances = np.linalg.norm(differences, axis=2)[~np.eye(5, dtype=bool)]
    np.testing.assert_allclose(distances, default_separation(40, 30, 5, 0.7))
    X, labels = correlated_sample(40, 30, 5, **options)
    np.testing.assert_array_equal(X, sample.X)
    np.testing.assert_array_equal(labels, sample.labels)


@pytest.mark.parametrize("cosine", [-0.1, 1.0])
def test_impossible_cosines(cosine):
    message = rf"cosine={cosine} is out of range; give at least 0 and at most 0\.99"
    with pytest.raises(ValueError, match=message):
        correlated_sample(40, 30, 3, cosine=cosine, separation_constant=1.0)


def test_maps_pool_the_noises():
    one = PHASE.maps[1]
    rows = [
        Summary("phase", "K=3", 0.05, "gaussian", "IhSC", 3, 0.4, 0.0),
        Summary("phase", "K=3", 0.05, "rademacher", "IhSC", 1, 0.8, 1.0),
        Summary("phase", "K=3", 0.05, "gaussian", "IhGMM", 3, 0.9, 0.9),
        Summary("phase", "R=1", 0.05, "gaussian", "IhSC", 3, 0.9, 0.9),
    ]
    errors, shares = grid(one, rows, "IhSC")
    assert errors.shape == shares.shape == (6, 10)
    assert errors[1, 0] == pytest.approx(0.5)
    assert shares[1, 0] == pytest.approx(0.25)
    assert np.isfinite(errors).sum() == np.isfinite(shares).sum() == 1


def test_thresholds_in_units_of_the_papers():
    two, three = PHASE.maps[1].panels[:2]
    found = threshold_constants(three)
    assert found["IhSC"] == 1
    for name, value in thresholds(200, 500, 3).items():
        separation = default_separation(200, 500, 3, found[name])
        np.testing.assert_allclose(separation, value)
    # Drawn as one line, since they are one number.
    pair = threshold_constants(two)
    assert pair["Ndaoud 2022"] == pair["Chen and Yang 2021"]


def test_the_limit_is_where_the_centre_oracle_gets_half_of_the_samples_right():
    panels = {panel.name: panel for panel in PHASE.panels}
    for name in ("K=12", "R=1", "cosine=0.9", "noise=1/3 to 3"):
        panel = panels[name]
        constant = limit_constant(panel)
        exact = 0
        for seed in range(100):
            # Few features: the directions of the centres are all that counts.
            few = {**panel.fixed, "n_features": 20, "noise": "gaussian"}
            few["separation_constant"] = constant * (
                ihsc_threshold(200, 500, panel.fixed["n_clusters"])
                / ihsc_threshold(200, 20, panel.fixed["n_clusters"])
            )
            sample = panel.sampler(**few, random_state=seed, return_params=True)
            exact += bool((center_oracle(sample) == sample.labels).all())
        assert 35 <= exact <= 68, name  # 50 give or take three standard errors
    # Clusters that share the rows otherwise, or the centres, change nothing.
    values = [limit_constant(panels[n]) for n in ("beta=0.1", "cosine=0.6", "K=4")]
    np.testing.assert_allclose(values, values[0], rtol=0.02)
