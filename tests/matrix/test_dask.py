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


def wanted():
    return IhSC(4, random_state=0).fit(X)


def test_labels_come_in_the_chunks_of_the_data():
    stored = da.from_array(X, chunks=((500, 0, 300, 400), 40))
    model = IhSC(4, random_state=0).fit(stored)

    assert model.labels_.chunks == ((500, 0, 300, 400),)
    assert_array_equal(model.labels_.compute(), wanted().labels_)

    labels_found = model.predict(stored)

    assert isinstance(labels_found, da.Array)
    assert labels_found.dtype == np.int32
    assert_array_equal(labels_found.compute(), wanted().predict(X))

    # Columns in chunks become whole rows.
    model.fit(da.from_array(X, chunks=(300, 10)))

    assert_array_equal(model.labels_.compute(), wanted().labels_)


def test_data_frame():
    dd = pytest.importorskip("dask.dataframe")
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(40)])
    model = IhSC(4, random_state=0).fit(dd.from_pandas(frame, npartitions=3))

    assert_array_equal(model.labels_, wanted().labels_)


def test_some_columns_of_a_parquet_file(tmp_path):
    dd = pytest.importorskip("dask.dataframe")
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(40)]).assign(name="a")
    frame.to_parquet(tmp_path / "x.parquet", row_group_size=100)
    stored = dd.read_parquet(tmp_path / "x.parquet", split_row_groups=True)
    model = IhSC(4, random_state=0).fit(stored[[f"f{j}" for j in range(40)]])

    assert_array_equal(model.labels_, wanted().labels_)


GOOD = da.from_array(X, chunks=(300, 40))


@pytest.mark.parametrize(
    ("bad", "error", "message"),
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
def test_bad_arrays(bad, error, message):
    with pytest.raises(error, match=message):
        IhSC(4).fit(bad)


def test_tasks_get_their_part_only():
    """Of tall arrays a task has its rows; what all tasks need is there once."""
    ones = da.ones((100_000, 10), chunks=(1000, 10))
    tall = np.ones((100_000, 4))
    graphs = []

    class Watch(Callback):
        def _start(self, graph):
            graphs.append(
                {key: len(cloudpickle.dumps(task)) for key, task in graph.items()}
            )

    rows = as_matrix(ones)
    with Watch():
        results = list(rows.map(_sizes, tall))

    assert results == [(1000, 1000)] * 100

    sizes, _ = graphs  # to split the tall array, and to work on its parts

    assert max(sizes.values()) < tall.nbytes / 50
    assert sum(sizes.values()) < 2 * tall.nbytes
    assert_array_equal(rows.adjoint(tall), np.full((10, 4), 100_000))


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

    def one():
        # A worker that has just come is lost as well.
        killed.append(next(iter(client.run(os.getpid, on_error="ignore").values())))
        os.kill(killed[-1], getattr(signal, "SIGKILL", signal.SIGTERM))

    def soon():
        client.wait_for_workers(2, timeout=30)
        timer = threading.Timer(0.1, one)
        timer.start()
        return timer

    soon.killed = killed
    return soon


def refuse(self, *_, **__):
    raise AssertionError("a dask array was computed unasked")


def test_a_worker_is_killed_in_each_step_and_little_comes_back(kill, monkeypatch):
    """A mixture that counts its clusters goes through every step there is.

    A worker of three is lost in each, in the midst of work. Lines for each row stay in
    dask arrays, and nothing else computes them.
    """
    begin = Steps.step
    record = []

    @contextmanager
    def step_and_kill(self, step):
        timer = kill()
        record.append(step)
        with begin(self, step) as say:
            yield say
        timer.join()

    def fit(data):
        return IhGMM("auto", max_iter=5, tol=10.0, random_state=0).fit(data)

    monkeypatch.setattr(Steps, "step", step_and_kill)
    for method in ("__array__", "__float__", "__int__", "__bool__", "__index__"):
        monkeypatch.setattr(da.Array, method, refuse)
    lazy = da.from_array(X, chunks=(300, 40)).map_blocks(slow, meta=X[:0])
    result = fit(lazy.persist())
    monkeypatch.undo()
    for name in ("labels_", "scales_", "sizes_", "noise_levels_", "memberships_"):
        assert getattr(result, name).chunks[0] == (300,) * 4

    assert isinstance(result.cluster_centers_, np.ndarray)
    assert len(kill.killed) == len(record) >= 6

    expected = fit(X)

    assert result.n_clusters_ == expected.n_clusters_ == 4
    assert_array_equal(result.labels_.compute(), expected.labels_)
    assert_allclose(result.scales_.compute(), expected.scales_, rtol=1e-6)
    assert_array_equal(result.predict(lazy).compute(), expected.predict(X))


def test_cluster_that_goes_away(cluster):
    client = Client(cluster)
    rows = as_matrix(da.from_array(X, chunks=(300, 40)).persist())
    list(rows.map(_sizes, np.zeros(1200)))
    client.close()

    with pytest.raises(RuntimeError, match=r"dask lost X or its.*cluster was closed"):
        IhSC(4).fit(rows)


def test_large_data_leave_little_with_the_client(monkeypatch):
    """What comes at a time is a number for each row: a hundredth of the data."""
    rng = np.random.default_rng(0)
    centers = 20 * np.linalg.qr(rng.standard_normal((100, 3)))[0].T

    def block(number):
        rng = np.random.default_rng(int(number[0, 0]))
        own_rows = centers[rng.integers(3, size=10_000)] * rng.uniform(
            1, 5, (10_000, 1)
        )
        return (own_rows + rng.standard_normal(own_rows.shape)).astype(np.float32)

    numbers = da.arange(8, chunks=1)[:, None]
    data = numbers.map_blocks(block, chunks=((10_000,) * 8, 100), dtype=np.float32)
    data = data.persist()
    compute = dask_blocks.compute
    sizes = []

    def measured(*collections):
        result = compute(*collections)
        sizes.append(len(cloudpickle.dumps(result)))
        return result

    monkeypatch.setattr(dask_blocks, "compute", measured)
    model = IhSC(3, random_state=0).fit(data)

    assert model.embedding_.chunks[0] == (10_000,) * 8
    assert max(sizes) < 4 * len(data) + 1_000
    # To count clusters takes 2,000 rows.
    assert select_n_clusters(data, random_state=0).n_clusters == 3
    assert max(sizes) < 2_100 * data[0].nbytes


def test_a_lazy_error_names_the_rows_of_its_chunk():
    X, _ = make_ihgmm(300, 20, 3, random_state=0)
    model = IhSC(3, random_state=0).fit(X)
    X[202, 3] = np.nan
    labels = model.predict(da.from_array(X, chunks=(100, 20)))

    with pytest.raises(ValueError, match="rows 200 to 299: Input X contains NaN at"):
        labels.compute()


@pytest.mark.parametrize("chunks", [(1, 1, 1), (3, 0), (0, 2, 1)])
def test_one_row_that_counts(chunks):
    sample = da.from_array(X[:3], chunks=(3, 40)).rechunk((chunks, 40))
    weights = [1e-50, 1.0, 0.0]
    model = IhSC(1)
    is_usual = IhSC(1).fit(X[:3], sample_weight=weights)

    assert_allclose(model.fit(sample, sample_weight=weights).scales_, is_usual.scales_)

    with pytest.raises(ValueError, match="n_clusters=2 is more than n_samples=1"):
        IhSC(2).fit(sample[1:2].rechunk(((0, 1), 40)))


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
