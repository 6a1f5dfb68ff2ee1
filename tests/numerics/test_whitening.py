from itertools import cycle

import numpy as np
import pytest
import scipy.sparse as sp
from matrix.array_kinds import KINDS, opened
from sklearn.datasets import load_digits

from ihgmm import Biwhitener, IhGMM, IhSC, PreparationWarning, make_ihgmm
from ihgmm.matrix import as_matrix, to_host
from ihgmm.metrics import misclassification_rate
from ihgmm.numerics.whitening import learn_whitener, preparation_of_counts, suited_noise


def counts(seed, size, n=300, p=200, k=4, spread=0.7):
    """Poisson rows of half shared profiles, as in benchmarks/designs.py."""
    rng = np.random.default_rng(seed)
    profiles = rng.gamma(0.5, size=p) + rng.gamma(0.5, size=(k, p))
    profiles /= profiles.sum(axis=1, keepdims=True)
    labels = np.arange(n) % k
    scales = size * rng.lognormal(-(spread**2) / 2, spread, n)
    X = rng.poisson(scales[:, None] * profiles[labels]).astype(float)
    is_nonzero = X.any(axis=1)
    return X[is_nonzero], labels[is_nonzero], scales[is_nonzero], profiles


def bursts(seed, dispersion, n=300, p=300, k=4, size=1000):
    """Counts of variance m + dispersion * m**2, as those of genes in cells."""
    rng = np.random.default_rng(seed)
    deviations = rng.standard_normal((k, p)) * (rng.random((k, p)) < 0.2)
    profiles = rng.lognormal(0, 1.5, p) * np.exp(0.7 * deviations)
    labels = np.arange(n) % k
    means = profiles[labels] / profiles.sum(axis=1)[labels, None]
    means *= size * rng.lognormal(0, 0.5, (n, 1))
    means *= rng.gamma(1 / dispersion, dispersion, means.shape)
    return rng.poisson(means), labels


def whitener(X, noise="counts"):
    return learn_whitener(as_matrix(X), noise, np.random.default_rng(0))


@pytest.mark.parametrize("seed", range(3))
def test_mean_variances_of_counts_are_one(seed):
    X, labels, scales, profiles = counts(seed, 60)
    white = whitener(X)(as_matrix(X))
    factors = white.row_scale[:, None] * white.columns
    # The variance of a count is its mean, of which the count is an estimate.
    estimated_variances = factors**2 * X
    true_variances = factors**2 * scales[:, None] * profiles[labels]

    np.testing.assert_allclose(estimated_variances.mean(axis=1), 1)

    is_rare = X.mean(axis=0) < X.shape[1] ** -0.5

    np.testing.assert_allclose(estimated_variances.mean(axis=0)[~is_rare], 1, atol=0.2)
    assert (estimated_variances.mean(axis=0)[is_rare] < 1.2).all()
    # Rows of few counts have the larger factors where chance has left them fewer.
    assert abs(true_variances.mean() - 1) < 0.25


@pytest.mark.filterwarnings("ignore:Labels may be unstable")
@pytest.mark.parametrize("seed", range(2))
def test_counts_that_come_in_bursts(seed):
    """Common columns would rule if their variance were their mean."""
    X, labels = bursts(seed, dispersion=1.0)

    assert Biwhitener("counts").fit(counts(seed, 60)[0]).dispersion_ < 0.02
    assert 0.4 < Biwhitener("counts").fit(X).dispersion_ < 1.2

    model = IhSC(4, columns="counts", random_state=0).fit(X)
    logs = np.log1p(X / X.sum(axis=1, keepdims=True) * np.median(X.sum(axis=1)))
    labels_of_logs = IhSC(4, random_state=0).fit_predict(logs)
    rate_of_logs = misclassification_rate(labels, labels_of_logs)
    rate = misclassification_rate(labels, model.labels_)

    assert rate < min(0.15, rate_of_logs + 0.02)


@pytest.mark.parametrize("shape", [(400, 60, 4), (300, 30, 3), (500, 12, 4)], ids=str)
def test_no_column_of_few_is_taken_for_quiet(shape):
    # A fit of low rank may take a column whole, which then seems to have no noise.
    for seed in range(4):
        X, _ = make_ihgmm(*shape, random_state=seed)
        factors = whitener(X, "learned").columns
        assert factors.max() < 1.6 * np.median(factors)


@pytest.mark.parametrize("shape", [(80, 60, 4), (400, 60, 4)], ids=str)
def test_no_row_of_few_is_taken_for_quiet(shape):
    # A row that makes a direction alone would get the larger a factor for it.
    for seed in range(4):
        sample = make_ihgmm(*shape, random_state=seed, return_params=True)
        levels = np.exp(np.random.default_rng(seed).normal(0, 0.5, (shape[0], 1)))
        noise = np.random.default_rng(100 + seed).standard_normal(sample.X.shape)
        X = sample.signal + levels * noise
        factors = whitener(X, "learned")(as_matrix(X)).row_scale * levels[:, 0]
        assert factors.max() < 5 * np.median(factors)


