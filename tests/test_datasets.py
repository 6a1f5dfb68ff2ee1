"""Data sets: content checks, the cache, and downloads from a real local server."""

import bz2
import functools
import http.server
import os
import re
import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from ihgmm.datasets import DatasetError, _cache, list_datasets, load_dataset, zscore

DATA_HOME = os.environ.get("IHGMM_DATA")
SHAPES = {
    "iris": (150, 4, 3, "none"),
    "wine": (178, 13, 3, "zscore"),
    "seeds": (210, 7, 3, "zscore"),
    "dermatology": (358, 34, 6, "zscore"),
    "dna": (2000, 180, 3, "zscore"),
    "segment": (2310, 19, 7, "none"),
    "satimage": (4435, 36, 6, "none"),
    "usps": (7291, 256, 10, "none"),
    "pendigits": (7494, 16, 10, "zscore"),
}

TOY = b"1.5 2 1\n2.5 1 1\n? 3 2\n3.5 -4 2\n"
WRONG = TOY.replace(b"-4", b"-5")


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    monkeypatch.delenv("IHGMM_DATA", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture(scope="session")
def upstream(root):
    """Load an upstream file by the name of its data set, once."""
    folder = Path(DATA_HOME) if DATA_HOME else root.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the upstream files are in no folder that IHGMM_DATA names")
    return functools.cache(lambda name: load_dataset(name.upper(), data_home=folder))


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.requests.append(self.path)
        self.server.answer(self)

    def body(self, content, length=None):
        self.send_response(200)
        self.send_header("Content-Length", str(length or len(content)))
        self.end_headers()
        self.wfile.write(content)
        self.wfile.flush()

    def log_message(self, *args):
        pass


@pytest.fixture
def server(monkeypatch):
    """A server of data set "toy"; set ``answer`` to a function of the handler."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.requests = []
    server.release = threading.Event()
    server.answer = lambda handler: handler.body(TOY)
    data = np.array([[1.5, 2.0], [2.5, 1.0], [3.5, -4.0]])
    target = np.array([0, 0, 1])
    server.entry = SimpleNamespace(
        title="Toy", about="Three rows.", citation="Nobody.", preprocessing="zscore",
        url=f"http://127.0.0.1:{server.server_port}/toy.txt", layout="spaces",
        first_label=1, precision=1e-8,
        counts=(2, 1), sums=tuple(_cache.class_sums(data, target, 2)),
        feature_names=("a", "b"), target_names=("x", "y"),
    )  # fmt: skip
    monkeypatch.setitem(_cache.CATALOG, "toy", server.entry)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.release.set()
    server.shutdown()
    server.server_close()
    thread.join()


def stalled(handler):
    handler.body(TOY[:10], length=len(TOY))
    handler.server.release.wait(20)


BAD_ANSWERS = [
    (lambda h: h.body(TOY[:-2], length=len(TOY)), "cannot be downloaded"),
    (lambda h: h.body(TOY[:-9]), "it holds 2 complete rows of 2 features, .*, not 3"),
    (stalled, "the server sent nothing for 0.3 seconds"),
    (lambda h: h.send_error(404), "HTTP Error 404"),
    (lambda h: h.body(WRONG), r"its values are not the right .* classes \[2\]"),
    (lambda h: h.body(b"<html>Please log in</html>"), "ValueError: .*<html>Please"),
]


@pytest.mark.parametrize("name", SHAPES)
def test_upstream_files(name, request):
    n, p, k, preprocessing = SHAPES[name]

    assert list_datasets() == list(SHAPES)

    bundled = name in ("iris", "wine")
    load = load_dataset if bundled else request.getfixturevalue("upstream")
    bunch = load(name)

    assert bunch.name == name
    assert bunch.data.shape == bunch.X.shape == (n, p)
    assert bunch.data.dtype == bunch.X.dtype == np.float64
    assert np.isfinite(bunch.data).all()
    assert (bunch.target.shape, bunch.target.dtype) == ((n,), np.int64)
    assert_array_equal(np.unique(bunch.target), np.arange(k))
    assert len(bunch.feature_names) == len(set(bunch.feature_names)) == p
    assert len(set(bunch.target_names)) == k
    assert f"{n} rows, {p} features, {k} classes" in bunch.DESCR
    assert bunch.citation in bunch.DESCR
    assert bunch.preprocessing == preprocessing
    assert not zscore(np.full((10, 1), 0.1)).any()  # a constant column

    if preprocessing == "none":
        assert_array_equal(bunch.X, bunch.data)
    else:
        assert_allclose(bunch.X.mean(axis=0), 0, atol=1e-12)
        assert_allclose(bunch.X.std(axis=0, ddof=1), 1)

    assert not np.shares_memory(bunch.X, bunch.data)


@pytest.mark.parametrize("name", ["seeds", "dermatology", "segment"])
def test_content_is_checked_whatever_its_order_and_rounding(name, upstream):
    entry = _cache.CATALOG[name]
    rng = np.random.default_rng(0)
    data = upstream(name).data
    target = upstream(name).target
    order = rng.permutation(len(data))
    size = entry.precision
    for shape in (data.shape, (1, data.shape[1]), ()):
        shift = rng.choice([-size, size], shape)
        _cache.check_content(entry, (data + shift)[order], target[order])

    def refused(data, target, match):
        with pytest.raises(ValueError, match=match):
            _cache.check_content(entry, data, target)

    values = "values are not the right ones"
    i = rng.integers(data.shape[0])
    j = rng.integers(data.shape[1])
    for value in (data[i, j] + 1, np.nan, np.inf):
        changed = data.copy()
        changed[i, j] = value
        refused(changed, target, values)

    refused(data[:, ::-1], target, values)
    refused(data[1:], target[1:], "complete rows")
    refused(data[:, 1:], target, "complete rows")

    swapped = target.copy()
    pair = [rng.choice(np.flatnonzero(target == k)) for k in (0, 1)]
    swapped[pair] = swapped[pair[::-1]]
    refused(data, swapped, values)
    swapped[pair] = 0
    refused(data, swapped, "in classes of")
    refused(data, target + 0.5, "in classes of")


def test_one_download_to_the_folder_that_is_named(server, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    folders = [tmp_path / ".cache" / "ihgmm", tmp_path / "variable", tmp_path / "a"]
    load_dataset("toy")
    monkeypatch.setenv("IHGMM_DATA", str(folders[1]))
    load_dataset("toy")
    first = load_dataset("toy", data_home=str(folders[2]))
    repeated = load_dataset("toy", data_home="~/a")

    assert server.requests == ["/toy.txt"] * 3

    for folder in folders:
        assert [path.name for path in folder.iterdir()] == ["toy.txt"]

    assert_array_equal(first.data, [[1.5, 2], [2.5, 1], [3.5, -4]])
    assert_array_equal(first.target, [0, 0, 1])
    assert_array_equal(repeated.data, first.data)


@pytest.mark.parametrize(("answer", "message"), BAD_ANSWERS)
def test_bad_download_leaves_nothing(answer, message, server, tmp_path):
    good_answer = server.answer
    server.answer = answer

    with pytest.raises(DatasetError, match=message) as caught:
        load_dataset("toy", data_home=tmp_path, timeout=0.3)

    assert server.entry.url in str(caught.value)
    assert f"save it as {tmp_path / 'toy.txt'}" in str(caught.value)
    assert list(tmp_path.iterdir()) == []

    server.answer = good_answer

    assert load_dataset("toy", data_home=tmp_path).data.shape == (3, 2)


def test_archives_are_unpacked(server, tmp_path):
    server.entry.url = "http://127.0.0.1:9/toy.bz2"
    (tmp_path / "toy.bz2").write_bytes(bz2.compress(TOY))

    assert load_dataset("toy", data_home=tmp_path).data.shape == (3, 2)

    (tmp_path / "toy.bz2").write_bytes(bz2.compress(TOY)[:-9])

    with pytest.raises(DatasetError, match="is not the Toy data"):
        load_dataset("toy", data_home=tmp_path)


def test_wrong_file_in_the_cache_is_refused_and_kept(server, tmp_path):
    path = tmp_path / "toy.txt"
    for content in (WRONG, TOY[:9], b""):
        path.write_bytes(content)
        with pytest.raises(DatasetError, match="is not the Toy data") as caught:
            load_dataset("toy", data_home=tmp_path)
        assert re.search(rf"{path} .* Move it away", str(caught.value))
        assert path.read_bytes() == content

    assert server.requests == []


def test_no_download_unless_allowed_and_possible(server, tmp_path):
    with pytest.raises(DatasetError, match="download_if_missing=True"):
        load_dataset("toy", data_home=tmp_path / "new", download_if_missing=False)

    assert server.requests == []
    assert not (tmp_path / "new").exists()

    (tmp_path / "file").touch()

    with pytest.raises(DatasetError, match="cannot be downloaded"):
        load_dataset("toy", data_home=tmp_path / "file")


def test_bad_arguments():
    with pytest.raises(ValueError, match="name='irs' is not known; give one of 'iris'"):
        load_dataset("irs")
    with pytest.raises(ValueError, match="timeout=0 is out of range"):
        load_dataset("iris", timeout=0)
