import dataclasses
import json

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.metrics import roc_auc_score

from ihgmm import (
    PSC,
    IhSC,
    SphericalKMeans,
    diagnose,
    estimate_parameters,
    make_ihgmm,
    scale_heterogeneity_test,
)
from ihgmm.matrix import as_matrix
from ihgmm.metrics import misclassification_rate
from ihgmm.numerics.gram import GRAMS, GramOperator
from ihgmm.numerics.hetero import impute_diagonal
from ihgmm.paper.theory import ihsc_threshold
from ihgmm.statistics.diagnosis import Caution, CautionKind, Verdict, diagnose_fit
from ihgmm.statistics.refits import refit_halves

pytestmark = pytest.mark.filterwarnings("ignore:In .* of the rows noise outweighs")


def kinds(diagnosis):
    return [caution.kind for caution in diagnosis.cautions]


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
    """Everything but the words and the name of the Gram matrix."""
    values = dataclasses.asdict(found)
    return {
        name: value
        for name, value in values.items()
        if name not in ("cautions", "gram", "classes")
    }


def test_a_row_does_not_judge_itself():
    # A row with the label of another cluster is found out, however many rows are so:
    # fits do not see the labels, and none sees the row that it judges.
    X, labels = make_ihgmm(120, 60, 3, random_state=0)
    wrong = labels.copy()
    wrong[::6] = (wrong[::6] + 1) % 3
    found = diagnose(X, wrong)
    assert found.disputed_share == pytest.approx(1 / 6)
    moved = np.arange(120) % 6 == 0
    assert found.certainty[moved].max() < found.certainty[~moved].min()
    assert found.refit_error == pytest.approx(1 / 6, abs=0.01)


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


def test_rows_beyond_those_that_are_drawn_have_positions_too():
    X, labels = make_ihgmm(3000, 20, 3, random_state=0)
    data = as_matrix(X)
    few, all_rows = (
        refit_halves(data, labels, 3, np.random.default_rng(0), max_rows=rows)
        for rows in (500, 3000)
    )
    assert few.position.shape == all_rows.position.shape == (3000,)
    assert np.median(np.abs(few.position - all_rows.position)) < 0.1


def test_figures_are_those_of_their_definitions():
    X, labels, _ = fitted(120, 60, 3, balance=0.5, separation_constant=0.4)
    found = diagnose(X, labels)
    assert (found.n_samples, found.n_features, found.n_clusters) == (120, 60, 3)
    assert found.sizes.tolist() == np.bincount(labels).tolist()
    assert found.balance == pytest.approx(3 * found.sizes.min() / 120)
    assert found.expected_error == pytest.approx(np.mean(1 - found.certainty))
    assert found.uncertain_share == pytest.approx(np.mean(found.certainty < 0.9))
    assert 0 <= found.agreement <= 1
    assert found.noise_directions == pytest.approx(60, rel=0.15)
    ratio = found.separation / ihsc_threshold(120, 60, 3)
    assert found.separation_ratio == pytest.approx(ratio)
    assert found.has_few_features == (3 * np.log(120) ** 2 > 60)


@pytest.mark.parametrize("gram", [g for g in GRAMS if g != "hetero"])
def test_eigenvalues_are_those_of_the_dense_matrix(gram):
    X, labels, _ = fitted(90, 40, 3, separation_constant=0.5)
    dense = np.linalg.eigvalsh(GramOperator.of(X, gram).toarray())[::-1]
    found = diagnose(X, labels, gram=gram, clip=None)
    assert_allclose(found.eigenvalues, dense[:4], rtol=1e-6)
    assert found.eigenvalue_gap == pytest.approx(dense[2] / dense[3])


@pytest.mark.parametrize("k", [2, 3])
def test_an_imputed_diagonal_is_that_of_the_fit(k):
    # Imputed at a rank larger than k it takes up noise, or clusters beyond k.
    X, _ = make_ihgmm(90, 40, 3, separation_constant=0.3, random_state=0)
    labels = IhSC(k, random_state=0).fit_predict(X)
    found = diagnose(X, labels, clip=None)
    imputed = impute_diagonal(GramOperator.of(X), k, tol=1e-6).gram.toarray()
    dense = np.linalg.eigvalsh(imputed)[::-1]
    assert_allclose(found.eigenvalues, dense[: k + 1], rtol=1e-3)
    assert found.eigenvalue_gap == pytest.approx(dense[k - 1] / dense[k], rel=1e-3)


