import dataclasses
import json
import re
from dataclasses import replace

import dask.array as da
import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_iris
from sklearn.metrics import roc_auc_score

from ihgmm import (
    IhSC,
    UnstableLabelsWarning,
    diagnose,
    estimate_parameters,
    make_ihgmm,
    scale_heterogeneity_test,
)
from ihgmm._checks import check_matrix
from ihgmm.matrix import to_host
from ihgmm.metrics import misclassification_rate
from ihgmm.policy import Trust
from ihgmm.statistics.calibration import error_range, expected_error
from ihgmm.statistics.cautions import OneValueColumn, OtherClusters, RulingColumn
from ihgmm.statistics.diagnosis import Verdict
from ihgmm.statistics.refits import refit_halves
from ihgmm.words.diagnoses import caution_text, trust_sentence
from ihgmm.words.phrases import percent

pytestmark = pytest.mark.filterwarnings("ignore:Labels may be unstable")


def kinds(diagnosis):
    return [type(caution) for caution in diagnosis.cautions]


def fitted(n, p, k, *, seed=0, **settings):
    """Data, the labels found, and the share of them that is wrong."""
    X, truth = make_ihgmm(n, p, k, random_state=seed, **settings)
    labels = IhSC(k, random_state=0).fit_predict(X)
    return X, labels, misclassification_rate(truth, labels)


@pytest.fixture(scope="module")
def eighty():
    """Eighty rows, the labels found, and the diagnosis of these."""
    X, labels, _ = fitted(80, 30, 3, separation_constant=0.5)
    return X, labels, diagnose(X, labels)


def figures(diagnosis):
    """Everything but the words and the names of clusters."""
    values = dataclasses.asdict(diagnosis)
    del values["cautions"], values["classes"]
    return values


@pytest.mark.parametrize("seed", range(2))
def test_rows_between_two_clusters_are_the_least_certain(seed):
    # All fits are sure of every label, of sums of two rows as well; no two rows tie.
    X, labels = make_ihgmm(300, 80, 4, scale_ratio=2, random_state=seed)
    pairs = np.random.default_rng(seed).permutation(300).reshape(-1, 2)[:30]
    pairs = pairs[labels[pairs[:, 0]] != labels[pairs[:, 1]]]
    X = np.vstack([X, X[pairs[:, 0]] + X[pairs[:, 1]]])
    model = IhSC(4, random_state=0).fit(X)
    certainty = diagnose(X, model.labels_).certainty

    assert len(np.unique(certainty)) > 0.98 * len(X)

    is_between = np.arange(len(X)) >= 300

    assert roc_auc_score(is_between, -certainty) > 0.95


def test_figures_are_those_of_their_definitions():
    X, labels, _ = fitted(120, 60, 3, balance=0.5, separation_constant=0.4)
    diagnosis = diagnose(X, labels)

    assert (diagnosis.n_samples, diagnosis.n_features) == (120, 60)
    assert diagnosis.n_clusters == 3
    assert diagnosis.sizes.tolist() == np.bincount(labels).tolist()
    assert diagnosis.expected_error == pytest.approx(np.mean(1 - diagnosis.certainty))

    share = np.mean(diagnosis.certainty < 0.9)

    assert diagnosis.uncertain_share == pytest.approx(share)

    mean = np.average(diagnosis.cluster_stability, weights=diagnosis.sizes)

    assert diagnosis.stability == pytest.approx(mean)

    lower, upper = diagnosis.error_range

    assert lower < diagnosis.expected_error < upper

    # A verdict goes by the expected error, and the summary names it.
    assert f"{diagnosis.expected_error:.1%}" in str(diagnosis)