@pytest.mark.parametrize("seed", range(3))
def test_learned_factors_are_those_of_the_noise(seed):
    rng = np.random.default_rng(seed)
    rows = rng.lognormal(0, 0.7, 400)
    columns = rng.lognormal(0, 0.7, 100)
    signal = 3 * rng.standard_normal((400, 4)) @ rng.standard_normal((4, 100))
    noise = rng.standard_normal((400, 100)) * rows[:, None] * columns
    X = signal * columns + noise
    white = whitener(X, "learned")(as_matrix(X))

    # Of noise that differs by factors, a fifth is left; 0.7 was there.
    assert np.log(white.row_scale * rows).std() < 0.2
    assert np.log(white.columns * columns).std() < 0.2


@pytest.mark.parametrize("noise", ["counts", "learned"])
def test_a_row_is_whitened_by_itself(noise):
    X = counts(0, 60)[0]
    whiten = whitener(X, noise)
    white = whiten(as_matrix(X)).toarray()
    white_rows = whiten(as_matrix(X[5:9])).toarray()

    np.testing.assert_allclose(white_rows, white[5:9])

    # A multiple of a row has a multiple of its noise, if that is not of counts.
    white_multiple = whiten(as_matrix(4 * X)).toarray()

    np.testing.assert_allclose(white_multiple, white * (2 if noise == "counts" else 1))


@pytest.mark.parametrize(
    ("hold", "noise"),
    # By turns: kinds that are neighbours here are read alike.
    zip(KINDS, cycle(["counts", "learned"]), strict=False),
)
def test_every_kind_of_array(hold, noise, tmp_path):
    X = counts(1, 60)[0]
    expected = Biwhitener(noise, random_state=0).fit(X)
    data = opened(hold(X, tmp_path))
    learnt = learn_whitener(data, noise, np.random.default_rng(0))

    np.testing.assert_allclose(learnt.columns, expected.column_factors_, rtol=1e-6)

    white = learnt(data)

    np.testing.assert_allclose(white.toarray(), expected.transform(X), rtol=1e-6)

    sqnorms = np.square(expected.transform(X)).sum(axis=1)

    np.testing.assert_allclose(to_host(white.sqnorms), sqnorms, rtol=1e-6)


def test_kinds_stay_what_they_are():
    X = counts(0, 60)[0]
    biwhitener = Biwhitener("counts").fit(X)
    sparse = biwhitener.transform(sp.csr_array(X))

    assert sp.issparse(sparse)
    np.testing.assert_allclose(sparse.toarray(), biwhitener.transform(X))
    assert biwhitener.transform(X.astype(np.float32)).dtype == np.float32

    da = pytest.importorskip("dask.array")
    lazy = biwhitener.transform(da.from_array(X, chunks=(100, 200)))

    assert isinstance(lazy, da.Array)
    np.testing.assert_allclose(lazy.compute(), biwhitener.transform(X))