@pytest.mark.parametrize(
    ("n", "p", "constant", "scale_ratio"),
    [(300, 100, 3.0, 1.0), (120, 1200, 1.0, 3.0), (300, 100, 3.0, 20.0)],
)
def test_separation_ratio_recovers_the_constant(n, p, constant, scale_ratio):
    # With noise left in, p = 1200 and the constant 1 would give 1.5 and more.
    ratios, smallest = [], []
    for seed in range(3):
        sample = make_ihgmm(
            n, p, 3, scale_ratio=scale_ratio, separation_constant=constant,
            random_state=seed, return_params=True,
        )  # fmt: skip
        found = diagnose(sample.X, sample.labels)
        ratios.append(found.separation_ratio / constant)
        low, quarter = np.quantile(sample.scales, [0.05, 0.25])
        smallest.append(max(low - (quarter - low) / 4, low / 2))
    assert_allclose(ratios, smallest, rtol=0.35)
    assert np.mean(ratios) == pytest.approx(np.mean(smallest), rel=0.15)
    few = 0.2 if scale_ratio < 10 else 1.2  # quantiles of so few rows vary
    assert_allclose(ratios, 1.0, atol=few)


@pytest.mark.parametrize(("n", "p"), [(400, 60), (150, 1000)])
@pytest.mark.parametrize(("scale_ratio", "low", "high"), [(1, 1, 1.4), (5, 3.3, 5)])
def test_scale_ratio_is_free_of_noise(n, p, scale_ratio, low, high):
    X, labels = make_ihgmm(
        n, p, 3, scale_ratio=scale_ratio, separation_constant=1.0, random_state=0
    )
    assert low <= diagnose(X, labels).scale_ratio < high


@pytest.mark.parametrize(
    ("n", "p", "constants"),
    [(300, 60, [0.1, 0.3, 0.4, 0.7, 2.0]), (120, 600, [0.1, 0.4, 0.7])],
)
def test_expected_error_and_verdict_follow_the_true_error(n, p, constants):
    bands = {
        Verdict.WELL_SEPARATED: (0, 0.01),
        Verdict.SEPARATED: (0.002, 0.15),
        Verdict.OVERLAPPING: (0.03, 0.35),
        Verdict.NO_SEPARATION: (0.25, 1),  # of 16 draws, 2 are at 0.3 or below by luck
    }
    seen = set()
    for constant in constants:
        X, labels, error = fitted(
            n, p, 3, scale_ratio=3.0, separation_constant=constant
        )
        found = diagnose(X, labels)
        low, high = bands[found.verdict]
        assert low <= error <= high, (constant, found.expected_error)
        if 0.03 < error < 0.2:
            assert 0.6 < found.expected_error / error < 4
        seen.add(found.verdict)
    assert len(seen) >= len(constants) - 1


@pytest.mark.parametrize(("n", "p", "k"), [(200, 40, 2), (100, 400, 8)])
def test_noise_is_no_separation(n, p, k):
    rng = np.random.default_rng(k)
    X = rng.standard_normal((n, p)) * rng.uniform(0.5, 1.5, (n, 1))
    found = diagnose(X, IhSC(k, random_state=0).fit_predict(X))
    assert found.verdict is Verdict.NO_SEPARATION
    assert CautionKind.PURE_NOISE in kinds(found)
    assert "pure noise" in str(found)


def test_wrong_labels_are_seen_through():
    X, labels = make_ihgmm(200, 60, 4, random_state=0)
    found = diagnose(X, np.random.default_rng(0).permutation(labels))
    assert found.verdict == "no separation: do not trust these labels"
    assert found.agreement > 0.95
    assert CautionKind.OTHER_ORDER in kinds(found)
    assert CautionKind.PURE_NOISE not in kinds(found)
    assert "in the same order" in str(found)
    some = labels.copy()
    some[:20] = (some[:20] + 1) % 4
    found = diagnose(X, some)
    assert found.disputed_share == pytest.approx(0.1)
    assert 0.1 <= found.expected_error < 0.16
    assert found.certainty[:20].max() < found.certainty[20:].min()
    assert "10.0% of the rows fit another cluster better" in str(found)