def test_trust_is_two_sentences_with_three_figures_at_most():
    for constant in (0.1, 0.3, 2.0):
        X, labels, _ = fitted(300, 60, 3, separation_constant=constant)
        diagnosis = diagnose(X, labels)
        lower, upper = diagnosis.error_range
        words = trust_sentence(diagnosis)

        assert f"keeps {percent(diagnosis.stability)} of the labels;" in words
        assert f"as clear, {lower:.0%} to {upper:.0%} were wrong." in words
        assert words.count(". ") == 1
        assert len(re.findall(r"[0-9.]+%", words)) == 3
        assert " ".join(str(diagnosis).split()).startswith(words)


@pytest.mark.parametrize("k", [2, 3, 10, 30])
def test_on_real_data_some_labels_are_wrong_also_where_nothing_is_in_doubt(k):
    error = expected_error(doubt=0.0, n=100_000, k=k)
    lower, upper = error_range(error, k)

    assert 0.01 < error < Trust.WELL_SEPARATED
    assert lower < 0.005
    assert upper > 0.35


def test_doubt_of_fits_to_few_rows_means_less():
    few_rows = expected_error(doubt=0.1, n=60, k=3)
    many_rows = expected_error(doubt=0.1, n=900, k=3)

    assert few_rows < 0.7 * many_rows
    # Fits are of 2,000 rows at most, whatever the data have.
    assert expected_error(0.1, 2_000, 10) == pytest.approx(
        expected_error(0.1, 10**6, 10), rel=1e-3
    )


def test_the_mean_of_certainties_is_that_of_the_expected_error_for_many_rows():
    X, labels, _ = fitted(12_000, 20, 3, separation_constant=0.15)
    diagnosis = diagnose(X, labels)

    mean = np.mean(1 - diagnosis.certainty)

    assert 0.01 < diagnosis.expected_error < 0.6
    assert mean == pytest.approx(diagnosis.expected_error, rel=0.02)


@pytest.mark.parametrize(
    ("n", "p", "constants"),
    [(300, 60, [0.1, 0.3, 0.4, 0.7, 2.0]), (120, 600, [0.1, 0.4, 0.7])],
)
def test_expected_error_and_verdict_follow_the_true_error(n, p, constants):
    bands = {
        Verdict.WELL_SEPARATED: (0, 0.01),
        Verdict.SEPARATED: (0, 0.1),
        Verdict.OVERLAPPING: (0.03, 0.5),
        Verdict.NO_SEPARATION: (0.25, 1),
    }
    expected = []
    errors = []
    for constant in constants:
        options = {"scale_ratio": 3.0, "separation_constant": constant}
        X, labels, error = fitted(n, p, 3, **options)
        diagnosis = diagnose(X, labels)
        lower, upper = bands[diagnosis.verdict]
        assert lower <= error <= upper, (constant, diagnosis.expected_error)
        expected.append(diagnosis.expected_error)
        errors.append(error)

    assert expected == sorted(expected, reverse=True)
    assert errors == sorted(errors, reverse=True)


@pytest.mark.parametrize(("n", "p", "k"), [(200, 40, 2), (100, 400, 8)])
def test_noise_is_no_separation(n, p, k):
    rng = np.random.default_rng(k)
    X = rng.standard_normal((n, p)) * rng.uniform(0.5, 1.5, (n, 1))
    diagnosis = diagnose(X, IhSC(k, random_state=0).fit_predict(X))

    assert diagnosis.verdict is Verdict.NO_SEPARATION
    assert "if every row went to the largest cluster" in trust_sentence(diagnosis)


