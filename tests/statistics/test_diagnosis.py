import dataclasses
import json
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
from ihgmm.statistics.cautions import OneValueColumn, OtherClusters, RulingColumn
from ihgmm.statistics.diagnosis import Verdict
from ihgmm.statistics.refits import refit_halves
from ihgmm.words.diagnoses import caution_text, trust_sentence

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


def figures(found):
    """Everything but the words and the names of clusters."""
    values = dataclasses.asdict(found)
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
    between = np.arange(len(X)) >= 300
    assert roc_auc_score(between, -certainty) > 0.95


def test_figures_are_those_of_their_definitions():
    X, labels, _ = fitted(120, 60, 3, balance=0.5, separation_constant=0.4)
    found = diagnose(X, labels)
    assert (found.n_samples, found.n_features, found.n_clusters) == (120, 60, 3)
    assert found.sizes.tolist() == np.bincount(labels).tolist()
    assert found.expected_error == pytest.approx(np.mean(1 - found.certainty))
    assert found.uncertain_share == pytest.approx(np.mean(found.certainty < 0.9))
    mean = np.average(found.cluster_stability, weights=found.sizes)
    assert found.stability == pytest.approx(mean)
    low, high = found.error_range
    assert low < found.expected_error < high
    # A verdict goes by the expected error, and the words name it.
    for words in (trust_sentence(found), str(found)):
        assert f"{found.expected_error:.1%}" in words


def test_the_mean_of_certainties_is_that_of_the_expected_error_for_many_rows():
    X, labels, _ = fitted(12_000, 20, 3, separation_constant=0.15)
    found = diagnose(X, labels)
    assert 0.01 < found.expected_error < 0.6
    assert np.mean(1 - found.certainty) == pytest.approx(found.expected_error, rel=0.02)


@pytest.mark.parametrize(
    ("n", "p", "constants"),
    [(300, 60, [0.1, 0.3, 0.4, 0.7, 2.0]), (120, 600, [0.1, 0.4, 0.7])],
)
def test_expected_error_and_verdict_follow_the_true_error(n, p, constants):
    bands = {
        Verdict.WELL_SEPARATED: (0, 0.01),
        Verdict.SEPARATED: (0, 0.18),
        Verdict.OVERLAPPING: (0.03, 0.5),
        Verdict.NO_SEPARATION: (0.25, 1),
    }
    expected, errors = [], []
    for constant in constants:
        options = {"scale_ratio": 3.0, "separation_constant": constant}
        X, labels, error = fitted(n, p, 3, **options)
        found = diagnose(X, labels)
        low, high = bands[found.verdict]
        assert low <= error <= high, (constant, found.expected_error)
        expected.append(found.expected_error)
        errors.append(error)
    assert expected == sorted(expected, reverse=True)
    assert errors == sorted(errors, reverse=True)


@pytest.mark.parametrize(("n", "p", "k"), [(200, 40, 2), (100, 400, 8)])
def test_noise_is_no_separation(n, p, k):
    rng = np.random.default_rng(k)
    X = rng.standard_normal((n, p)) * rng.uniform(0.5, 1.5, (n, 1))
    found = diagnose(X, IhSC(k, random_state=0).fit_predict(X))
    assert found.verdict is Verdict.NO_SEPARATION
    assert "if every row went to the largest cluster" in trust_sentence(found)


