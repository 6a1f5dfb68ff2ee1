"""What commands say where newcomers would read something else into it."""

import numpy as np
import pytest
from command_line import fail, invoke, named

from ihgmm import make_ihgmm


def test_a_file_that_is_missing_is_called_so_whatever_else_is_asked():
    for option in ("--layer", "--sheet", "--text-column"):
        message = fail("fit", "no.h5ad", "-k", "2", option, "counts")
        assert "no.h5ad: no such file, nor a built-in data set" in message


@pytest.mark.filterwarnings("always")
def test_a_warning_is_printed_once():
    X, _ = make_ihgmm(120, 12, 3, random_state=0)
    X[5] *= 1e-90
    X[0, 0] = 1e5
    named(X).to_csv("faint.csv", index=False)
    done = invoke("fit", "faint.csv", "-k", "3", "--prepare", "none")
    assert done.stderr.count("are shorter than") == 1


@pytest.mark.filterwarnings("always")
@pytest.mark.parametrize(("zeros", "text"), [(0, ""), (1, " but zeros")])
def test_rows_without_an_observed_cell_are_called_so(zeros, text):
    X, _ = make_ihgmm(120, 12, 3, random_state=0)
    X[:zeros] = 0
    X[[5, 7]] = np.nan
    names = [f"n{i}" for i in range(120)]
    frame = named(X).assign(name=names, other=names)
    frame.to_csv("x.csv", index=False)
    done = invoke("fit", "x.csv", "-k", "3", "--save", "m.npz", "--id-column", "name")
    assert f"{2 + zeros} rows have no observed cell{text}: their" in done.stdout
    if not zeros:
        assert "2 of 120 rows have no observed cell. They show no" in done.stderr
        done = invoke("predict", "m.npz", "x.csv")
        assert "are without an observed cell in the columns of the" in done.stderr