def test_wrong_labels_are_seen_through():
    # Fits do not see the labels, and none sees the row that it judges.
    X, labels = make_ihgmm(200, 60, 4, random_state=0)
    diagnosis = diagnose(X, np.random.default_rng(0).permutation(labels))

    assert diagnosis.verdict == "no separation: do not trust these labels"
    assert kinds(diagnosis) == [OtherClusters]
    assert "in the same order" in str(diagnosis.cautions[0])

    # Of a fit of IhSC nobody says that IhSC finds others.
    model = IhSC(4, random_state=0).fit(X)
    model.labels_ = np.random.default_rng(0).permutation(labels)
    message = str(diagnose(X, model).cautions[0])

    assert "Ask for another number." in message
    assert "IhSC" not in message

    moved_labels = labels.copy()
    is_moved = np.arange(200) < 20
    moved_labels[is_moved] = (moved_labels[is_moved] + 1) % 4
    diagnosis = diagnose(X, moved_labels)

    assert diagnosis.stability == pytest.approx(0.9)

    shares = [np.mean(~is_moved[moved_labels == k]) for k in range(4)]

    assert_allclose(diagnosis.cluster_stability, shares)
    assert diagnosis.error_range[0] < 0.1 < diagnosis.error_range[1]
    assert diagnosis.certainty[is_moved].max() < diagnosis.certainty[~is_moved].min()
    assert "90.0%  of labels stay" in str(diagnosis)

    moved_labels[20:68] = (moved_labels[20:68] + 1) % 4
    caution = diagnose(X, moved_labels).cautions[0]

    assert isinstance(caution, OtherClusters)
    assert caution.agreement > 0.95
    assert "in the same order" not in str(caution)


def test_one_population_is_not_said_to_be_several():
    for seed in range(3):
        rng = np.random.default_rng(seed)
        center = 3 * rng.standard_normal(40)
        X = center * rng.lognormal(0, 0.5, (300, 1)) + rng.standard_normal((300, 40))
        for k in (2, 4):
            diagnosis = diagnose(X, IhSC(k, random_state=0).fit(X))
            assert diagnosis.verdict in (Verdict.NO_SEPARATION, Verdict.OVERLAPPING)


@pytest.mark.parametrize("seed", range(3))
def test_strong_factors_of_noise_are_never_called_separated(seed):
    # Eight factors longer than the centres are taken for clusters; 1% is possible.
    rng = np.random.default_rng(seed)
    labels = np.arange(300) % 4
    centers, factors = np.split(np.linalg.qr(rng.standard_normal((100, 12)))[0].T, [4])
    X = 6 * rng.lognormal(0, 0.5, (300, 1)) * centers[labels]
    X += 10 * rng.standard_normal((300, 8)) @ factors + rng.standard_normal((300, 100))

    with pytest.warns(UnstableLabelsWarning, match="may be unstable"):
        model = IhSC(4).fit(X)

    diagnosis = diagnose(X, model)

    assert diagnosis.verdict in (Verdict.NO_SEPARATION, Verdict.OVERLAPPING)
    assert diagnosis.error_range[0] > 0.25
    assert misclassification_rate(labels, model.labels_) > 0.4


@pytest.mark.parametrize("seed", range(2))
def test_noise_without_a_variance_is_said_to_overlap_until_cells_are_left_out(seed):
    rng = np.random.default_rng(seed)
    labels = np.arange(300) % 4
    centers = 6 * np.linalg.qr(rng.standard_normal((100, 4)))[0].T
    noise = rng.standard_t(1.5, (300, 100)) / np.sqrt(3)
    X = rng.lognormal(0, 0.5, (300, 1)) * centers[labels] + noise
    model = IhSC(4).fit(X)
    cell_model = IhSC(4, outliers="cells").fit(X)

    assert 0.1 < misclassification_rate(labels, model.labels_) < 0.25
    assert misclassification_rate(labels, cell_model.labels_) < 0.1
    assert diagnose(X, model).verdict is Verdict.OVERLAPPING

    diagnosis = diagnose(X, cell_model)

    assert diagnosis.verdict is Verdict.SEPARATED
    assert diagnosis.expected_error < 0.75 * diagnose(X, model).expected_error


def test_iris_is_said_to_be_mostly_right():
    X = load_iris().data
    diagnosis = diagnose(X, IhSC(3, random_state=0).fit(X))

    assert diagnosis.expected_error < 0.15
    assert diagnosis.error_range[0] < 0.027 < diagnosis.error_range[1]
    assert diagnosis.verdict is Verdict.SEPARATED
    assert trust_sentence(diagnosis).startswith("Mostly reliable. Refitting on other")
    assert diagnosis.cautions == ()


