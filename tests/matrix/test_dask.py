"""dask arrays: bad ones, and a cluster of processes that may be lost."""

import os
import signal
import threading
import time
from contextlib import contextmanager

import cloudpickle
import dask
import dask.array as da
import dask.bag
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from dask.callbacks import Callback
from distributed import Client, LocalCluster
from distributed.utils import get_mp_context
from numpy.testing import assert_allclose, assert_array_equal

from ihgmm import IhGMM, IhSC, make_ihgmm, select_n_clusters
from ihgmm._progress import Steps
from ihgmm.matrix import as_matrix, dask_blocks

X, _ = make_ihgmm(1200, 40, 4, random_state=0)


def host_model():
    return IhSC(4, random_state=0).fit(X)


def test_labels_come_in_the_chunks_of_the_data():
    stored = da.from_array(X, chunks=((500, 0, 300, 400), 40))
    model = IhSC(4, random_state=0).fit(stored)

    assert model.labels_.chunks == ((500, 0, 300, 400),)
    assert_array_equal(model.labels_.compute(), host_model().labels_)

    predicted = model.predict(stored)

    assert isinstance(predicted, da.Array)
    assert predicted.dtype == np.int32
    assert_array_equal(predicted.compute(), host_model().predict(X))

    # Columns in chunks become whole rows.
    model.fit(da.from_array(X, chunks=(300, 10)))

    assert_array_equal(model.labels_.compute(), host_model().labels_)


def test_data_frame():
    dd = pytest.importorskip("dask.dataframe")
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(40)])
    model = IhSC(4, random_state=0).fit(dd.from_pandas(frame, npartitions=3))

    assert_array_equal(model.labels_, host_model().labels_)


def test_some_columns_of_a_parquet_file(tmp_path):
    dd = pytest.importorskip("dask.dataframe")
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(40)]).assign(name="a")
    frame.to_parquet(tmp_path / "x.parquet", row_group_size=100)
    stored = dd.read_parquet(tmp_path / "x.parquet", split_row_groups=True)
    model = IhSC(4, random_state=0).fit(stored[[f"f{j}" for j in range(40)]])

    assert_array_equal(model.labels_, host_model().labels_)