def test_labels_of_any_kind_and_kinds_of_data(kind, eighty):
    X, labels, expected = eighty
    names = np.array(["ant", "bee", "cat"])[labels]
    found = figures(diagnose(kind(X), names))
    for name, value in figures(expected).items():
        assert_allclose(found[name], value, rtol=1e-6, atol=1e-9, err_msg=name)


def test_pandas(eighty):
    pd = pytest.importorskip("pandas")
    X, labels, expected = eighty
    found = diagnose(pd.DataFrame(X), pd.Series(labels, index=range(5, 85)))
    assert found.expected_error == expected.expected_error


def test_float32(eighty):
    X, labels, expected = eighty
    found = figures(diagnose(X.astype(np.float32), labels))
    for name, value in figures(expected).items():
        assert_allclose(found[name], value, rtol=1e-3, atol=1e-4, err_msg=name)


@pytest.mark.parametrize("unit", [1e-180, 1e140])
def test_units_do_not_matter(unit, eighty):
    X, labels, expected = eighty
    expected, found = figures(expected), figures(diagnose(X * unit, labels))
    values = expected.pop("eigenvalues")
    with np.errstate(under="ignore", over="ignore"):
        assert_allclose(found.pop("eigenvalues"), values * unit * unit, rtol=1e-6)
    for name, value in expected.items():
        assert_allclose(found[name], value, rtol=1e-6, atol=1e-9, err_msg=name)


def test_one_cluster():
    X, _ = make_ihgmm(50, 20, 1, random_state=0)
    found = diagnose(X, np.zeros(50))
    assert found.verdict == "one cluster: nothing to separate"
    assert found.expected_error == 0
    assert found.separation == found.separation_ratio == np.inf
    assert "separation" not in str(found)
    X, _ = make_ihgmm(50, 20, 2, random_state=0)
    assert any(
        "may be more clusters" in w
        for w in map(str, diagnose(X, np.zeros(50)).cautions)
    )


def test_a_single_number_and_rows_alone():
    found = diagnose([[2.0]], ["a"])
    assert np.isnan(found.eigenvalue_gap)
    assert "1 x 1" in str(found)
    found = diagnose(np.eye(4), range(4))
    assert np.isfinite(found.certainty).all()
    assert "4 clusters of 1 row\n" in str(found)


def test_cluster_of_one_row_and_small_clusters():
    X, labels = make_ihgmm(100, 40, 3, random_state=0)
    labels = labels + 10
    labels[0] = 7
    found = diagnose(X, labels)
    assert any(
        w.startswith("Cluster 7 has only 1 row:") for w in map(str, found.cautions)
    )
    assert np.isfinite(found.certainty).all()
    X, labels = make_ihgmm(300, 40, 3, balance=0.1, random_state=0)
    found = diagnose(X, labels)
    assert any(
        w.startswith("Cluster 2 has only 10 rows:") for w in map(str, found.cautions)
    )


def test_zero_rows_count_in_sizes_only(eighty):
    X, labels, expected = eighty
    more = np.vstack([X, np.zeros((20, 30))])
    found = diagnose(more, np.append(labels, np.zeros(20, dtype=int)))
    assert found.sizes.sum() == 100
    assert found.expected_error == pytest.approx(expected.expected_error, rel=0.1)
    assert "20 rows are zero: their labels mean nothing." in map(str, found.cautions)
    with pytest.raises(ValueError, match="All 4 rows of X are zero"):
        diagnose(np.zeros((4, 2)), [0, 0, 1, 1])


def test_without_noise():
    X, labels = make_ihgmm(300, 20, 3, noise_levels=0.0, random_state=0)
    found = diagnose(X, labels)
    assert found.verdict is Verdict.WELL_SEPARATED
    assert found.separation_ratio > 1e3
    assert found.eigenvalue_gap > 10


def test_parallel_pair_is_named():
    rng = np.random.default_rng(0)
    a, b = np.linalg.qr(rng.standard_normal((50, 2)))[0].T
    centers = 20 * np.array([a, b, a + 0.2 * b])
    X, labels = make_ihgmm(
        300, centers=centers, scale_ratio=3, noise_levels=1.0, random_state=0
    )
    found = diagnose(X, np.array(["x", "y", "z"])[labels])
    cosine = 1 / np.sqrt(1.04)
    assert found.cosines[0, 2] == pytest.approx(cosine, abs=0.002)
    assert any(
        "Clusters x and z have nearly the same pattern" in w
        for w in map(str, found.cautions)
    )
    # Three centres in a plane: the third eigenvalue is noise.
    assert any("fewer directions than clusters" in w for w in map(str, found.cautions))


