"""Warnings point at the user's line, and filters of a fit do not stay behind."""

import runpy
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_info, threadpool_limits

import ihgmm
from ihgmm._warnings import ignored
from ihgmm.matrix.threads import one_thread

SCRIPT = """
import numpy as np
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from ihgmm import *

noise = np.random.default_rng(0).standard_normal((40, 60))
zero = np.vstack([noise, np.zeros(60)])
same = np.ones((12, 5))
{call}  # here
"""
CALLS = {
    'IhSC("auto", random_state=0).fit(noise)': "All rows are put in one cluster",
    'make_pipeline(IhSC("auto", random_state=0)).fit(noise)': "All rows are put in",
    'GridSearchCV(IhSC("auto"), {"signed": [False]}, cv=2).fit(noise)': "All rows are",
    "IhSC(2).fit(zero)": "1 of 41 rows are zero",
    "IhGMM(4, max_iter=1, random_state=0).fit(noise)": "Memberships still changed",
    "SphericalKMeans(2).fit_predict(same)": "Rows are in 1 of",
    'IhSC(2, recipe="psc").fit_transform(same)': "Rows are in 1 of",
    "TwoComponentLloyd().fit(same)": "are in one cluster",
    "SDPKMeans(2).fit(same)": "X has 1 distinct rows",
    "SDPKMeans(2, max_iter=20).fit(noise[:12])": "stopped after max_iter=20",
}


@pytest.mark.parametrize("call", CALLS)
def test_a_warning_of_a_fit_points_at_the_line_of_the_call(call, tmp_path):
    script = tmp_path / "analysis.py"
    script.write_text(SCRIPT.format(call=call))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        runpy.run_path(str(script))
    matches = [w for w in caught if CALLS[call] in str(w.message)]

    assert matches

    line = script.read_text().splitlines().index(f"{call}  # here") + 1

    assert {(w.filename, w.lineno) for w in matches} == {(str(script), line)}

    is_convergence = CALLS[call].startswith(("Memberships", "stopped"))

    for warning in matches:
        assert issubclass(warning.category, ConvergenceWarning) == is_convergence


def blas_threads():
    """Return the threads of what NumPy and SciPy use; torch and faiss bring their own.

    Those do none of this work, and may have been loaded since the first fit.
    """
    return [
        pool["num_threads"]
        for pool in threadpool_info()
        if pool["user_api"] == "blas"
        and not {"torch", "faiss_cpu.libs"} & set(Path(pool["filepath"]).parts)
    ]


def test_contexts_that_overlap_restore_what_was_there():
    # As in two threads: the one that began first ends first.
    filters = list(warnings.filters)
    first = ignored(FutureWarning)
    second = ignored(FutureWarning)
    with threadpool_limits(2):
        n_threads = blas_threads()
        for context in (first, one_thread(), second, one_thread()):
            context.__enter__()
        assert max(blas_threads()) == 1
        warnings.warn("unheard", FutureWarning, stacklevel=1)
        for context in (first, one_thread()):
            context.__exit__(None, None, None)
        assert max(blas_threads()) == 1
        warnings.warn("still unheard", FutureWarning, stacklevel=1)
        for context in (second, one_thread()):
            context.__exit__(None, None, None)
        assert blas_threads() == n_threads

    assert warnings.filters == filters

    with pytest.raises(FutureWarning):
        warnings.warn("heard", FutureWarning, stacklevel=1)


def test_filters_of_others_stay():
    filters = list(warnings.filters)
    with ignored(FutureWarning, "this"), ignored(FutureWarning, "that"):
        warnings.warn("This one", FutureWarning, stacklevel=1)
        warnings.warn("that one", FutureWarning, stacklevel=1)
        with pytest.raises(FutureWarning):
            warnings.warn("another", FutureWarning, stacklevel=1)

    assert warnings.filters == filters

    # Those that the user sets before, or meanwhile.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        filters_before = list(warnings.filters)
        with ignored(Warning):
            pass
        assert list(warnings.filters) == filters_before
        with ignored(FutureWarning):
            warnings.simplefilter("always", ResourceWarning)
        assert warnings.filters[0][2] is ResourceWarning
        with ignored(FutureWarning):
            warnings.resetwarnings()
        assert warnings.filters == []


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_concurrent_calls_restore_threads_and_filters():
    X, labels = ihgmm.make_ihgmm(40, 6, 2, random_state=0)
    models = [ihgmm.IhSC(2), ihgmm.IhSC.paper(2), ihgmm.IhSC(2, recipe="psc")]
    models += [ihgmm.IhGMM(2), ihgmm.SphericalKMeans(2)]
    models += [ihgmm.IhSC("auto", random_state=0), ihgmm.TwoComponentLloyd()]
    calls = [lambda model=model: clone(model).fit(X) for model in models]
    calls += [
        lambda: ihgmm.cluster_tree(X, random_state=0),
        lambda: ihgmm.diagnose(X, labels),
        lambda: ihgmm.IhSC(2).fit(X, sample_weight=labels + 1.0).predict(X),
    ]
    filters = list(warnings.filters)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # of threads, so that they meet
    try:
        with threadpool_limits(2), ThreadPoolExecutor(8) as pool:
            n_threads = blas_threads()
            for future in [pool.submit(call) for call in 4 * calls]:
                future.result()
            assert blas_threads() == n_threads
    finally:
        sys.setswitchinterval(interval)

    assert warnings.filters == filters


def test_64_threads_find_what_one_finds():
    X, _ = ihgmm.make_ihgmm(60, 8, 3, random_state=0)

    def answer(i):
        recipe = ("default", "psc")[i % 2]
        model = ihgmm.IhSC(3, recipe=recipe, random_state=0)
        return model.fit(X[i % 8 :]).predict(X).tolist()

    expected = [answer(i) for i in range(8)]
    with ThreadPoolExecutor(64) as pool:
        result = list(pool.map(answer, range(64)))

    assert all(labels == expected[i % 8] for i, labels in enumerate(result))