def test_wrong_labels_are_seen_through():
    # Fits do not see the labels, and none sees the row that it judges.
    X, labels = make_ihgmm(200, 60, 4, random_state=0)
    found = diagnose(X, np.random.default_rng(0).permutation(labels))
    assert found.verdict == "no separation: do not trust these labels"
    assert kinds(found) == [OtherClusters]
    assert "in the same order" in str(found.cautions[0])
    # Of a fit of IhSC nobody says that IhSC finds others.
    model = IhSC(4, random_state=0).fit(X)
    model.labels_ = np.random.default_rng(0).permutation(labels)
    own = str(diagnose(X, model).cautions[0])
    assert "Ask for another number." in own
    assert "IhSC" not in own
    some, moved = labels.copy(), np.arange(200) < 20
    some[moved] = (some[moved] + 1) % 4
    found = diagnose(X, some)
    assert found.stability == pytest.approx(0.9)
    stay = [np.mean(~moved[some == k]) for k in range(4)]
    assert_allclose(found.cluster_stability, stay)
    assert found.error_range[0] < 0.1 < found.error_range[1]
    assert found.certainty[moved].max() < found.certainty[~moved].min()
    assert "90.0%  of labels stay" in str(found)
    some[20:68] = (some[20:68] + 1) % 4
    caution = diagnose(X, some).cautions[0]
    assert isinstance(caution, OtherClusters)
    assert caution.agreement > 0.95
    assert "in the same order" not in str(caution)


def test_one_population_is_not_said_to_be_several():
    for seed in range(3):
        rng = np.random.default_rng(seed)
        center = 3 * rng.standard_normal(40)
        X = center * rng.lognormal(0, 0.5, (300, 1)) + rng.standard_normal((300, 40))
        for k in (2, 4):
            found = diagnose(X, IhSC(k, random_state=0).fit(X))
            assert found.verdict in (Verdict.NO_SEPARATION, Verdict.OVERLAPPING)


@pytest.mark.parametrize("seed", range(3))
def test_strong_factors_of_noise_are_never_called_separated(seed):
    # Eight factors longer than the centres are taken for clusters; 1% is possible.
    rng, z = np.random.default_rng(seed), np.arange(300) % 4
    centers, factors = np.split(np.linalg.qr(rng.standard_normal((100, 12)))[0].T, [4])
    X = 6 * rng.lognormal(0, 0.5, (300, 1)) * centers[z]
    X += 10 * rng.standard_normal((300, 8)) @ factors + rng.standard_normal((300, 100))
    with pytest.warns(UnstableLabelsWarning, match="may be unstable"):
        model = IhSC(4).fit(X)
    found = diagnose(X, model)
    assert found.verdict in (Verdict.NO_SEPARATION, Verdict.OVERLAPPING)
    assert found.error_range[0] > 0.25
    assert misclassification_rate(z, model.labels_) > 0.4


@pytest.mark.parametrize("seed", range(2))
def test_noise_without_a_variance_is_said_to_overlap_until_cells_are_left_out(seed):
    rng, z = np.random.default_rng(seed), np.arange(300) % 4
    centers = 6 * np.linalg.qr(rng.standard_normal((100, 4)))[0].T
    noise = rng.standard_t(1.5, (300, 100)) / np.sqrt(3)
    X = rng.lognormal(0, 0.5, (300, 1)) * centers[z] + noise
    plain, cells = IhSC(4).fit(X), IhSC(4, outliers="cells").fit(X)
    assert 0.1 < misclassification_rate(z, plain.labels_) < 0.25
    assert misclassification_rate(z, cells.labels_) < 0.1
    assert diagnose(X, plain).verdict is Verdict.OVERLAPPING
    found = diagnose(X, cells)
    assert found.verdict is Verdict.SEPARATED
    assert found.error_range[0] < 0.04


def test_iris_is_said_to_be_mostly_right():
    X = load_iris().data
    found = diagnose(X, IhSC(3, random_state=0).fit(X))
    assert found.expected_error < 0.12
    assert found.error_range[0] < 0.033 < found.error_range[1]
    assert found.verdict is Verdict.SEPARATED
    assert found.cautions == ()


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
    found = figures(diagnose(change(X), names))
    for name, value in figures(expected).items():
        assert_allclose(found[name], value, rtol=rtol, atol=rtol / 10, err_msg=name)


def test_one_cluster():
    X, _ = make_ihgmm(50, 20, 1, random_state=0)
    found = diagnose(X, np.zeros(50))
    assert found.verdict == "one cluster: nothing to separate"
    assert found.expected_error == 0
    assert found.error_range == (0, 0)
    assert found.stability == 1
    assert (found.certainty == 1).all()
    assert "stability" not in str(found)


