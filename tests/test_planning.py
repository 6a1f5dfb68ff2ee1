"""Plans: counts agree with what a fit does, and say what does not fit."""

import json

import dask.array as da
import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from ihgmm import IhSC, make_ihgmm
from ihgmm.cli.spelling import in_shell
from ihgmm.matrix import Matrix, as_matrix
from ihgmm.matrix.memory import Dense
from ihgmm.planning import plan, size

PLACES = ["in memory", "on disk", "on a GPU", "on dask"]


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    X, _ = make_ihgmm(40_000, 300, 4, dtype=np.float32, random_state=0)
    path = tmp_path_factory.mktemp("plan") / "x.npy"
    np.save(path, X)
    return np.load(path, mmap_mode="r")


@pytest.mark.parametrize("kind", ["memory map", "hdf5", "dask"])
def test_passes_are_those_of_a_fit(kind, stored, tmp_path):
    X = stored
    if kind == "hdf5":
        file = h5py.File(tmp_path / "x.h5", "w")
        X = file.create_dataset("X", data=stored, chunks=(5_000, 300))
    elif kind == "dask":
        X = da.from_array(stored, chunks=(5_000, -1))
    rows = as_matrix(X)
    IhSC(4, random_state=0).fit(rows)
    planned = plan(*stored.shape, 4)
    need = planned.needs["on dask" if kind == "dask" else "on disk"]
    more = planned.chunk_passes if kind == "hdf5" else 0
    assert need.passes + more == rows.passes


class Asked(Matrix):
    """Rows that count the numbers which are sent to them, and which they return."""

    streamed, on_host = True, False

    def __init__(self, X):
        self.X, self.shape, self.dtype = X, X.shape, X.dtype
        self.in_blocks = self.in_samples = 0

    def __matmul__(self, W):
        self.in_blocks += W.size
        return self.X @ W

    def adjoint(self, V):
        back = self.X.T @ V
        self.in_blocks += back.size
        return back

    def sweep(self, work, *tall):
        lines, sums = super().sweep(work, *tall)
        self.in_blocks += sum(total.size for total in sums)
        return lines, sums

    def take(self, rows):
        self.in_samples += 0 if isinstance(rows, slice) else self.X[rows].size
        return Dense(self.X[rows])


@pytest.mark.parametrize(
    ("n", "p", "k"), [(40_000, 300, 4), (40_000, 100, 4), (4_000, 60, 3)]
)
def test_traffic_is_what_a_fit_asks_for(n, p, k):
    X, _ = make_ihgmm(n, p, k, dtype=np.float32, random_state=0)
    rows = Asked(X)
    IhSC(k, random_state=0).fit(rows)
    few, many = (plan(n, p, k, workers=count).workers for count in (3, 11))
    # Blocks go to each worker and sums come from each. A row of a sample is sent once,
    # and so are k numbers for each row that labels are learnt from. Rows that are drawn
    # twice to check the first block are sent once.
    assert (many.traffic - few.traffic) / 8 == 4 * rows.in_blocks
    samples = 4 * (rows.in_samples + k * min(n, 2**14))
    assert 0 <= few.traffic - 12 * rows.in_blocks - samples <= 16 * 4 * p


def test_workers_share_the_rows():
    cluster = plan(10**9, 1_000, 10, workers=64, worker_memory=96e9).workers
    assert cluster.rows == 15_625_000
    assert cluster.held - cluster.streamed == 4 * 1_000 * cluster.rows
    assert cluster.hold
    assert cluster.fit
    twice = plan(10**9, 1_000, 10, workers=128, worker_memory=96e9).workers
    assert twice.held < 0.51 * cluster.held
    assert twice.traffic > cluster.traffic
    assert twice.seconds < cluster.seconds
    for name in ("network", "reading"):
        rates = {"workers": 64, "worker_memory": 96e9, name: 20e9}
        assert plan(10**9, 1_000, 10, **rates).workers.seconds < cluster.seconds


def test_workers_that_are_advised_hold_the_rows():
    shape, room = (10**9, 1_000, 50), {"worker_memory": 141e9}
    gpus = plan(*shape, workers=10, **room)
    assert gpus.workers.fit
    assert not gpus.workers.hold
    enough = gpus.workers.enough
    assert f"a GPU's host; {enough} would hold them." in str(gpus)
    assert plan(*shape, workers=enough, **room).workers.hold
    assert not plan(*shape, workers=enough - 1, **room).workers.hold
    few = plan(*shape, workers=5, **room)
    assert not few.workers.fit
    assert f"5 workers of 141 GB do not hold the rows. Use {enough}." in str(few)
    assert plan(*shape, workers=5, worker_memory=2e8).workers.enough is None