GOOD = da.from_array(X, chunks=(300, 40))


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        (GOOD[GOOD[:, 0] > 0], ValueError, r"unknown chunk sizes .*compute_chunk_size"),
        (GOOD[:, 0], ValueError, r"of 1 dimension\(s\); give one of two, rows by fea"),
        (GOOD[:0], ValueError, r"0 row\(s\) and 40 feature\(s\)"),
        (GOOD.astype(str), ValueError, r"entries of type <U\d+, not real numbers"),
        (GOOD + 1j, ValueError, "entries of type complex128, not real numbers"),
        (dask.delayed(X), TypeError, "X is a dask Delayed; give a dask array"),
        (dask.bag.from_sequence([1, 2]), TypeError, "X is a dask Bag; give a dask arr"),
        (
            GOOD.map_blocks(lambda block: block[1:], dtype=X.dtype, meta=X[:0]),
            ValueError,
            r"The chunk of rows \d+ to \d+ of the dask array X has 299 rows; call",
        ),
        (
            GOOD.map_blocks(sp.csr_array, dtype=X.dtype, meta=X[:0]),
            ValueError,
            "is sparse where a dense one was announced; give X.map_blocks its meta",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_bad_arrays(data, error, message):
    with pytest.raises(error, match=message):
        IhSC(4).fit(data)


def test_tasks_get_their_part_only():
    """Of tall arrays a task has its rows; what all tasks need is there once."""
    ones = da.ones((100_000, 10), chunks=(1000, 10))
    tall = np.ones((100_000, 4))
    sizes_of_graphs = []

    class Watch(Callback):
        def _start(self, graph):
            sizes = {key: len(cloudpickle.dumps(task)) for key, task in graph.items()}
            sizes_of_graphs.append(sizes)

    matrix = as_matrix(ones)

    with Watch():
        results = list(matrix.map(_sizes, tall))

    assert results == [(1000, 1000)] * 100

    sizes, _ = sizes_of_graphs  # to split the tall array, and to work on its parts

    assert max(sizes.values()) < tall.nbytes / 50
    assert sum(sizes.values()) < 2 * tall.nbytes
    assert_array_equal(matrix.adjoint(tall), np.full((10, 4), 100_000))


def _sizes(block, part):
    return block.shape[0], len(part)


@pytest.fixture(scope="module")
def cluster():
    settings = {
        # A task may be on several of the workers that are killed.
        "distributed.scheduler.allowed-failures": 100,
        # A loaded machine takes long to start a worker again.
        "distributed.deploy.lost-worker-timeout": "2 minutes",
        # Workers that come after those that are killed need not import all again:
        # they are forks of a process that has.
        "distributed.worker.multiprocessing-method": "forkserver",
        # Nobody looks at what workers do, a hundred times a second.
        "distributed.worker.profile.enabled": False,
    }
    with dask.config.set(settings):
        modules = ["distributed", "dask.array", "ihgmm.estimators"]
        get_mp_context().set_forkserver_preload(modules)
        with LocalCluster(
            n_workers=3,
            threads_per_worker=1,
            processes=True,
            memory_limit="1GB",
            dashboard_address=":0",  # any free port: others may run a cluster too
            host="127.0.0.1",
        ) as cluster:
            yield cluster


@pytest.fixture
def client(cluster):
    with Client(cluster) as client:
        client.wait_for_workers(3, timeout=30)
        yield client


def slow(block):
    time.sleep(0.05)
    return block


@pytest.fixture
def kill(client):
    """Lose a worker, in a tenth of a second."""
    killed = []

    def kill_one():
        # A worker that has just come is lost as well.
        numbers = client.run(os.getpid, on_error="ignore").values()
        killed.append(next(iter(numbers)))
        os.kill(killed[-1], getattr(signal, "SIGKILL", signal.SIGTERM))

    def kill_soon():
        client.wait_for_workers(2, timeout=30)
        timer = threading.Timer(0.1, kill_one)
        timer.start()
        return timer

    kill_soon.killed = killed
    return kill_soon


def refuse(self, *_, **__):
    raise AssertionError("a dask array was computed unasked")


def test_a_worker_is_killed_in_each_step_and_little_comes_back(kill, monkeypatch):
    """A mixture that counts its clusters goes through every step there is.

    A worker of three is lost in each, in the midst of work. Lines for each row stay in
    dask arrays, and nothing else computes them.
    """
    original_step = Steps.step
    steps = []

    @contextmanager
    def step_and_kill(self, step):
        timer = kill()
        steps.append(step)
        with original_step(self, step) as say:
            yield say
        timer.join()

    def fit(data):
        return IhGMM("auto", max_iter=5, tol=10.0, random_state=0).fit(data)

    monkeypatch.setattr(Steps, "step", step_and_kill)
    for method in ("__array__", "__float__", "__int__", "__bool__", "__index__"):
        monkeypatch.setattr(da.Array, method, refuse)
    lazy = da.from_array(X, chunks=(300, 40)).map_blocks(slow, meta=X[:0])

    model = fit(lazy.persist())
    monkeypatch.undo()

    for name in ("labels_", "scales_", "sizes_", "noise_levels_", "memberships_"):
        assert getattr(model, name).chunks[0] == (300,) * 4

    assert isinstance(model.cluster_centers_, np.ndarray)
    assert len(kill.killed) == len(steps) >= 6

    expected = fit(X)

    assert model.n_clusters_ == expected.n_clusters_ == 4
    assert_array_equal(model.labels_.compute(), expected.labels_)
    assert_allclose(model.scales_.compute(), expected.scales_, rtol=1e-6)
    assert_array_equal(model.predict(lazy).compute(), expected.predict(X))


def test_cluster_that_goes_away(cluster):
    client = Client(cluster)
    matrix = as_matrix(da.from_array(X, chunks=(300, 40)).persist())
    list(matrix.map(_sizes, np.zeros(1200)))

    client.close()

    with pytest.raises(RuntimeError, match=r"dask lost X or its.*cluster was closed"):
        IhSC(4).fit(matrix)


def test_large_data_leave_little_with_the_client(monkeypatch):
    """What comes at a time is a number for each row: a hundredth of the data."""
    rng = np.random.default_rng(0)
    centers = 20 * np.linalg.qr(rng.standard_normal((100, 3)))[0].T

    def block(seed):
        rng = np.random.default_rng(int(seed[0, 0]))
        labels = rng.integers(3, size=10_000)
        signal = centers[labels] * rng.uniform(1, 5, (10_000, 1))
        return (signal + rng.standard_normal(signal.shape)).astype(np.float32)

    seeds = da.arange(8, chunks=1)[:, None]
    data = seeds.map_blocks(block, chunks=((10_000,) * 8, 100), dtype=np.float32)
    data = data.persist()
    original_compute = dask_blocks.compute
    sizes = []

    def measured_compute(*collections):
        result = original_compute(*collections)
        sizes.append(len(cloudpickle.dumps(result)))
        return result

    monkeypatch.setattr(dask_blocks, "compute", measured_compute)

    model = IhSC(3, random_state=0).fit(data)

    assert model.embedding_.chunks[0] == (10_000,) * 8
    assert max(sizes) < 4 * len(data) + 1_000

    # To count clusters takes 1,000 rows.
    assert select_n_clusters(data, random_state=0).n_clusters == 3
    assert max(sizes) < 1_100 * data[0].nbytes


def test_a_lazy_error_names_the_rows_of_its_chunk():
    X, _ = make_ihgmm(300, 20, 3, random_state=0)
    model = IhSC(3, random_state=0).fit(X)
    X[202, 3] = np.nan

    labels = model.predict(da.from_array(X, chunks=(100, 20)))

    with pytest.raises(ValueError, match="rows 200 to 299: Input X contains NaN at"):
        labels.compute()


@pytest.mark.parametrize("chunks", [(1, 1, 1), (3, 0), (0, 2, 1)])
def test_one_row_that_counts(chunks):
    stored = da.from_array(X[:3], chunks=(3, 40)).rechunk((chunks, 40))
    weights = [1e-50, 1.0, 0.0]
    model = IhSC(1)
    expected = IhSC(1).fit(X[:3], sample_weight=weights)

    assert_allclose(model.fit(stored, sample_weight=weights).scales_, expected.scales_)

    with pytest.raises(ValueError, match="n_clusters=2 is more than n_samples=1"):
        IhSC(2).fit(stored[1:2].rechunk(((0, 1), 40)))


def test_an_error_of_a_block_says_that_it_is_one():
    def fail(block):
        raise KeyError("my own")

    X = da.ones((40, 5), chunks=(10, 5)).map_blocks(fail, meta=np.empty((0, 0)))

    with pytest.raises(KeyError, match="my own") as raised:
        IhSC(2).fit(X)

    assert "while it computed the blocks of X" in raised.value.__notes__[0]


@pytest.mark.filterwarnings("ignore::UserWarning")  # two rows are few
def test_rows_are_taken_beside_chunks_without_any():
    rows = np.arange(4.0)[:, None] + 1
    weights = np.array([0.0, 0.6, 0.3, 0.0])
    model = IhSC("auto", random_state=0)
    lazy = da.from_array(rows, chunks=(1, 1))

    assert_array_equal(
        model.fit(lazy, sample_weight=weights).labels_.compute(),
        model.fit(rows, sample_weight=weights).labels_,
    )
