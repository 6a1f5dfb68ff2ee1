"""Damaged files of every format that is read: drawn, read and judged.

A case is a dictionary, as in ``cases.py``: the kind of file, what is done to its bytes,
and who reads it.
"""

import gzip
import io
import json
import tempfile
import warnings
import zipfile
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path

import anndata
import h5py
import numpy as np
import openpyxl
import pandas as pd
import scipy.sparse as sp
import zarr
from cases import is_sentence
from hypothesis import strategies as st
from sklearn.pipeline import make_pipeline

import ihgmm
from ihgmm import ColumnScaler, IhGMM, IhSC
from ihgmm.cli.commands import app
from ihgmm.storage import StorageError, load_model, save_model


@cache
def sample():
    X, labels = ihgmm.make_ihgmm(40, 6, 3, random_state=0)
    return np.round(X, 3), labels


def _frame():
    X, labels = sample()
    frame = pd.DataFrame(X, columns=[f"gene {j}" for j in range(X.shape[1])])
    return frame.assign(kind=[f"k{label}" for label in labels])


def _saved(save):
    """Return the bytes of what a function writes into a file."""
    with tempfile.TemporaryDirectory() as folder:
        save(f"{folder}/file")
        return Path(folder, "file").read_bytes()


def _h5ad(matrix):
    X, labels = sample()
    obs = {"kind": [f"k{i}" for i in labels]}
    return _saved(anndata.AnnData(matrix(X), obs=obs).write_h5ad)


def _written(write, *arguments, **options):
    file = io.BytesIO()
    write(file, *arguments, **options)
    return file.getvalue()


TABLES = {
    "a.csv": lambda: _frame().to_csv(index=False).encode(),
    "a.tsv": lambda: _frame().to_csv(index=False, sep="\t").encode(),
    "a.csv.gz": lambda: gzip.compress(_frame().to_csv(index=False).encode(), mtime=0),
    "a.parquet": lambda: _frame().to_parquet(index=False),
    "a.npy": lambda: _written(np.save, sample()[0]),
    "a.npz": lambda: _written(np.savez, X=sample()[0], labels=sample()[1]),
    "sparse.npz": lambda: _written(sp.save_npz, sp.csr_array(sample()[0])),
    "a.h5ad": lambda: _h5ad(np.asarray),
    "sparse.h5ad": lambda: _h5ad(sp.csr_matrix),
    "a.jsonl": lambda: _frame().to_json(orient="records", lines=True).encode(),
    "a.xlsx": lambda: _written(_frame().to_excel, index=False),
}
STREAMED = ("a.parquet", "a.npy", "a.h5ad", "sparse.h5ad")
MODELS = {
    "IhSC": lambda: IhSC(3, random_state=0),
    "cosine": lambda: IhSC(3, recipe=ihgmm.Recipe(placement="cosine"), random_state=0),
    "outliers": lambda: IhSC(3, outliers="auto", random_state=0),
    "whitened": lambda: IhSC(3, columns="noise", random_state=0),
    "filled": lambda: IhSC(3, missing="fit", random_state=0),
    "IhGMM": lambda: IhGMM(3, random_state=0),
    "tied": lambda: IhGMM(3, noise="tied", random_state=0),
    "psc": lambda: IhSC(3, recipe="psc", random_state=0),
    "SphericalKMeans": lambda: ihgmm.SphericalKMeans(3, random_state=0),
    "scaled": lambda: make_pipeline(ColumnScaler("scale"), IhSC(3, random_state=0)),
}


