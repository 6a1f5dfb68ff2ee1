"""Imports point down the layers, and only one folder knows kinds of arrays."""

import ast
import re
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "ihgmm"
# From the bottom: a module may import from its own layer or one below.
LAYERS = [
    {"_warnings", "_files", "_parameters", "_progress", "policy"},
    {"matrix"},
    {"numerics"},
    {"_checks", "_text", "_html", "statistics", "metrics", "datasets"},
    {"estimators"},
    {"paper"},
    {"_public"},
    {"plotting", "storage", "anndata"},
    {"report"},
    {"cli", "__main__"},
]
HEIGHT = {name: height for height, names in enumerate(LAYERS) for name in names}
# A look upwards from inside a function, when it is asked for: results draw themselves
# and estimators report on themselves.
UPWARDS = {("statistics", "plotting"), ("estimators", "report")}


def modules():
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        name = ".".join(("ihgmm", *parts)).removesuffix(".__init__")
        yield name, ast.parse(path.read_text(encoding="utf-8"))


def imports(tree, *, inside):
    """Yield modules of the package that are imported, also inside of functions."""
    nodes = ast.walk(tree) if inside else tree.body
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ihgmm"):
            yield from (
                f"{node.module}.{alias.name}"
                if f"{node.module}.{alias.name}" in NAMES
                else node.module
                for alias in node.names
            )


TREES = dict(modules())
NAMES = set(TREES)


@pytest.mark.parametrize("name", sorted(NAMES - {"ihgmm"}))
def test_imports_point_down(name):
    own = name.split(".")[1]
    for module in imports(TREES[name], inside=True):
        if module == "ihgmm":  # the public names: only from above the estimators
            assert HEIGHT[own] > HEIGHT["estimators"], f"{name} imports {module}"
            continue
        other = module.split(".")[1]
        down = HEIGHT[other] <= HEIGHT[own]
        assert down or (own, other) in UPWARDS, f"{name} imports {module}"


def test_no_import_cycles():
    graph = {
        name: set(imports(tree, inside=False)) - {name} for name, tree in TREES.items()
    }
    TopologicalSorter(graph).prepare()  # raises CycleError


ARRAY_LIBRARIES = {"torch", "cupy", "dask", "h5py", "zarr", "array_api_compat"}
KIND_QUESTIONS = {"issparse", "is_foreign", "is_torch_array", "ndarray", "spmatrix"}


@pytest.mark.parametrize(
    "name", sorted(name for name in NAMES if not name.startswith("ihgmm.matrix"))
)
def test_kinds_of_arrays_are_asked_for_in_one_folder(name):
    for node in ast.walk(TREES[name]):
        if isinstance(node, ast.Import | ast.ImportFrom):
            module = getattr(node, "module", None) or node.names[0].name
            assert module.split(".")[0] not in ARRAY_LIBRARIES
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func).split(".")[-1]
            assert called not in KIND_QUESTIONS
            if called == "isinstance":
                kinds = re.findall(r"\w+", ast.unparse(node.args[1]))
                assert not KIND_QUESTIONS.intersection(kinds)


OPTIONAL = (
    "typer",
    "rich",
    "jinja2",
    "pyarrow",
    "pandas",
    "polars",
    "matplotlib",
    "faiss",
    "cvxpy",
    "pooch",
    "dask",
    "h5py",
    "zarr",
    "anndata",
    "torch",
    "cupy",
    "array_api_strict",
)


def loaded(code):
    code += f"; import sys; print([m for m in {OPTIONAL} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return done.stdout


def test_import_loads_no_optional_package():
    # scikit-learn itself loads pandas where it is installed.
    assert loaded("from ihgmm import IhSC") == loaded("import sklearn.cluster")


def test_public_names_come_when_they_are_asked_for():
    code = "import ihgmm, sys; print('numpy' in sys.modules, *dir(ihgmm));"
    code += "from ihgmm import *; print(ihgmm.statistics.__name__, IhSC.__name__)"
    code += "; print(hasattr(ihgmm, 'nothing'))"
    first, second, third = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert first.startswith("False ")
    assert {"IhSC", "select_n_clusters", "__version__"} <= set(first.split())
    assert second == "ihgmm.statistics IhSC"
    assert third == "False"
