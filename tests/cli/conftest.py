import numpy as np
import pytest

from ihgmm import make_ihgmm


@pytest.fixture(scope="session")
def sample():
    X, labels = make_ihgmm(120, 12, 3, random_state=0)
    return np.round(X, 6), labels


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path
