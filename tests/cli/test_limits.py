"""Files that would end the program, or take its memory or hours."""

import gzip
import os
import shlex
import subprocess
import sys
import zipfile
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import zarr
from command_line import fail, good, named, read

import ihgmm
from ihgmm.cli import files
from ihgmm.storage import load_model


@pytest.mark.parametrize("end", ["\r", "\n", "\r\n"])
def test_ids_of_several_lines_stay_in_their_cell(end):
    name = f"first{end}=cmd()"
    files.write_csv(Path("out.csv"), [["id", "x"], [name, 1]])

    assert Path("out.csv").read_bytes() == f'id,x\n"{name}",1\n'.encode()
    assert read("out.csv") == [{"id": name, "x": "1"}]
    assert pd.read_csv("out.csv")["id"].tolist() == [name]


@pytest.mark.parametrize(
    "record",
    ["3", '{"a":' + "[" * 3000 + "]" * 3000 + "}", '{"a":' * 3000 + "1" + "}" * 3000],
)
def test_json_that_is_nested_deeply_or_no_record(record):
    Path("a.jsonl").write_text(f'{{"a": 1}}\n{record}\n')
    message = fail("fit", "a.jsonl", "-k", 2)

    assert "a.jsonl cannot be read as jsonl: line 2: " in message
    assert len(record) == 1 or "maximum recursion" in message


def claims(name, shape):
    """Write a file of some kB that says that an array has this shape."""
    if name.endswith(".zarr"):
        zarr.create_array(name, shape=shape, chunks=(1000, shape[1]), dtype="f8")
        return
    with h5py.File(name, "w") as file:
        file.create_dataset("X", shape, "f8", chunks=(1000, shape[1]))


@pytest.mark.parametrize("name", ["a.zarr", "a.h5", "a.h5ad"])
@pytest.mark.parametrize("n_rows", [10**9, 10**12])
def test_an_array_that_claims_more_than_is_stored(name, n_rows, monkeypatch):
    claims(name, (n_rows, 3))

    with pytest.raises(ValueError, match=r"claims .* bytes of it are stored"):
        ihgmm.open_data(name)

    if name == "a.h5ad":
        assert "IHGMM_MAX_EXPANSION" in fail("fit", name, "-k", 2)
    monkeypatch.setenv("IHGMM_MAX_EXPANSION", "inf")
    if n_rows == 10**9:
        assert ihgmm.open_data(name).shape == (n_rows, 3)


def test_small_files_of_what_is_too_large():
    with gzip.open("a.csv.gz", "wb") as file:
        file.write(b"a,b\n" + b"1,2\n" * 2**22)
    with zipfile.ZipFile("a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("X", bytes(2**24))  # not X.npy
    sp.save_npz("sparse.npz", sp.coo_array(([1.0], ([0], [0])), shape=(10**9, 3)))
    for name, memory in (("a.csv.gz", 0.01), ("a.npz", 0.01), ("sparse.npz", 1)):
        assert os.path.getsize(name) < 1e5
        message = fail("fit", name, "-k", 2, "--memory", memory)
        assert f"{name} is too large for {memory} GB of memory" in message
        assert "raise --memory" in message

    assert "has shape ()" in fail("fit", "a.npz", "-k", 2)


@pytest.mark.parametrize("name", ["a.csv", "a.npy", "a.parquet", "a.h5ad", "/dev/zero"])
def test_a_fifo_is_not_waited_for_and_a_device_not_read(name):
    if name[0] == "a":
        os.mkfifo(name)

    assert "is a device, a FIFO or a socket" in fail("fit", name, "-k", 2)

    if name != "a.csv":
        with pytest.raises(ValueError, match="is a device, a FIFO or a socket"):
            ihgmm.open_data(name)

    with pytest.raises(ValueError, match="is a device, a FIFO or a socket"):
        load_model(name)


@pytest.mark.parametrize("path", [None, 5, 2.5, ["a"], {}])
def test_what_is_no_path_is_said_to_be_none(path, sample):
    model = ihgmm.IhSC(3).fit(sample[0])
    for function in (ihgmm.open_data, load_model):
        with pytest.raises(TypeError, match="not the name of a file"):
            function(path)

    if path is not None:  # for which a report returns the page
        with pytest.raises(TypeError, match="not the name of a file"):
            model.report(sample[0], path)


def test_an_archive_with_the_name_of_an_array(sample):
    np.savez("a.npz", X=sample[0])
    Path("a.npz").rename("a.npy")

    with pytest.raises(ValueError, match=r"a.npy cannot .* archive of arrays, \['X'\]"):
        ihgmm.open_data("a.npy")

    good("fit", "a.npy", "-k", 3, "-q")


def test_standard_input_that_is_closed():
    command = shlex.join([sys.executable, "-m", "ihgmm", "fit", "-", "-k", "3"])
    process = subprocess.run(f"{command} <&-", shell=True, capture_output=True)
    message = b"error: Standard input is empty, or holds no text"

    assert process.returncode == 2
    assert process.stderr.startswith(message)


def test_standard_input_with_a_suffix(sample):
    np.savez("-.npz", X=sample[0])
    message = fail("fit", "-.npz", "-k", 3).replace("\u2502 ", "")

    assert "- alone is standard input, which takes CSV, TSV or JSON lines" in message

    good("fit", "./-.npz", "-k", 3, "-q")


def test_python_without_docstrings_and_an_encoding_that_lacks_letters(sample):
    table = named(sample[0]).rename(columns={"f0": "\u65e5\u672c", "f1": "\u20ac"})
    table.to_csv("a.csv", index=False)
    environment = os.environ | {"PYTHONOPTIMIZE": "2", "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "ihgmm", "fit", "a.csv", "-k", "3"]
    process = subprocess.run(command, capture_output=True, env=environment)

    assert (process.returncode, process.stderr) == (0, b"")
    assert rb"\u65e5\u672c" in process.stdout