@pytest.mark.parametrize(
    ("change", "rtol"),
    [
        (lambda X: X.astype(np.float32), 1e-3),
        (lambda X: X * 1e-180, 1e-6),
        (lambda X: X * 1e140, 1e-6),
    ],
)
def test_types_units_and_names_of_labels_do_not_matter(eighty, change, rtol):
    X, labels, expected = eighty
    names = np.array(["ant", "bee", "cat"])[labels]
    diagnosis = figures(diagnose(change(X), names))
    for name, value in figures(expected).items():
        assert_allclose(diagnosis[name], value, rtol=rtol, atol=rtol / 10, err_msg=name)


def test_one_cluster():
    X, _ = make_ihgmm(50, 20, 1, random_state=0)
    diagnosis = diagnose(X, np.zeros(50))

    assert diagnosis.verdict == "one cluster: nothing to separate"
    assert diagnosis.expected_error == 0
    assert diagnosis.error_range == (0, 0)
    assert diagnosis.stability == 1
    assert (diagnosis.certainty == 1).all()
    assert "stability" not in str(diagnosis)


def test_too_few_rows_to_judge():
    assert diagnose([[2.0]], ["a"]).cautions == ()
    for X, labels in ((np.eye(4), range(4)), make_ihgmm(6, 20, 5, random_state=0)):
        diagnosis = diagnose(X, labels)
        assert diagnosis.verdict is Verdict.NOT_KNOWN
        assert np.isnan([diagnosis.stability, diagnosis.expected_error]).all()
        assert np.isnan(diagnosis.error_range).all()
        assert np.isnan(diagnosis.certainty).all()
        assert "stability" not in str(diagnosis)


def test_zero_rows_count_in_sizes_only(eighty):
    X, labels, expected = eighty
    with_zeros = np.vstack([X, np.zeros((20, 30))])
    diagnosis = diagnose(with_zeros, np.append(labels, np.zeros(20, dtype=int)))

    assert diagnosis.sizes.sum() == 100
    assert diagnosis.expected_error == pytest.approx(expected.expected_error, rel=0.1)

    messages = [str(caution) for caution in diagnosis.cautions]

    assert "The labels of 20 rows of zeros mean nothing." in messages

    with pytest.raises(ValueError, match="All 4 rows of X are zero"):
        diagnose(np.zeros((4, 2)), [0, 0, 1, 1])


def test_clusters_with_too_few_rows_are_named():
    X, labels = make_ihgmm(300, 50, 3, random_state=0)
    labels[:2] = 7
    labels[2] = 9
    diagnosis = diagnose(X, labels)

    assert np.isnan(diagnosis.cluster_stability).tolist() == [False] * 3 + [True] * 2
    assert "2  of the clusters have too few rows to judge: 7, 9" in str(diagnosis)
    assert np.argmin(diagnosis.certainty) < 3


@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_a_column_that_rules_is_named_wherever_its_zero_lies(offset):
    X, labels = make_ihgmm(200, 20, 2, random_state=0)
    X[:, 7] = 1e3 * np.random.default_rng(0).standard_normal(200) + offset
    diagnosis = diagnose(X, labels)
    (ruling,) = (c for c in diagnosis.cautions if isinstance(c, RulingColumn))

    assert ruling.column == 7
    assert ruling.share > 0.9

    text = " ".join(map(str, diagnosis.cautions))

    assert "more than all others together. If" in text
    assert "ColumnScaler makes them comparable" in text

    names = [f"x{j}" for j in range(20)]
    messages = [caution_text(c, names, prepared=True) for c in diagnosis.cautions]

    assert "Column 'x7' holds" in str(messages)
    assert "Leave it out" in str(messages)

    ruling_of_two = replace(ruling, column=0)

    assert "Leave it out" not in caution_text(ruling_of_two, names[:2], prepared=True)

    messages = [caution_text(c, prepared=True) for c in diagnosis.cautions]

    assert "Leave it out to see what the others show." in " ".join(messages)