def test_too_few_and_too_many_clusters():
    X, truth = make_ihgmm(300, 100, 4, scale_ratio=3, random_state=0)
    found = diagnose(X, np.minimum(truth, 2))
    assert any("there may be more clusters" in w for w in map(str, found.cautions))
    assert diagnose(X, truth).cautions == ()
    split = np.where((truth == 0) & (np.arange(300) % 2 == 0), 4, truth)
    found = diagnose(np.vstack([X, np.zeros((2, 100))]), np.append(split, [1, 1]))
    figures = {caution.kind: caution.figures for caution in found.cautions}
    assert figures[CautionKind.ZERO_ROWS] == {"rows": 2}
    assert figures[CautionKind.FEWER_DIRECTIONS] == {"directions": 4}
    assert figures[CautionKind.PARALLEL_CLUSTERS]["clusters"] == (0, 4)
    # Halves agree on how to divide five clusters, and not on this division.
    kept = figures[CautionKind.OTHER_CLUSTERS]["share"]
    assert kept == 1 - found.disputed_share
    assert found.agreement > kept
    text = " ".join(map(str, found.cautions))
    assert f"{figures[CautionKind.VAGUE_CLUSTER]['share']:.1%} of its rows" in text
    for words in ("hardly a cluster", "Clusters 0 and 4 have nearly", "fewer direct"):
        assert words in text


@pytest.mark.parametrize(("asked", "constant"), [(5, 1.0), (12, 3.0)])
def test_too_many_clusters_are_told_how_many_there_are(asked, constant):
    X, _ = make_ihgmm(200, 100, 4, separation_constant=constant, random_state=0)
    found = diagnose(X, IhSC(asked, random_state=0).fit_predict(X))
    fewer = Caution(CautionKind.FEWER_DIRECTIONS, {"directions": 4})
    assert fewer in found.cautions
    assert CautionKind.PURE_NOISE not in kinds(found)
    assert "Ask for about 4 clusters" in " ".join(map(str, found.cautions))


def test_no_drop_where_there_is_none():
    # Eigenvalues that are all signal, however unequal, and patterns at every level.
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.standard_normal((60, 4)))[0].T
    X, labels = make_ihgmm(
        200, centers=Q * [[200.0], [50.0], [20.0], [10.0]], scale_ratio=2,
        noise_levels=0.1, random_state=0,
    )  # fmt: skip
    assert "drop" not in str(diagnose(X, labels))
    X = rng.standard_normal((150, 40)) * 0.7 ** np.arange(40)
    found = diagnose(X, IhSC(6, random_state=0).fit_predict(X))
    assert "drop" not in str(found)
    # Five features give five eigenvalues, patterns or not.
    X = rng.standard_normal((60, 5))
    found = diagnose(X, IhSC(8, random_state=0).fit_predict(X))
    assert "drop" not in str(found)


def test_one_direction_that_all_rows_share():
    X, _ = make_ihgmm(200, 60, 1, random_state=0)
    found = diagnose(X, IhSC(3, random_state=0).fit_predict(X))
    assert any("All rows may be one cluster" in w for w in map(str, found.cautions))
    assert "no edge between signal and noise" in str(found)


def test_scales_that_hardly_differ_and_rows_that_dominate():
    X, labels = make_ihgmm(200, 50, 2, scale_ratio=1.0, random_state=0)
    assert any(
        w.startswith("Scales hardly differ")
        for w in map(str, diagnose(X, labels).cautions)
    )
    X, labels = make_ihgmm(200, 50, 2, scale_ratio=5.0, random_state=0)
    assert diagnose(X, labels).cautions == ()
    X[3] *= 100
    found = diagnose(X, labels)
    assert found.verdict is Verdict.WELL_SEPARATED
    (caution,) = found.cautions
    assert caution.kind is CautionKind.HUGE_ROWS
    assert caution.figures["rows"] == 1
    assert "so that they do no harm" in str(found)