def test_too_few_rows_to_judge():
    assert diagnose([[2.0]], ["a"]).cautions == ()
    for X, labels in ((np.eye(4), range(4)), make_ihgmm(6, 20, 5, random_state=0)):
        found = diagnose(X, labels)
        assert found.verdict is Verdict.NOT_KNOWN
        unknown = [found.stability, found.expected_error, *found.error_range]
        assert np.isnan([*unknown, *found.certainty]).all()
        assert "stability" not in str(found)


def test_zero_rows_count_in_sizes_only(eighty):
    X, labels, expected = eighty
    more = np.vstack([X, np.zeros((20, 30))])
    found = diagnose(more, np.append(labels, np.zeros(20, dtype=int)))
    assert found.sizes.sum() == 100
    assert found.expected_error == pytest.approx(expected.expected_error, rel=0.1)
    assert "The labels of 20 rows of zeros mean nothing." in map(str, found.cautions)
    with pytest.raises(ValueError, match="All 4 rows of X are zero"):
        diagnose(np.zeros((4, 2)), [0, 0, 1, 1])


def test_clusters_with_too_few_rows_are_named():
    X, labels = make_ihgmm(300, 50, 3, random_state=0)
    labels[:2], labels[2] = 7, 9
    found = diagnose(X, labels)
    assert np.isnan(found.cluster_stability).tolist() == [False] * 3 + [True] * 2
    assert "2  of the clusters have too few rows to judge: 7, 9" in str(found)
    assert np.argmin(found.certainty) < 3


@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_a_column_that_rules_is_named_wherever_its_zero_lies(offset):
    X, labels = make_ihgmm(200, 20, 2, random_state=0)
    X[:, 7] = 1e3 * np.random.default_rng(0).standard_normal(200) + offset
    found = diagnose(X, labels)
    (ruling,) = (c for c in found.cautions if isinstance(c, RulingColumn))
    assert ruling.column == 7
    assert ruling.share > 0.9
    assert "more than all others together. If" in " ".join(map(str, found.cautions))
    assert "ColumnScaler makes them comparable" in " ".join(map(str, found.cautions))
    names = [f"x{j}" for j in range(20)]
    said = [caution_text(c, names, prepared=True) for c in found.cautions]
    assert "Column 'x7' holds" in str(said)
    assert "Leave it out" in str(said)
    of_two = replace(ruling, column=0)
    assert "Leave it out" not in caution_text(of_two, names[:2], prepared=True)
    said = [caution_text(c, prepared=True) for c in found.cautions]
    assert "Leave it out to see what the others show." in " ".join(said)


