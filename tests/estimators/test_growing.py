"""Models that go on with more rows."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from ihgmm import DriftWarning, IhSC, diagnose, make_ihgmm, top_features, typical_rows
from ihgmm.metrics import misclassification_rate
from ihgmm.numerics.incremental import DirectionMemory, RowSample
from ihgmm.report import write_report
from ihgmm.storage import load_model, save_model


def sample_of(n=1200, p=40, k=4, seed=0, **options):
    options = {"separation_constant": 0.6, **options}
    return make_ihgmm(n, p, k, random_state=seed, **options)


def grown(X, sizes, model=None):
    """Return a model that has seen rows in batches of some sizes."""
    model = model or IhSC(4)
    for rows in np.split(X, np.cumsum(sizes)[:-1]):
        model.partial_fit(rows)
    return model


@pytest.mark.parametrize(
    ("p", "sizes"),
    [(40, [1200]), (200, [300] * 4), (40, [100, 7, 1, 492, 600]), (200, [1200])],
)
def test_batches_give_what_a_fit_gives(p, sizes):
    X, kinds = sample_of(p=p)
    model = grown(X, sizes)
    model_at_once = IhSC(4).fit(X)
    rate = misclassification_rate(kinds, model.predict(X))
    rate_at_once = misclassification_rate(kinds, model_at_once.predict(X))

    assert rate <= rate_at_once + 0.003
    assert model.n_samples_seen_ == 1200

    order = np.argmax(model_at_once.transform(model.cluster_centers_), axis=1)
    centers = model_at_once.cluster_centers_[order]
    gap = np.linalg.norm(model.cluster_centers_ - centers) / np.linalg.norm(centers)

    assert gap < 0.06
    assert len(model.labels_) == len(model.scales_) == sizes[-1]
    assert_array_equal(model.predict(X[-sizes[-1] :]), model.labels_)


@pytest.mark.parametrize("seed", range(3))
def test_clusters_keep_their_numbers(seed):
    X, _ = sample_of(n=2000, seed=seed)
    model = IhSC(4).partial_fit(X[:400])
    labels_before = model.predict(X)
    grown(X[400:], [200] * 8, model)

    assert np.mean(model.predict(X) == labels_before) > 0.98


@pytest.mark.filterwarnings("ignore::ihgmm.DriftWarning")
def test_rows_may_come_sorted_by_cluster():
    X, kinds = sample_of(n=2000)
    order = np.argsort(kinds, kind="stable")
    model = grown(X[order], [200] * 10)

    assert misclassification_rate(kinds, model.predict(X)) < 0.01

    shares = model.growth_.sums.weights / 2000

    assert_allclose(np.sort(shares), np.sort(np.bincount(kinds) / 2000), 0.03)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_rows_of_an_earlier_call_are_no_rows_of_the_model(kind):
    X, _ = sample_of(n=600)
    model = grown(X, [200, 200, 200])
    last_rows = kind(X[400:])
    earlier_rows = kind(X[:200])

    for rows in (last_rows, last_rows.astype(np.float32)):
        assert top_features(rows, model).sizes.sum() == 200
        assert diagnose(rows, model).n_samples == 200
        assert "<html" in model.report(rows).html

    for ask in (top_features, diagnose, typical_rows, write_report):
        with pytest.raises(ValueError, match=r"not the rows of the last partial_fit"):
            ask(earlier_rows, model)

    assert top_features(earlier_rows, model.predict(earlier_rows)).sizes.sum() == 200


def test_kinds_of_arrays_may_change_between_calls():
    torch = pytest.importorskip("torch")
    X, kinds = sample_of()
    model = IhSC(4).partial_fit(X[:300])
    model.partial_fit(sp.csr_array(X[300:600]))
    model.partial_fit(X[600:900].astype(np.float32))
    model.partial_fit(torch.as_tensor(X[900:]))

    assert isinstance(model.labels_, torch.Tensor)
    assert misclassification_rate(kinds, model.predict(X)) < 0.01

    dense_model = grown(X, [300] * 4)

    assert np.mean(model.predict(X) == dense_model.predict(X)) > 0.995


def test_weights_count_like_repeated_rows():
    X, _ = sample_of(n=800)
    rng = np.random.default_rng(0)
    counts = rng.integers(1, 4, 800)
    weighted_model = IhSC(4).partial_fit(X[:400], sample_weight=counts[:400])
    weighted_model.partial_fit(X[400:], sample_weight=counts[400:])
    rows = np.repeat(X, counts, axis=0)
    repeated_model = grown(rows, [counts[:400].sum(), counts[400:].sum()])
    weighted_directions = weighted_model.growth_.directions
    repeated_directions = repeated_model.growth_.directions

    assert_allclose(weighted_directions.values, repeated_directions.values)

    weighted_centers = weighted_model.cluster_centers_
    repeated_centers = repeated_model.cluster_centers_

    assert_allclose(weighted_centers, repeated_centers, 0.02, 0.02)


def shapes_of(sample):
    return [array.shape for array in vars(sample).values() if np.ndim(array)]


def test_memory_does_not_grow(monkeypatch):
    monkeypatch.setattr("ihgmm.policy.Labelling.ROWS", 256)
    X, kinds = sample_of(n=3000)
    model = IhSC(4).partial_fit(X[:600])
    shapes = shapes_of(model.growth_.sample)
    grown(X[600:], [400] * 6, model)
    sample = model.growth_.sample

    assert shapes_of(sample) == shapes
    assert sample.weights.sum() == pytest.approx(3000, rel=0.2)
    assert misclassification_rate(kinds, model.predict(X)) < 0.02


def test_a_fitted_model_grows(tmp_path):
    X, kinds = sample_of()
    model = IhSC(4).fit(X[:600])
    labels_before = model.predict(X)
    save_model(model, tmp_path / "model.npz")
    model = load_model(tmp_path / "model.npz")
    model.partial_fit(X[600:900]).partial_fit(X[900:])

    assert model.n_samples_seen_ == 1200
    assert np.mean(model.predict(X) == labels_before) > 0.98
    assert misclassification_rate(kinds, model.predict(X)) < 0.01

    newer_model = IhSC(4, init=model).partial_fit(X[::-1][:600])

    assert np.mean(newer_model.predict(X) == model.predict(X)) > 0.98


def test_drift_is_said_once():
    X, kinds = sample_of(n=4000, k=5)
    is_of_three = kinds < 3
    is_of_last = kinds == 4
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = grown(X[~is_of_last][:1500], [500] * 3)

    remaining_rows = X[1500:]
    remaining_kinds = kinds[1500:]

    with pytest.warns(DriftWarning, match=r"clusters \d\. .*IhSC\(3, init=model\)"):
        model.partial_fit(remaining_rows[remaining_kinds < 3][:500])

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.partial_fit(remaining_rows[remaining_kinds < 3][500:900])

    assert is_of_three.any()

    with pytest.warns(DriftWarning, match=r"of the new rows are far .*IhSC\(5, init"):
        model.partial_fit(X[is_of_last | is_of_three][:800])

    larger_model = IhSC(5, init=model).fit(X)

    assert misclassification_rate(kinds, larger_model.labels_) < 0.01


@pytest.mark.parametrize(("seed", "size"), [(0, 60), (1, 300), (2, 60), (3, 300)])
def test_no_drift_is_seen_where_none_is(seed, size):
    X, _ = sample_of(n=1200, p=100, seed=seed, separation_constant=0.4)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DriftWarning)
        grown(X, [size] * (1200 // size))


def test_bad_batches_are_refused_and_leave_the_model():
    X, _ = sample_of()

    with pytest.raises(ValueError, match="n_clusters=4"):
        IhSC(4).partial_fit(X[:3])

    model = IhSC(4).partial_fit(X[:600])
    labels_before = model.predict(X)

    with pytest.raises(ValueError, match="40 features"):
        model.partial_fit(X[:, :30])
    with pytest.raises(ValueError, match=r"0 sample|no rows|empty|0 rows"):
        model.partial_fit(X[:0])
    with pytest.raises(ValueError, match=r"sample_weight cannot be used .*shape"):
        model.partial_fit(X, sample_weight=[1.0])
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit(np.full((3, 40), np.nan))

    assert_array_equal(model.predict(X), labels_before)
    assert model.n_samples_seen_ == 600
    assert model.fit(X).labels_.shape == (1200,)
    assert not hasattr(model, "n_samples_seen_")  # a fit begins anew


@pytest.mark.parametrize(
    "options",
    [
        {"signed": True},
        {"columns": "noise"},
        {"outliers": "auto"},
        {"recipe": "paper"},
        {"recipe": "psc"},
    ],
)
def test_options_that_cannot_grow_say_so(options):
    with pytest.raises(ValueError, match="partial_fit cannot"):
        IhSC(4, **options).partial_fit(sample_of()[0])


def test_a_saved_model_goes_on_and_fills_cells_in_as_the_first_call_learnt(tmp_path):
    X, kinds = sample_of()
    X[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
    model = IhSC(4, missing="fit").partial_fit(X[:400]).partial_fit(X[400:800])
    save_model(model, tmp_path / "model.npz")
    loaded = load_model(tmp_path / "model.npz").partial_fit(X[800:])

    assert_array_equal(loaded.predict(X), model.partial_fit(X[800:]).predict(X))
    assert_array_equal(loaded.cluster_centers_, model.cluster_centers_)
    assert misclassification_rate(kinds, model.predict(X)) < 0.01

    fitted_model = IhSC(4, missing="fit").fit(X[:400]).partial_fit(X[400:])

    assert misclassification_rate(kinds, fitted_model.predict(X)) < 0.01


def test_the_number_of_clusters_is_counted_once():
    X, kinds = sample_of()
    model = IhSC("auto", random_state=0).partial_fit(X[:600]).partial_fit(X[600:])

    assert model.n_clusters_ == 4
    assert misclassification_rate(kinds, model.predict(X)) < 0.01


def test_directions_of_all_features_add_up_exactly():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((30, 6))
    B = rng.standard_normal((20, 6))

    def directions(rows):
        values, vectors = np.linalg.eigh(rows.T @ rows)
        return DirectionMemory(vectors[:, ::-1], values[::-1], values.sum())

    merged = directions(A).merged(directions(B), 6)
    expected = directions(np.vstack([A, B]))

    assert_allclose(merged.values, expected.values)
    assert_allclose(np.abs(np.sum(merged.vectors * expected.vectors, axis=0)), 1)

    truncated = directions(A).merged(directions(B), 4)
    total = truncated.values.sum() + 2 * truncated.remaining_eigenvalue

    assert total == pytest.approx(expected.total)


def test_a_sample_by_priority_is_right_on_average():
    rng = np.random.default_rng(0)
    weights = rng.lognormal(0, 1, 2000)
    values = rng.random(2000) + weights / 9
    totals = []
    for _ in range(50):
        priorities = weights / rng.random(2000)
        samples = [
            RowSample(
                rows=values[indices, None],
                lengths=weights[indices],
                row_weights=weights[indices],
                priorities=priorities[indices],
                labels=indices * 0,
                is_known=indices < 0,
            )
            for indices in np.split(np.arange(2000), 10)
        ]

        joined_sample = samples[0]
        for sample in samples[1:]:
            joined_sample = joined_sample.joined(sample, 200)

        assert len(joined_sample.weights) == 200
        totals.append(joined_sample.weights @ joined_sample.rows[:, 0])

    assert np.mean(totals) == pytest.approx(weights @ values, rel=0.02)
