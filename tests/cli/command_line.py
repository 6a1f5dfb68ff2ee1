"""How the tests run commands, and the files that they read and write."""

import csv
import json
import warnings

import numpy as np
import pandas as pd
import scipy.sparse as sp
from typer.testing import CliRunner

from ihgmm.cli.commands import app
from ihgmm.cli.tables.files.memory import memory_for_data
from ihgmm.cli.tables.reading import read_table
from ihgmm.cli.tables.request import PreparationRequest, Request

# Of a labels file.
COLUMNS = ["row", "cluster", "scale", "size", "certainty", "typical", "filled"]


def invoke(*arguments):
    """Run the command in this process, which saves two seconds of imports.

    Its warnings are printed, as users have it, and end nothing.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        return CliRunner().invoke(app, [str(a) for a in arguments])


def good(*arguments):
    """Return what a command prints that has nothing to complain of."""
    result = invoke(*arguments)

    assert result.exit_code == 0, result.stderr or result.exception
    # What takes long says so in a line.
    lines = result.stderr.splitlines()
    assert [line for line in lines if not line.endswith(" ...")] == []

    return result.stdout


def document(*arguments):
    return json.loads(good(*arguments, "--json"))


def fail(*arguments, code=2):
    """Return the message of a command that ends with this exit code."""
    result = invoke(*arguments)

    assert result.exit_code == code
    assert result.stdout == ""
    assert isinstance(result.exception, SystemExit)  # told, not thrown

    return " ".join(result.stderr.split())


def read(path, delimiter=","):
    """Return the rows of a file below its heading, by the names of the columns."""
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter=delimiter))


def clusters(path):
    return [row["cluster"] for row in read(path)]


def table_of(source, missing="error", prepare="none", memory=None, **asked):
    """Return a table with its columns as they are in the file."""
    request = Request(source, memory=memory_for_data(memory), **asked)
    preparation = PreparationRequest(missing=missing, prepare=prepare)
    return read_table(request, preparation)


def notes_of(table):
    """Return what is said about a table, as one text."""
    return " ".join(map(str, table.notes))


GOODS = ["cheese", "meat", "fish", "fruit", "drinks"]


def shop(n=90):
    """Return customers of three kinds, with amounts of money."""
    rng = np.random.default_rng(1)
    profiles = np.array([[8, 1, 2, 1, 1], [1, 8, 1, 2, 1], [1, 2, 8, 1, 3]])
    sizes = 10 * np.exp(rng.normal(0, 0.8, (n, 1)))
    amounts = profiles[np.arange(n) % 3] * sizes * np.exp(rng.normal(0, 0.2, (n, 5)))
    frame = pd.DataFrame(amounts.round(2), columns=GOODS)
    frame.insert(0, "customer no.", np.arange(101, 101 + n))
    return frame


def named(X):
    return pd.DataFrame(X, columns=[f"f{i}" for i in range(X.shape[1])])


def write(name, X, labels):
    """Write data in the format that the name asks for."""
    table = named(X)
    if name.endswith((".csv", ".csv.gz", ".tsv")):
        table.to_csv(name, index=False, sep="\t" if name.endswith("tsv") else ",")
    elif name.endswith(".parquet"):
        table.to_parquet(name)
    elif name.endswith(".npy"):
        np.save(name, X)
    elif name == "dense.npz":
        np.savez(name, X=X, labels=labels)
    else:
        sp.save_npz(name, sp.csr_matrix(X))