@cache
def whole(name):
    """Return the bytes of a file before it is damaged."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if name in TABLES:
            return TABLES[name]()
        model = MODELS[name]().fit(sample()[0])
        return _saved(lambda path: save_model(model, path))


VALUES = [
    None, True, -1, 0, 1, 3, 2.5, 10**30, float("nan"), float("inf"), "", "x", [], {},
    [1], "unit", "tied", "cosine", 1e308, "0" * 40,
]  # fmt: skip
TEXT = b'9-.eE ,\n"%{}[]\x00\xff;\t'
# What becomes of some bytes, by a number from 0 to 255.
CHANGES = {
    "flip": lambda part, value: (
        bytes(byte ^ 1 << value % 8 for byte in part[:1]) + part[1:]
    ),
    "set": lambda part, value: bytes([value]) * len(part),
    "cut": lambda part, value: b"",
    "end": lambda part, value: b"",
    "put": lambda part, value: bytes([TEXT[value % len(TEXT)]]) * len(part) + part,
    "copy": lambda part, value: part + part,
    "zero": lambda part, value: bytes(len(part)),
}
BYTES = st.fixed_dictionaries(
    {
        "how": st.sampled_from(list(CHANGES)),
        "at": st.floats(0, 1),
        "length": st.sampled_from([1, 1, 2, 4, 8, 50, 400]),
        "value": st.integers(0, 255),
    }
)
ARRAYS = {
    "row": lambda array: array[:-1],
    "flat": np.ravel,
    "int": lambda array: np.nan_to_num(array, posinf=9, neginf=-9).astype(np.int64),
    "float": lambda array: array.astype(np.float64),
    "empty": lambda array: array[:0],
}
NUMBERS = {"nan": np.nan, "inf": np.inf, "huge": 1e300}
PARTS = st.fixed_dictionaries(
    {
        "how": st.sampled_from(["header", "array"]),
        "which": st.integers(0, 200),
        "change": st.sampled_from(["drop", *NUMBERS, *ARRAYS]),
        "value": st.sampled_from(VALUES),
    }
)


# Small files that claim to be large, by two numbers


def _array_claim(path, n, p):
    if path.suffix == ".zarr":
        zarr.create_array(str(path), shape=(n, p), chunks=(min(n, 1000), p), dtype="f8")
        return
    with h5py.File(path, "w") as file:
        file.create_dataset("X", (n, p), "f8", chunks=(min(n, 1000), p))


def _npy(n, p):
    file = io.BytesIO()
    header = {"descr": "<f8", "fortran_order": False, "shape": (n, p)}
    np.lib.format.write_array_header_1_0(file, header)
    return file.getvalue() + bytes(8000)


def _archive_claim(path, n, p):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("X.npy", _npy(n, p))
        archive.writestr("rest", bytes(min(n, 10**7)))


def _text_claim(path, n, p):
    line = ",".join("1" * p).encode() + b"\n"
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(min(n // 1000, 2 * 10**7 // len(line) // 1000) + 1):
            file.write(line * 1000)


def _nested_claim(path, n, p):
    depth = min(n, 10**5)
    path.write_text(f'{{"a": 1}}\n{{"a": {"[" * depth}{"]" * depth}}}\n')


def _sheet_claim(path, n, p):
    book = openpyxl.Workbook()
    for i in range(min(p, 30)):
        sheet = book.create_sheet(f"s{i}")
        sheet.cell(min(n, 2**20), min(p * 100, 2**14), 1.0)
    book.save(path)


CLAIMS = {
    "a.h5": _array_claim,
    "a.h5ad": _array_claim,
    "a.zarr": _array_claim,
    "a.npy": lambda path, n, p: path.write_bytes(_npy(n, p)),
    "a.npz": _archive_claim,
    "sparse.npz": lambda path, n, p: sp.save_npz(
        path, sp.coo_array(([1.0], ([0], [0])), shape=(n, p))
    ),
    "a.csv.gz": _text_claim,
    "a.jsonl": _nested_claim,
    "a.xlsx": _sheet_claim,
}
MOST = 1.0  # GB that a case may take more than those before


def cases():
    """Draw a file, its damage and its reader."""
    claims = st.fixed_dictionaries(
        {
            "file": st.sampled_from(list(CLAIMS)),
            "claims": st.tuples(st.integers(1, 15), st.integers(1, 500)),
            "reader": st.sampled_from(["fit", "blocks", "open"]),
        }
    )
    tables = st.fixed_dictionaries(
        {
            "file": st.sampled_from(list(TABLES)),
            "damage": st.lists(BYTES, min_size=1, max_size=4),
            "reader": st.sampled_from(["fit", "fit", "blocks", "open"]),
        }
    )
    models = st.fixed_dictionaries(
        {
            "file": st.sampled_from(list(MODELS)),
            "damage": st.lists(st.one_of(BYTES, PARTS, PARTS), min_size=1, max_size=3),
            "reader": st.just("model"),
        }
    )
    return st.one_of(tables, tables, tables, models, models, claims)


def damaged(raw, damage):
    """Return bytes after some damage."""
    for step in damage:
        if step["how"] in ("header", "array"):
            raw = _change_part(raw, step)
            continue

        at = int(step["at"] * max(len(raw) - 1, 0))
        end = len(raw) if step["how"] == "end" else at + step["length"]
        changed = CHANGES[step["how"]](raw[at:end], step["value"])
        raw = raw[:at] + changed + raw[end:]

    return raw


def _change_part(raw, step):
    """Return a model with one thing changed in its header or in one array."""
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            parts = {name: archive.read(name) for name in archive.namelist()}
        header = json.loads(parts["header.json"])
        if step["how"] == "header":
            _change_value(header, step["which"], step["value"])
            parts["header.json"] = json.dumps(header).encode()
        else:
            names = [name for name in parts if name != "header.json"]
            name = names[step["which"] % len(names)]
            _change_array(parts, name, step["change"])
    except (zipfile.BadZipFile, RuntimeError, OSError, EOFError, ValueError,
            LookupError, ZeroDivisionError):  # fmt: skip
        return raw  # it is no archive any more, or there is nothing left to change

    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, part in parts.items():
            archive.writestr(name, part)

    return file.getvalue()


def _change_value(node, which, value):
    """Put a value in the place of one of all those in a tree."""
    places = []

    def walk(tree):
        for key in tree if isinstance(tree, dict) else range(len(tree)):
            places.append((tree, key))
            if isinstance(tree[key], (dict, list)):
                walk(tree[key])

    walk(node)

    tree, key = places[which % len(places)]
    tree[key] = value


def _change_array(parts, name, change):
    if change == "drop":
        del parts[name]
        return

    array = np.load(io.BytesIO(parts[name]))
    if change in ARRAYS:
        array = ARRAYS[change](array)
    elif array.size:
        array.flat[0] = NUMBERS[change] if array.dtype.kind == "f" else 2**40

    parts[name] = _written(np.save, array)


def run(case):
    """Read a damaged file; return None, or what was not clear about it."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", RuntimeWarning)
        path = Path(folder, case["file"])
        if "claims" in case:
            exponent, p = case["claims"]
            CLAIMS[case["file"]](path, 10**exponent, p)
        else:
            path.write_bytes(damaged(whole(case["file"]), case["damage"]))

        peak_before = _peak()
        try:
            failure = _READERS[case["reader"]](path)
        except Exception as error:
            return f"{type(error).__name__}: {error}"[:300]

        growth = _peak() - peak_before
        return failure or (f"took {growth:.1f} GB" if growth > MOST else None)


