"""Plans: counts agree with what a fit does, and say what does not fit."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import dask.array as da
import h5py
import numpy as np
import pytest

from ihgmm import IhSC, make_ihgmm
from ihgmm._readers import open_rows
from ihgmm.cli.plan import _clusters as clusters
from ihgmm.cli.plan import _whole as whole
from ihgmm.gram import GramOperator
from ihgmm.krylov import MAX_APPLICATIONS, block_width
from ihgmm.planning import Machines, plan, size
from ihgmm.planning.counts import Problem
from ihgmm.starts import _sample_size

COMMAND = shutil.which("ihgmm", path=str(Path(sys.executable).parent)) or "ihgmm"


def ihgmm_plan(*arguments):
    return subprocess.run(
        [COMMAND, "plan", *map(str, arguments)],
        capture_output=True, text=True, timeout=120,
        env=os.environ | {"COLUMNS": "120"},
    )  # fmt: skip


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    X, _ = make_ihgmm(40_000, 300, 4, dtype=np.float32, random_state=0)
    path = tmp_path_factory.mktemp("plan") / "x.npy"
    np.save(path, X)
    return np.load(path, mmap_mode="r")


def test_passes_are_those_of_a_fit(stored):
    rows = open_rows(stored)
    IhSC(4, random_state=0).fit(rows)
    assert plan(*stored.shape, 4).laptop.passes == rows.passes == 3


@pytest.mark.parametrize("kind", ["hdf5", "dask"])
def test_passes_of_chunks_are_those_of_a_fit(kind, stored, tmp_path):
    if kind == "dask":
        X = da.from_array(stored, chunks=(5_000, -1))
    else:
        file = h5py.File(tmp_path / "x.h5", "w")
        X = file.create_dataset("X", data=stored, chunks=(5_000, 300))
    rows = open_rows(X)
    IhSC(4, random_state=0).fit(rows)
    found = plan(*stored.shape, 4, machines=Machines(memory=2e8))
    assert rows.passes == found.cluster.passes
    assert rows.passes == found.laptop.passes + Problem(*stored.shape, 4).readings


def test_bound_counts_samples_of_chunks():
    held = plan(10**6, 1_000, 5, machines=Machines(memory=16e9)).laptop
    found = plan(10**6, 1_000, 5, machines=Machines(memory=2e9)).laptop
    assert found.data == "on disk, in blocks"
    more = found.passes_bound - held.passes_bound
    assert more == Problem(10**6, 1_000, 5).readings > 0
    assert f"read by whole chunks: up to {more} passes more." in found.note


@pytest.mark.parametrize(
    "shape", [(40_000, 300), (9_000, 200), (3_000, 1_000), (30_000, 4_000), (400, 900)]
)
def test_sample_is_that_of_the_solver(shape):
    n, p = shape
    X = np.broadcast_to(np.float32(1), shape)
    G = GramOperator(X, sqnorms=np.ones(n))
    expected = _sample_size(G, block_width(7))
    assert Problem(n, p, 7).sample_rows == expected


def test_bound_is_that_of_the_solver():
    found = plan(10**6, 100, 5)
    assert found.laptop.passes_bound == 2 * MAX_APPLICATIONS + 3
    for estimate in (found.laptop, found.gpu, found.cluster):
        assert estimate.seconds_bound > estimate.seconds
        assert estimate.memory_bound > estimate.memory


def test_sizes_of_data():
    assert plan(1_000, 50, 2).data_bytes == 1_000 * 50 * 4
    assert plan(1_000, 50, 2, dtype="float64").data_bytes == 1_000 * 50 * 8
    # A CSR matrix: a number and its column for each entry, and where rows start.
    assert plan(1_000, 50, 2, density=0.1).data_bytes == 5_000 * 8 + 1_000 * 4
    # Column numbers of four bytes do not reach so far.
    assert plan(10**9, 50, 2, density=0.1).data_bytes == 5 * 10**9 * 12 + 8 * 10**9


def test_more_of_everything_takes_longer():
    base = plan(10**6, 1_000, 10)
    for other in (
        plan(2 * 10**6, 1_000, 10),
        plan(10**6, 2_000, 10),
        plan(10**6, 1_000, 30),
        plan(10**6, 1_000, 10, dtype=np.float64),
    ):
        for kind in ("laptop", "gpu", "cluster"):
            before, after = getattr(base, kind), getattr(other, kind)
            assert after.seconds > before.seconds
            assert after.memory >= before.memory
        assert other.cluster.traffic > base.cluster.traffic


def test_data_go_to_disk_where_memory_ends():
    found = plan(10**6, 1_000, 10)
    assert found.laptop.data == "in memory"
    assert found.laptop.memory > found.data_bytes
    less = replace(Machines(), memory=0.9 * found.laptop.memory)
    stored = plan(10**6, 1_000, 10, machines=less).laptop
    assert stored.fits
    assert stored.data == "on disk, in blocks"
    assert stored.memory < found.data_bytes
    assert "memory map" in stored.note


def test_disk_bounds_the_time_of_stored_data():
    slow = Machines(memory=2e9, disk=1e7)
    found = plan(10**6, 1_000, 10, machines=slow)
    assert found.laptop.seconds >= 3 * found.data_bytes / 1e7
    fast = replace(slow, disk=1e12)
    assert plan(10**6, 1_000, 10, machines=fast).laptop.seconds < 60


@pytest.mark.parametrize("kind", ["laptop", "gpu", "cluster"])
def test_sample_that_is_advised_has_room(kind):
    large = getattr(plan(10**9, 2_000, 50), kind)
    assert not large.fits
    assert f"{large.sample_rows:,} rows" in large.note
    assert 0 < large.sample_rows < 10**9
    assert getattr(plan(large.sample_rows, 2_000, 50), kind).fits
    assert not getattr(plan(int(1.05 * large.sample_rows), 2_000, 50), kind).fits


def test_no_room_even_for_a_sample():
    tiny = Machines(memory=3e8, gpu_memory=1e6)
    found = plan(10**8, 2_000, 50, machines=tiny)
    for estimate in (found.laptop, found.gpu):
        assert not estimate.fits
        assert estimate.sample_rows is None
        assert "No sample" in estimate.note


def test_sparse_data_are_dense_on_a_device():
    found = plan(10**6, 100_000, 10, density=0.001)
    assert found.laptop.fits
    assert not found.gpu.fits
    assert found.gpu.memory > 10**6 * 100_000 * 4
    assert "dense" in found.gpu.note


def test_workers_share_the_data():
    few = plan(10**8, 500, 10, machines=Machines(workers=2)).cluster
    many = plan(10**8, 500, 10, machines=Machines(workers=64)).cluster
    assert few.data == "in storage, read by workers"
    assert many.data == "in workers' memory"
    assert many.seconds < few.seconds
    needed = int(few.note.split()[0])
    held = plan(10**8, 500, 10, machines=Machines(workers=needed)).cluster
    assert held.data == many.data
    less = plan(10**8, 500, 10, machines=Machines(workers=needed - 1)).cluster
    assert less.data == few.data


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        ((0, 5, 2), {}, "n_samples=0 is too small; give 1 or more"),
        ((10.5, 5, 2), {}, "n_samples=10.5 is a float; give a whole number"),
        ((10, 5, 11), {}, "n_clusters=11 is more than n_samples=10"),
        ((10, 5, 2), {"density": 1.5}, "density=1.5 is out of range"),
        ((10, 5, 2), {"density": 0}, "density=0 is out of range; give above 0"),
        ((10, 5, 2), {"dtype": "int8"}, "dtype='int8' is not known; give float32"),
        ((10, 5, 2), {"dtype": "real"}, "dtype='real' is not known; give float32"),
    ],
)
def test_bad_input_is_named(arguments, options, words):
    with pytest.raises((ValueError, TypeError), match=words):
        plan(*arguments, **options)


def test_bad_machines_are_named():
    with pytest.raises(ValueError, match="workers=0 is too small"):
        Machines(workers=0)
    with pytest.raises(ValueError, match=r"memory=-1\.0 is out of range"):
        Machines(memory=-1.0)


def test_sizes_are_readable():
    sizes = [20_000, 5e6, 999.7e6, 1.24e10, 141e9, 8e12, 3e15]
    assert [size(count) for count in sizes] == [
        "0.02 MB", "5 MB", "1 GB", "12 GB", "141 GB", "8 TB", "3 PB",
    ]  # fmt: skip


def test_command():
    done = ihgmm_plan("--n", "1e9", "--p", "2_000", "-k", 50)
    assert done.returncode == 0, done.stderr
    for words in (
        "1,000,000,000 x 2,000 float32, 50 clusters: 8 TB",
        "laptop",
        "one GPU",
        "cluster",
        "Fit a random sample of at most",
        "more than 141 GB on the device",
        "16 workers of 4 cores",
    ):
        assert words in " ".join(done.stdout.split())


def test_command_in_json_is_the_function():
    done = ihgmm_plan("--n", "1e6", "--p", 500, "-k", 8, "--workers", 3, "--json")
    found = json.loads(done.stdout)
    expected = plan(10**6, 500, 8, machines=Machines(workers=3))
    assert found["cluster"]["seconds"] == expected.cluster.seconds
    assert found["machines"]["workers"] == 3
    assert found["laptop"]["fits"] is True


@pytest.mark.parametrize("text", ["many", "0", "-3", "1.5", "nan", "inf", ""])
def test_bad_numbers_are_named(text):
    with pytest.raises(ValueError, match=f"--n {text}: give a whole number from 1 on"):
        whole("--n", text)


def test_numbers_as_people_write_them():
    assert whole("--n", "1e9") == whole("--n", "1_000_000_000") == 10**9
    assert whole("--n", "12345678901234567") == 12_345_678_901_234_567


def test_command_ends_with_one_line_on_bad_input():
    done = ihgmm_plan("--n", "1e5x", "--p", 10, "-k", 2)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("error: --n 1e5x: give a whole number")
    done = ihgmm_plan("--n", 10, "--p", 5, "-k", 2, "--gpu-memory", -1)
    assert done.returncode == 2
    assert done.stderr.startswith("error: --gpu-memory -1: give a number of GB")
    assert "Traceback" not in done.stderr


def test_a_plan_is_printed_as_a_table():
    found = plan(10**9, 2_000, 50)
    assert repr(found).startswith("<Plan 1,000,000,000 x 2,000 float32, 50 clusters")
    lines = str(found).splitlines()
    assert lines[1].split() == ["laptop", "one", "GPU", "cluster"]
    assert lines[3].split() == ["fits", "no", "no", "no"]
    assert any(line.startswith("laptop: ") and "sample" in line for line in lines)
    assert lines[-1].startswith("Taken for granted")


def test_the_number_of_clusters_is_not_known_beforehand():
    with pytest.raises(ValueError, match=r"n_clusters='auto' .*the most you expect"):
        plan(1_000, 50, "auto")
    with pytest.raises(ValueError, match=r"^-k auto: .* give the most you expect"):
        clusters("auto")
    assert clusters("2e1") == 20


def test_machines_of_another_type():
    with pytest.raises(TypeError, match=r"'memory': 1\} is a dict; give .*Machines\("):
        plan(1_000, 50, 2, machines={"memory": 1})