@pytest.mark.parametrize("hold", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("tiny", [1e-42, 1e-25])
def test_a_column_of_next_to_nothing_does_no_harm(hold, tiny):
    X, labels = make_ihgmm(200, 40, 3, random_state=0)
    X = np.c_[X, np.zeros(200)].astype(np.float32)
    X[:3, 40] = tiny  # 1e-42 is below the smallest normal number
    model = IhSC(3, columns="noise", random_state=0).fit(hold(X))

    assert model.preparation_[0].columns[40] == 0
    assert misclassification_rate(labels, model.labels_) == 0


def test_negative_counts_are_refused():
    with pytest.raises(ValueError, match=r"entry -2; counts are not negative.*learned"):
        Biwhitener("counts").fit([[1.0, 0.0], [-2.0, 3.0]])

    X = counts(0, 60)[0]
    model = IhSC(4, columns="counts", random_state=0).fit(X)
    for ask in (model.predict, Biwhitener("counts").fit(X).transform):
        with pytest.raises(ValueError, match="entry -1; counts are not negative"):
            ask(X - 1)

    with pytest.raises(ValueError, match="noise='poisson'"):
        Biwhitener("poisson").fit(np.eye(3))


@pytest.mark.parametrize("columns", ["counts", "noise"])
def test_results_are_in_the_units_of_the_data(columns):
    X, labels, scales, profiles = counts(2, 300)
    model = IhSC(4, columns=columns, random_state=0).fit(X)

    assert misclassification_rate(labels, model.labels_) < 0.01
    np.testing.assert_array_equal(model.predict(X), model.labels_)

    for k in range(4):
        is_member = model.labels_ == k
        kind = labels[is_member][0]
        np.testing.assert_allclose(model.scales_[is_member].mean(), 1)
        total = model.cluster_centers_[k].sum()
        assert abs(total / scales[is_member].mean() - 1) < 0.1
        profile = model.cluster_centers_[k] / total
        assert np.abs(profile - profiles[kind]).max() < 0.02
        assert np.corrcoef(model.scales_[is_member], scales[is_member])[0, 1] > 0.95

    # Of Poisson counts, the mean variance of a row is its mean.
    expected = np.sqrt(scales / X.shape[1])

    assert 0.8 < np.median(model.noise_levels_ / expected) < 1.25
    assert abs(model.score(X) - IhSC(4, columns="counts").fit(X).score(X)) < 0.1


@pytest.mark.parametrize("size", [15, 60])
def test_counts_are_recognised(size):
    assert suited_noise(as_matrix(counts(0, size)[0])) == "counts"
    assert suited_noise(as_matrix(sp.csr_array(counts(1, size)[0]))) == "counts"


def not_counts():
    rng = np.random.default_rng(0)
    X = counts(0, 60)[0]
    return {
        "scaled": X / X.sum(axis=1, keepdims=True),
        "logarithms": np.log1p(X),
        "answers": (X > 0).astype(float),
        "pictures": load_digits().data,
        "shades": load_digits().data / 16,
        "cut off": np.maximum(rng.standard_normal((200, 100)), 0),
        "missing": np.where(rng.random((300, 50)) < 0.3, np.nan, rng.lognormal(0, 2)),
        "both signs": X - (rng.random(X.shape) < 0.1),
        "equal means": rng.poisson(0.3, (200, 100)).astype(float),
        "large": rng.poisson(rng.gamma(1, 30, 50), (200, 50)).astype(float),
        "zero": np.zeros((3, 3)),
    }


@pytest.mark.parametrize("name", not_counts())
def test_other_data_are_no_counts(name):
    assert suited_noise(as_matrix(not_counts()[name])) is None


def prepared():
    X = counts(0, 60)[0]
    words = X * np.log(len(X) / np.maximum((X > 0).sum(axis=0), 1))
    depths = X.sum(axis=1, keepdims=True)
    return {"logarithms": np.log1p(X), "shares": 1e4 * X / depths, "tf-idf": words}


NO_COUNTS = "'counts' expects whole .* give"


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("name", prepared())
def test_what_is_no_longer_counts_is_named(name, kind):
    X = kind(prepared()[name])
    for fit in (Biwhitener("counts").fit, IhSC(4, columns="counts").fit):
        with pytest.warns(PreparationWarning, match=NO_COUNTS):
            fit(X)


@pytest.mark.filterwarnings(
    "ignore:Clusters that are found without batch",
    "ignore:Some clusters are in one batch alone",
)
def test_what_is_no_longer_counts_is_named_in_batches():
    X = prepared()["tf-idf"]
    with pytest.warns(PreparationWarning, match=NO_COUNTS):
        IhSC(4, columns="counts").fit(X, batch=np.arange(len(X)) % 2)


@pytest.mark.parametrize("total", [None, 1e4, "median"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_logarithms_show_by_themselves(total, dtype):
    X = bursts(0, 0.3)[0]
    depths = X.sum(axis=1, keepdims=True)
    scaled = X if total is None else X / depths * np.median(depths)
    scaled = 1e4 * X / depths if total == 1e4 else scaled
    logs = np.log1p(scaled).astype(dtype)
    for subset in (logs, logs[:, np.argsort(-X.var(axis=0))[:60]]):
        data = as_matrix(sp.csr_array(subset))
        assert preparation_of_counts(data, False) == "logged"


def test_other_fractions_are_no_logarithms():
    X = bursts(0, 0.3)[0]
    rng = np.random.default_rng(0)
    poisson_counts = counts(0, 60)[0]
    matrices = [
        prepared()["shares"],
        prepared()["tf-idf"],
        X / X.sum(axis=1, keepdims=True),
        X,
        poisson_counts,
        poisson_counts / 7,
        np.sqrt(poisson_counts),
        rng.gamma(0.5, size=X.shape) * (X > 0),
        np.log2(1 + poisson_counts),
        100 * X + 0.5,
    ]
    for data in matrices:
        assert preparation_of_counts(as_matrix(data), False) is None


def test_counts_are_whitened_without_a_word():
    X = counts(0, 60)[0]
    is_estimated = (np.random.default_rng(0).random(X.shape) < 0.05) & (X > 0)
    estimated_counts = X + 0.3 * is_estimated
    for data in (X, X.astype(int), sp.csr_array(X), estimated_counts):
        whitener(data)

    gaps = X.copy()
    gaps[3, :5] = np.nan
    model = IhSC(4, columns="counts", missing="fit", random_state=0).fit(gaps)

    assert model.preparation_[1].noise == "counts"

    with pytest.warns(UserWarning, match="X looks like counts"):
        IhGMM(4, missing="fit", random_state=0).fit(gaps)

    logs = np.log1p(X)

    assert Biwhitener("auto").fit(logs).noise_ == "learned"