@pytest.mark.parametrize("n_few", [0, 4])
def test_a_column_with_one_value_in_each_cluster_is_named(n_few):
    X, labels = make_ihgmm(200, 20, 2, random_state=0)
    few = np.flatnonzero(labels)[:n_few]
    labels[few] = 2
    X[:, 3] = labels == 2 if n_few else labels  # a word that four rows share is nothing
    X[:, 5], X[:, 6] = 7, labels * np.arange(200)  # constant; in one cluster only
    (*found,) = (c for c in diagnose(X, labels).cautions if "one value" in str(c))
    expected = OneValueColumn(column=3, other_columns=(), clusters=(0, 1))
    assert found == [expected][n_few:]
    each = diagnose(X[:20, :5], np.arange(20) // 2)
    assert OneValueColumn not in kinds(each)
    # A column may set apart one of three, and is named before one that sets none.
    thirds = np.arange(200) * 3 // 200
    X[:, 3], X[:, 4] = np.isin(thirds, (0, 3)), thirds == 1
    (found, *_) = (c for c in diagnose(X, thirds).cautions if "one value" in str(c))
    assert found == OneValueColumn(column=3, other_columns=(4,), clusters=(0,))
    assert "of column 3, and of 4: each may decide some clusters alone." in str(found)


def test_refits_know_the_labels_that_were_given():
    # Rows have a strong pattern, by which they are clustered, and a faint one.
    rng, strong, faint = (
        np.random.default_rng(0),
        np.arange(240) % 2,
        np.arange(240) // 120,
    )
    X = 3 * np.eye(2, 20)[strong] + 1.8 * np.eye(2, 20, 10)[faint]
    X = rng.lognormal(0, 0.5, (240, 1)) * X + 0.3 * rng.standard_normal((240, 20))
    known = np.where(rng.random(240) < 0.3, faint, -1)
    model = IhSC(2).fit(X, known_labels=known)
    assert misclassification_rate(faint, model.labels_) < 0.05
    assert diagnose(X, model).stability > 0.9
    assert diagnose(X, model.labels_).stability < 0.7


def test_labels_that_were_given_are_not_judged():
    X, labels, _ = fitted(200, 40, 3, separation_constant=0.5)
    known = np.where(np.arange(200) < 50, np.roll(labels, 1), -1)
    found = diagnose(X, IhSC(3).fit(X, known_labels=known))
    assert found.n_given == 50
    assert (found.certainty[:50] == 1).all()
    assert found.expected_error == pytest.approx(np.mean(1 - found.certainty[50:]))
    assert found.uncertain_share == np.mean(found.certainty[50:] < 0.9)
    others = np.bincount(IhSC(3).fit(X, known_labels=known).labels_[50:]) / 150
    assert found.stability == pytest.approx(found.cluster_stability @ others)
    assert "labels, without the 50 given, would" in trust_sentence(found)
    assert found.largest_share == others.max()
    assert "50  labels were given" in str(found)
    model = IhSC(3).fit(X, known_labels=np.roll(labels, 1))
    found = diagnose(X, model)
    assert found.verdict is Verdict.GIVEN
    assert (found.certainty == 1).all()
    assert found.error_range == (0, 0)
    assert f"without them, find {found.stability:.1%} of them" in trust_sentence(found)
    assert "wrong labels" not in str(found)
    # Of a few rows beside given ones nothing is known.
    given = np.where(np.arange(200) < 195, labels, -1)
    few = diagnose(X, IhSC(3).fit(X, known_labels=given))
    assert few.verdict is Verdict.NOT_KNOWN
    assert (few.certainty[:195] == 1).all()
    assert np.isnan(few.certainty[195:]).all()
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
    plain = ask(X, model.labels_)
    assert same(ask(X, model), plain)
    with pytest.raises(ValueError, match=r"This IhSC has no labels_; fit it first"):
        ask(X, IhSC(3))
    with pytest.raises(TypeError, match="X is of type IhSC, which is no data"):
        ask(model, X)


def test_rows_beyond_the_sample_are_judged_alike():
    X, labels = make_ihgmm(400, 40, 3, separation_constant=0.5, random_state=0)
    X = np.vstack([X, np.zeros((2, 40))])
    codes = np.append(labels, [0, 0])
    full, few = (
        refit_halves(check_matrix(X), codes, 3, np.random.default_rng(0), max_rows=most)
        for most in (402, 150)
    )
    for found in (full, few):
        for view in (found.stability, found.doubt, found.lead):
            assert view.shape == (402,)
            assert (view[-2:] == 0).all()
    assert few.doubt[:-2].mean() == pytest.approx(full.doubt[:-2].mean(), abs=0.05)
    assert np.corrcoef(few.lead[:-2], full.lead[:-2])[0, 1] > 0.7
    assert few.stability.mean() == pytest.approx(full.stability.mean(), abs=0.03)


def test_blocks_of_rows_are_judged_as_the_whole():
    # Rows of the sample are in all blocks, and others too.
    X, labels = make_ihgmm(600, 20, 3, separation_constant=0.4, random_state=0)
    in_blocks = check_matrix(da.from_array(X, chunks=(170, 20)))
    expected, found = (
        refit_halves(
            data, data.to_device(labels), 3, np.random.default_rng(0), max_rows=300
        )
        for data in (check_matrix(X), in_blocks)
    )
    for name in ("stability", "doubt", "lead"):
        figures = to_host(getattr(found, name))
        assert_allclose(figures, getattr(expected, name), rtol=1e-9, err_msg=name)


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