def _peak():
    """Return the most memory that this process has taken so far, in GB."""
    try:
        import resource
    except ImportError:  # on Windows
        return 0.0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


# What a message speaks of that does not speak of the file.
NUMERICS = ("broadcast", "LAPACK", "ARPACK", "NaNs", "operands", "has no attribute")


def _command(path, *options):
    out = io.StringIO()
    errors = io.StringIO()
    try:
        with redirect_stdout(out), redirect_stderr(errors):
            app(["fit", str(path), "-k", "2", "--json", "--memory", "0.01", *options])
    except SystemExit as ended:
        messages = [line for line in errors.getvalue().splitlines() if line.strip()]
        error = next((line for line in messages if line.startswith("error: ")), "")

        if ended.code == 0:
            json.loads(out.getvalue())
        elif ended.code not in (1, 2) or not error:
            return f"exit code {ended.code}: {messages[-1:]}"
        elif any(word in error for word in NUMERICS):
            return error[:300]

    return None


def _open(path):
    if path.name not in (*STREAMED, "a.h5", "a.zarr"):
        return _command(path)

    try:
        X = ihgmm.open_data(path)
        IhSC(2, missing="fit", random_state=0).fit(X)
    except (ValueError, TypeError, OSError, EOFError, IndexError) as error:
        is_clear = str(path) in str(error) or is_sentence(error)
        return None if is_clear else f"{type(error).__name__}: {error}"[:300]

    return None


def _load(path):
    try:
        model = load_model(path)
    except StorageError as error:
        return None if str(path) in str(error) else f"no name: {error}"

    X, _ = sample()
    names = ("predict", "transform", "score", "predict_proba", "score_samples", "bic")

    for name in names:
        if not hasattr(model, name):
            continue
        try:
            answer = getattr(model, name)(X)
        except Exception as error:
            if not is_sentence(error):
                return f"{name}, {type(error).__name__}: {error}"[:300]
        else:
            if np.isnan(answer).any():
                return f"{name} gives NaN"

    repr(model)
    save_model(model, path)
    return None


_READERS = {
    "fit": _command,
    "blocks": lambda path: _command(path, "--memory", "0"),
    "open": _open,
    "model": _load,
}