@pytest.mark.filterwarnings("ignore:.* rows are more than three times as long")
def test_huge_rows_are_named_and_the_labels_that_follow_them():
    rng = np.random.default_rng(0)
    centers = 6 * np.linalg.qr(rng.standard_normal((100, 4)))[0].T
    scales = rng.lognormal(0, 0.5, (300, 1))
    X = centers[np.arange(300) % 4] * scales + rng.standard_normal((300, 100))
    X[:15] = 50 * rng.standard_normal((15, 100))
    model = IhSC(4, random_state=0).fit(X)
    default = diagnose(X, model.labels_)
    assert default.verdict is Verdict.SEPARATED
    assert CautionKind.HUGE_ROWS in kinds(default)
    # Where the model is known that shortens them, there is nothing to look at.
    assert CautionKind.HUGE_ROWS not in kinds(diagnose_fit(model, X, model.labels_))
    psc = PSC(4, random_state=0).fit(X)
    assert CautionKind.HUGE_ROWS in kinds(diagnose_fit(psc, X, psc.labels_))
    assert CautionKind.OTHER_CLUSTERS not in kinds(default)
    paper = diagnose(X, IhSC.paper(4, random_state=0).fit_predict(X))
    assert {CautionKind.HUGE_ROWS, CautionKind.OTHER_CLUSTERS} <= set(kinds(paper))
    assert CautionKind.PURE_NOISE not in kinds(paper)


@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_a_column_that_rules_is_named(offset):
    X, labels = make_ihgmm(200, 20, 2, random_state=0)
    X[:, 7] = 1e3 * np.random.default_rng(0).standard_normal(200) + offset
    found = diagnose(X, labels)
    kind = CautionKind.SHIFTED_COLUMN if offset else CautionKind.RULING_COLUMN
    figures = {caution.kind: caution.figures for caution in found.cautions}
    assert figures[kind]["column"] == 7
    assert ("Divide the columns" in " ".join(map(str, found.cautions))) == (offset == 0)


def test_noise_that_columns_share_is_named():
    rng = np.random.default_rng(0)
    centers = 6 * np.linalg.qr(rng.standard_normal((100, 4)))[0].T
    noise = rng.standard_normal((300, 100))
    for j in range(1, 100):
        noise[:, j] = 0.8 * noise[:, j - 1] + 0.6 * noise[:, j]
    X = centers[np.arange(300) % 4] * rng.lognormal(0, 0.5, (300, 1)) + noise
    found = diagnose(X, IhSC(4, random_state=0).fit_predict(X))
    (caution,) = (c for c in found.cautions if c.kind is CautionKind.SHARED_NOISE)
    # Columns at distance d correlate by 0.8**d: 100 / (1 + 2 sum(0.64**d)), nearly.
    assert caution.figures["directions"] == pytest.approx(22, rel=0.15)
    assert found.noise_directions == caution.figures["directions"]


def test_a_large_cluster_is_named():
    rng = np.random.default_rng(2)
    centers = 20 * np.linalg.qr(rng.standard_normal((100, 8)))[0].T
    labels = np.repeat(np.arange(8), [316, *[12] * 7])
    scales = rng.lognormal(0, 0.5, (400, 1))
    X = centers[labels] * scales + rng.standard_normal((400, 100))
    found = diagnose(X, IhSC.paper(8, random_state=0).fit_predict(X))
    named = {caution.kind: caution.figures for caution in found.cautions}
    assert CautionKind.OTHER_CLUSTERS in named
    assert named[CautionKind.LARGE_CLUSTER]["share"] == pytest.approx(0.79, abs=0.05)


def test_rows_too_few_for_a_fit():
    X, labels = make_ihgmm(6, 20, 5, random_state=0)
    found = diagnose(X, labels)
    assert found.verdict is Verdict.NO_SEPARATION
    assert kinds(found)[0] is CautionKind.FEW_ROWS
    assert np.isnan(found.agreement)
    assert "agreement" not in str(found)


def test_summary_is_aligned_and_narrow(eighty):
    found = eighty[-1]
    lines = str(found).splitlines()
    assert lines[0].lower().rstrip(".") == found.verdict
    table = [line for line in lines[1:] if line.startswith("  ") and "  " in line[3:]]
    assert len(table) == 9
    start = {line.rindex("  ") for line in table}
    assert len(start) == 1
    assert max(map(len, lines)) <= 88
    assert found.verdict in repr(found)