def test_bounds_are_beyond_what_is_expected():
    planned = plan(10**6, 1_000, 5)
    passes = [planned.needs[place].passes_bound for place in PLACES]
    # The solver gives up three times: before the diagonal is filled in, then, after.
    more = 3 * planned.chunk_passes
    assert passes == [606, 606 + more, 606, 606 + more]
    for need in planned.needs.values():
        assert need.passes < need.passes_bound
        assert need.memory < need.memory_bound
    assert f"up to {planned.chunk_passes} more passes" in str(planned)


def test_sizes_of_data():
    assert plan(1_000, 50, 2).data_bytes == 1_000 * 50 * 4
    assert plan(1_000, 50, 2, dtype="float64").data_bytes == 1_000 * 50 * 8
    # A CSR matrix: a number and its column for each entry, and where rows start.
    assert plan(1_000, 50, 2, density=0.1).data_bytes == 5_000 * 8 + 1_000 * 4
    # Column numbers of four bytes do not reach so far.
    assert plan(10**9, 50, 2, density=0.1).data_bytes == 5 * 10**9 * 12 + 8 * 10**9


def test_more_of_everything_takes_more_memory():
    base = plan(10**6, 1_000, 10)
    for other in (
        plan(2 * 10**6, 1_000, 10),
        plan(10**6, 2_000, 10),
        plan(10**6, 1_000, 30),
        plan(10**6, 1_000, 10, dtype=np.float64),
    ):
        for place in PLACES:
            assert other.needs[place].memory >= base.needs[place].memory
            if place != "on dask":  # whose client has nothing for each row
                assert other.needs[place].memory_bound > base.needs[place].memory_bound


def test_data_go_to_disk_where_memory_ends():
    planned = plan(10**6, 1_000, 10)
    need = planned.needs["in memory"]
    assert need.fits
    assert need.memory > planned.data_bytes > planned.needs["on disk"].memory
    less = plan(10**6, 1_000, 10, memory=0.9 * need.memory)
    assert not less.needs["in memory"].fits
    assert less.needs["on disk"].fits
    assert "more than 4 GB. Leave X on disk" in str(less)


@pytest.mark.parametrize("place", PLACES)
def test_sample_that_is_advised_has_room(place):
    # The client of dask has room unless a sample of rows is too much for it.
    p = 30_000 if place == "on dask" else 2_000
    large = plan(10**9, p, 50)
    rows = large.needs[place].sample_rows
    assert not large.needs[place].fits
    assert f"{rows:,} rows" in str(large)
    assert plan(rows, p, 50).needs[place].fits
    assert not plan(int(1.05 * rows), p, 50).needs[place].fits


def test_no_room_even_for_a_sample():
    planned = plan(10**8, 2_000, 50, memory=2.12e8, gpu_memory=1e6)
    for need in planned.needs.values():
        assert not need.fits
        assert need.sample_rows is None
    assert str(planned).count("Not even a useful sample of rows fits") == 4


def test_sparse_data_are_sparse_on_a_device():
    planned = plan(10**6, 100_000, 10, density=0.001)
    need = planned.needs["on a GPU"]
    assert need.fits
    assert planned.data_bytes < need.memory < 0.01 * 10**6 * 100_000 * 4


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        ((0, 5, 2), {}, "n_samples=0 is too small; give 1 or more"),
        ((10.5, 5, 2), {}, "n_samples=10.5 is a float; give a whole number"),
        ((10, 5, 11), {}, "n_clusters=11 is more than n_samples=10"),
        ((10, 5, "auto"), {}, "n_clusters='auto' .*the largest number you expect"),
        ((10, 5, 2), {"density": 1.5}, "density=1.5 is out of range"),
        ((10, 5, 2), {"density": 0}, "density=0 is out of range; give above 0"),
        ((10, 5, 2), {"dtype": "int8"}, "dtype='int8' is not known; give one of 'fl"),
        ((10, 5, 2), {"dtype": "real"}, "dtype='real' is not known; give one of"),
        ((10, 5, 2), {"memory": -1.0}, r"memory=-1\.0 is out of range"),
        ((10, 5, 2), {"gpu_memory": 80}, "gpu_memory=80 .*for gigabytes write 80e9"),
        ((10, 5, 2), {"workers": 0}, "workers=0 is too small; give 1 or more"),
        ((10, 5, 2), {"workers": 8, "network": 10}, "network=10 is .* write 10e9"),
    ],
)
def test_bad_input_is_named(arguments, options, words):
    with pytest.raises((ValueError, TypeError), match=words):
        plan(*arguments, **options)