@pytest.mark.parametrize("n_sharing", [0, 4])
def test_a_column_with_one_value_in_each_cluster_is_named(n_sharing):
    X, labels = make_ihgmm(200, 20, 2, random_state=0)
    sharing_rows = np.flatnonzero(labels)[:n_sharing]
    labels[sharing_rows] = 2
    # A word that four rows share is nothing.
    X[:, 3] = labels == 2 if n_sharing else labels
    X[:, 5] = 7  # constant
    X[:, 6] = labels * np.arange(200)  # constant in one cluster only
    cautions = [c for c in diagnose(X, labels).cautions if "one value" in str(c)]
    expected = [OneValueColumn(column=3, other_columns=(), clusters=(0, 1))]

    assert cautions == ([] if n_sharing else expected)

    diagnosis = diagnose(X[:20, :5], np.arange(20) // 2)

    assert OneValueColumn not in kinds(diagnosis)

    # A column may set apart one of three, and is named before one that sets none.
    thirds = np.arange(200) * 3 // 200
    X[:, 3] = np.isin(thirds, (0, 3))
    X[:, 4] = thirds == 1
    cautions = [c for c in diagnose(X, thirds).cautions if "one value" in str(c)]

    assert cautions[0] == OneValueColumn(column=3, other_columns=(4,), clusters=(0,))

    sentence = "of column 3, and of 4: each may decide some clusters alone."

    assert sentence in str(cautions[0])


def test_refits_know_the_labels_that_were_given():
    # Rows have a strong pattern, by which they are clustered, and a faint one.
    rng = np.random.default_rng(0)
    strong = np.arange(240) % 2
    faint = np.arange(240) // 120
    X = 3 * np.eye(2, 20)[strong] + 1.8 * np.eye(2, 20, 10)[faint]
    X = rng.lognormal(0, 0.5, (240, 1)) * X + 0.3 * rng.standard_normal((240, 20))
    known_labels = np.where(rng.random(240) < 0.3, faint, -1)
    model = IhSC(2).fit(X, known_labels=known_labels)

    assert misclassification_rate(faint, model.labels_) < 0.05
    assert diagnose(X, model).stability > 0.9
    assert diagnose(X, model.labels_).stability < 0.7


def test_labels_that_were_given_are_not_judged():
    X, labels, _ = fitted(200, 40, 3, separation_constant=0.5)
    known_labels = np.where(np.arange(200) < 50, np.roll(labels, 1), -1)
    model = IhSC(3).fit(X, known_labels=known_labels)
    diagnosis = diagnose(X, model)

    assert diagnosis.n_given == 50
    assert (diagnosis.certainty[:50] == 1).all()

    certainty = diagnosis.certainty[50:]

    assert diagnosis.expected_error == pytest.approx(np.mean(1 - certainty))
    assert diagnosis.uncertain_share == np.mean(certainty < 0.9)

    shares = np.bincount(model.labels_[50:]) / 150
    stability = diagnosis.cluster_stability @ shares

    assert diagnosis.stability == pytest.approx(stability)
    assert "(the 50 labels given aside). Refitting" in trust_sentence(diagnosis)
    assert diagnosis.largest_share == shares.max()
    assert "50  labels were given" in str(diagnosis)

    model = IhSC(3).fit(X, known_labels=np.roll(labels, 1))
    diagnosis = diagnose(X, model)

    assert diagnosis.verdict is Verdict.GIVEN
    assert (diagnosis.certainty == 1).all()
    assert diagnosis.error_range == (0, 0)
    assert "wrong labels" not in str(diagnosis)

    sentence = f"without these labels, finds {diagnosis.stability:.1%}."

    assert sentence in trust_sentence(diagnosis)

    # Of a few rows beside given ones nothing is known.
    all_but_five = np.where(np.arange(200) < 195, labels, -1)
    diagnosis_of_five = diagnose(X, IhSC(3).fit(X, known_labels=all_but_five))

    assert diagnosis_of_five.verdict is Verdict.NOT_KNOWN
    assert (diagnosis_of_five.certainty[:195] == 1).all()
    assert np.isnan(diagnosis_of_five.certainty[195:]).all()

    # Rows of a later call are others.
    assert diagnose(X, model.partial_fit(X)).n_given == 0


def test_a_verdict_is_its_sentence():
    verdict = Verdict.WELL_SEPARATED

    assert json.dumps({"verdict": verdict}) == '{"verdict": "well separated"}'
    assert repr(verdict) == "'well separated'"


@pytest.mark.parametrize(
    ("ask", "same"),
    [
        (diagnose, lambda a, b: str(a) == str(b)),
        (estimate_parameters, lambda a, b: np.array_equal(a.scales, b.scales)),
        (scale_heterogeneity_test, lambda a, b: a.p_value == b.p_value),
    ],
)
def test_a_model_stands_for_its_labels(ask, same):
    X, _ = make_ihgmm(150, 30, 3, random_state=0)
    model = IhSC(3, random_state=0).fit(X)
    expected = ask(X, model.labels_)

    assert same(ask(X, model), expected)

    with pytest.raises(ValueError, match=r"This IhSC has no labels_; fit it first"):
        ask(X, IhSC(3))
    with pytest.raises(TypeError, match="X is of type IhSC, which is no data"):
        ask(model, X)


def test_rows_beyond_the_sample_are_judged_alike():
    X, labels = make_ihgmm(400, 40, 3, separation_constant=0.5, random_state=0)
    X = np.vstack([X, np.zeros((2, 40))])
    codes = np.append(labels, [0, 0])
    data = check_matrix(X)
    full = refit_halves(data, codes, 3, np.random.default_rng(0), max_rows=402)
    sampled = refit_halves(data, codes, 3, np.random.default_rng(0), max_rows=150)
    for refits in (full, sampled):
        for values in (refits.stability, refits.doubt, refits.lead):
            assert values.shape == (402,)
            assert (values[-2:] == 0).all()

    assert sampled.doubt[:-2].mean() == pytest.approx(full.doubt[:-2].mean(), abs=0.05)
    assert np.corrcoef(sampled.lead[:-2], full.lead[:-2])[0, 1] > 0.7
    assert sampled.stability.mean() == pytest.approx(full.stability.mean(), abs=0.03)


def test_blocks_of_rows_are_judged_as_the_whole():
    # Rows of the sample are in all blocks, and others too.
    X, labels = make_ihgmm(600, 20, 3, separation_constant=0.4, random_state=0)
    in_blocks = check_matrix(da.from_array(X, chunks=(170, 20)))

    def refits(data):
        codes = data.to_device(labels)
        return refit_halves(data, codes, 3, np.random.default_rng(0), max_rows=300)

    expected = refits(check_matrix(X))
    result = refits(in_blocks)
    for name in ("stability", "doubt", "lead"):
        values = to_host(getattr(result, name))
        assert_allclose(values, getattr(expected, name), rtol=1e-9, err_msg=name)


@pytest.mark.parametrize("options", [{"signed": True}, {"columns": "noise"}])
def test_rows_with_missing_cells_are_not_the_more_certain(options):
    # Cells filled by their means make rows look like their cluster: judged by these
    # alone, the certainty of such rows is larger by 0.12.
    X, _ = make_ihgmm(
        300, 300, 3, noise_levels=1.0, separation_constant=0.25, scale_ratio=2,
        random_state=1,
    )  # fmt: skip
    is_incomplete = np.arange(300) % 2 == 0
    is_missing = np.random.default_rng(1).random(X.shape) < 0.6
    X[is_incomplete[:, None] & is_missing] = np.nan
    model = IhSC(3, missing="fit", random_state=0, **options).fit(X)
    certainty = diagnose(X, model).certainty

    assert certainty[is_incomplete].mean() < certainty[~is_incomplete].mean() + 0.05