def test_bad_input():
    X, labels = make_ihgmm(20, 10, 2, random_state=0)
    with pytest.raises(ValueError, match="labels has 19 entries and X has 20 rows"):
        diagnose(X, labels[1:])
    with pytest.raises(ValueError, match="gram='holow' is not known; give one of"):
        diagnose(X, labels, gram="holow")
    X[2, 1] = np.nan
    with pytest.raises(ValueError, match="contains NaN at row 2, column 1"):
        diagnose(X, labels)
    with pytest.raises(TypeError, match="random_state='a'"):
        diagnose(sp.csr_array(np.eye(3)), [0, 1, 1], random_state="a")


def test_input_is_left_alone_and_result_is_frozen(eighty):
    X, labels, found = eighty
    X, labels = X.copy(), labels.copy()
    X.setflags(write=False)
    labels.setflags(write=False)
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.separation = 1.0
    again = diagnose(X, labels)
    assert again.expected_error == found.expected_error
    assert (again.eigenvalues == found.eigenvalues).all()


def test_a_verdict_is_its_sentence():
    verdict = Verdict.WELL_SEPARATED
    assert json.dumps({"verdict": verdict}) == '{"verdict": "well separated"}'
    assert repr(verdict) == "'well separated'"


def test_every_kind_of_caution_has_a_sentence():
    figures = {
        "rows": 3, "share": 0.25, "directions": 2, "cluster": "a", "number": 4,
        "clusters": ("a", "b"), "cosine": 0.97, "ratio": 1.1, "column": 5,
        "agreement": 0.9, "features": 50,
    }  # fmt: skip
    texts = {str(Caution(kind, figures)) for kind in CautionKind}
    assert len(texts) == len(CautionKind)
    assert all(text[-1] in ".?" for text in texts)


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
    assert same(ask(model, X), plain)
    with pytest.raises(ValueError, match=r"This IhSC has no labels_; fit it first"):
        ask(X, IhSC(3))
    with pytest.raises(TypeError, match="Both arguments are models, IhSC and IhSC"):
        ask(model, model)


def test_scales_of_whitened_rows_are_those_of_the_data():
    rng = np.random.default_rng(0)
    profiles, kinds = rng.gamma(0.5, size=(3, 100)), np.arange(300) % 3
    profiles /= profiles.sum(axis=1, keepdims=True)
    sizes = 2000 * rng.lognormal(0, 1, 300)
    X = rng.poisson(sizes[:, None] * profiles[kinds])
    model = IhSC(3, whiten="counts", random_state=0).fit(X)
    low, high = np.quantile(model.scales_, [0.05, 0.95])
    assert diagnose(model, X).scale_ratio == pytest.approx(high / low, rel=0.2)


def test_the_last_column_is_no_sign_of_more_clusters():
    # Six kinds in seven columns: eigenvalue 8 is not there to compare with.
    rng = np.random.default_rng(0)
    patterns = rng.dirichlet(np.full(7, 0.5), 5)
    X = patterns[rng.integers(0, 5, 300)] * rng.lognormal(0, 0.8, (300, 1))
    X *= rng.lognormal(0, 0.4, X.shape)
    for k in (6, 7):
        model = IhSC(k, random_state=0).fit(X)
        assert CautionKind.MORE_CLUSTERS not in kinds(diagnose(X, model.labels_))


def test_seeds_that_disagree_are_named():
    def said(X, model):
        cautions = diagnose(X, model.fit(X)).cautions
        return [c for c in cautions if c.kind is CautionKind.OTHER_SEEDS]

    X, _ = make_ihgmm(600, 100, 4, random_state=0)
    for model in (IhSC(4), IhSC.paper(4), IhSC(4, refine=True)):
        assert not said(X, model)
    # Noise has no clusters that two seeds would agree on.
    noise = np.random.default_rng(0).standard_normal((3_000, 40))
    (caution,) = said(noise, IhSC(8))
    labels = [IhSC(8, random_state=seed).fit_predict(noise) for seed in (3, 4)]
    assert caution.figures["share"] > 0.1
    assert misclassification_rate(*labels) > 0.1
    assert "Two other seeds disagree on" in str(caution)
    # Labels alone have no seed.
    assert not said(noise, SphericalKMeans(8, random_state=0))