def test_sizes_are_readable():
    sizes = [20_000, 5e6, 999.7e6, 1.24e10, 141e9, 8e12, 3e15]
    assert [size(count) for count in sizes] == [
        "0.02 MB", "5 MB", "1 GB", "12 GB", "141 GB", "8 TB", "3 PB",
    ]  # fmt: skip


def test_a_plan_is_printed_as_a_table():
    planned = plan(1e9, 2_000, 50)
    heading = "1,000,000,000 x 2,000 float32, 50 clusters: 8 TB"
    assert repr(planned).startswith(f"<Plan {heading}; in memory does not fit, ")
    lines = str(planned).splitlines()
    assert lines[0] == heading
    assert lines[1].split() == " ".join(PLACES).split()
    assert lines[2].split() == ["fits", "no", "no", "no", "yes"]
    assert lines[-1].startswith("Assumed")


def test_command_is_the_function(command):
    arguments = ("-n", "1e9", "-p", "2_000", "-k", "5e1", "--machine-memory", 32)
    arguments += ("--workers", 40, "--worker-memory", 100, "--network", 5)
    done = command("plan", *arguments)
    assert done.returncode == 0, done.stderr
    shown = " ".join(done.stdout.split())
    workers = {"workers": 40, "worker_memory": 100e9, "network": 5e9}
    planned = plan(10**9, 2_000, 50, memory=32e9, **workers)
    for line in str(planned).splitlines():
        assert " ".join(in_shell(line).split()) in shown
    found = json.loads(command("plan", *arguments, "--json").stdout)
    disk = planned.needs["on disk"]
    assert found["needs"]["on disk"]["sample_rows"] == disk.sample_rows
    assert found["memory"] == 32e9
    assert found["workers"]["traffic"] == planned.workers.traffic


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        *(
            ("-n", text, f"-n {text}: give a whole number from 1 on")
            for text in ("1e5x", "0", "1.5", "nan", "inf")
        ),
        ("-k", "some", "-k some: give a whole number from 1 on"),
        ("--gpu-memory", -1, "--gpu-memory -1: give a number of GB"),
        ("--network", 0, "--network 0: give a number of GB"),
    ],
)
def test_command_ends_with_one_line_on_bad_input(command, option, value, message):
    arguments = {"-n": 10, "-p": 5, "-k": 2} | {option: value}
    done = command("plan", *(word for pair in arguments.items() for word in pair))
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith(f"error: {message}")
    assert done.stderr.count("\n") == 1


def test_numbers_have_all_their_digits(command):
    done = command("plan", "-n", 12_345_678_901_234_567, "-p", 5, "-k", 2, "--json")
    assert json.loads(done.stdout)["n_samples"] == 12_345_678_901_234_567


def test_the_shape_comes_from_a_file(command, tmp_path):
    X = np.random.default_rng(0).normal(size=(300, 6)).astype(np.float32)
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(name="x")
    frame.to_csv(tmp_path / "x.csv", index=False)
    frame.to_parquet(tmp_path / "x.parquet")
    np.save(tmp_path / "x.npy", X)
    sparse = sp.random_array((300, 6), density=0.1, rng=np.random.default_rng(0))
    sp.save_npz(tmp_path / "x.npz", sp.csr_array(sparse))
    for name in ("x.csv", "x.parquet", "x.npy", "x.npz"):
        done = command("plan", tmp_path / name, "-k", 3, "--json")
        found = json.loads(done.stdout)
        assert [found[key] for key in ("n_samples", "n_features")] == [300, 6]
        assert found["dtype"] == ("float32" if name == "x.npy" else found["dtype"])
        assert found["density"] == (0.1 if name == "x.npz" else None)
        assert found["data"] == str(tmp_path / name)
    assert "x.csv: 300 x 6 float" in command("plan", tmp_path / "x.csv").stdout
    done = command("plan", tmp_path / "x.csv", "-n", 5)
    assert "x.csv has its own; leave one out" in done.stderr
    assert "Give DATA, or its shape: -n is missing" in command("plan", "-p", 5).stderr


def test_the_shape_is_read_without_the_data(command, tmp_path):
    # A file of 69 GB with holes, of which only the header was ever written.
    path = tmp_path / "large.npy"
    np.lib.format.open_memmap(path, "w+", np.float32, (2**14, 2**20)).flush()
    done = command("plan", path, "--machine-memory", 8)
    assert done.returncode == 0, done.stderr
    assert "16,384 x 1,048,576 float32, 50 clusters: 69 GB" in done.stdout
