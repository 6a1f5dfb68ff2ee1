"""Imports point down the layers, and only one folder knows kinds of arrays.

The thresholds of the policy are all in use, and the commands that chose them exist.
"""

import ast
import inspect
import re
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import ihgmm
from ihgmm import policy

SOURCE = Path(ihgmm.__file__).parent
# From the bottom: a module may import from its own layer or one below.
LAYERS = [
    {"_display", "_files", "_parameters", "_progress", "_warnings", "policy"},
    {"matrix"},
    {"numerics"},
    {"_checks", "statistics", "metrics", "datasets"},
    {"estimators"},
    {"paper"},
    {"_public"},
    {"words"},
    {"plotting", "storage", "anndata"},
    {"report"},
    {"cli", "__main__"},
]
HEIGHT = {name: height for height, names in enumerate(LAYERS) for name in names}


def modules():
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        name = ".".join(("ihgmm", *parts)).removesuffix(".__init__")
        yield name, ast.parse(path.read_text(encoding="utf-8"))


def imports(tree):
    """Yield modules of the package that are imported, also inside of functions.

    A text that names a module, for an import at run time, counts as well.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if name in NAMES else node.module for name in names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names = [node.value.partition(":")[0]]
            names = [name for name in names if name in NAMES - {"ihgmm"}]
        else:
            continue
        yield from (name for name in names if name.split(".")[0] == "ihgmm")


TREES = dict(modules())
NAMES = set(TREES)


@pytest.mark.parametrize("name", sorted(NAMES - {"ihgmm"}))
def test_imports_point_down(name):
    layer = name.split(".")[1]
    for module in set(imports(TREES[name])):
        if module == "ihgmm":  # the public names: only from above the estimators
            assert HEIGHT[layer] > HEIGHT["estimators"], f"{name} imports {module}"
            continue
        imported = module.split(".")[1]
        assert HEIGHT[imported] <= HEIGHT[layer], f"{name} imports {module}"


def running(name):
    """Return the part of a module whose imports run: not those for type checkers."""
    types = [node for node in TREES[name].body if isinstance(node, ast.If)]
    types = [node for node in types if ast.unparse(node.test) == "TYPE_CHECKING"]
    return ast.Module([node for node in TREES[name].body if node not in types], [])


def test_no_import_cycles():
    # The door, ihgmm, names what is above it.
    graph = {name: set(imports(running(name))) - {name} for name in NAMES - {"ihgmm"}}
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
            # Frames beside the matrix of an AnnData file are read where tables are.
            reader = "ihgmm.cli.tables.files.anndata_files"
            reads_frames = (name, module) == (reader, "h5py")
            assert reads_frames or module.split(".")[0] not in ARRAY_LIBRARIES
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func).split(".")[-1]
            assert called not in KIND_QUESTIONS
            if called == "isinstance":
                kinds = re.findall(r"\w+", ast.unparse(node.args[1]))
                assert not KIND_QUESTIONS.intersection(kinds)


OPTIONAL = (
    "typer rich jinja2 pyarrow pandas polars matplotlib faiss cvxpy dask h5py zarr "
    "anndata torch cupy array_api_strict"
)


def test_import_loads_little_and_public_names_come_when_they_are_asked_for():
    # scikit-learn itself loads pandas where it is installed.
    code = f"""
import ihgmm, sys
print("numpy" in sys.modules, *dir(ihgmm))
import sklearn.cluster
before = [name for name in {OPTIONAL.split()} if name in sys.modules]
from ihgmm import IhSC
IhSC(2).fit([[1.0, 0], [2, 0], [0, 1], [0, 3]])
print([name for name in {OPTIONAL.split()} if name in sys.modules] == before)
from ihgmm import *
print(ihgmm.statistics.__name__, IhSC.__name__, hasattr(ihgmm, "nothing"))
"""
    public, loaded, result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.splitlines()

    assert public.startswith("False ")
    assert {"IhSC", "select_n_clusters", "__version__"} <= set(public.split())
    assert loaded == "True"
    assert result == "ihgmm.statistics IhSC False"


GROUPS = [value for value in vars(policy).values() if isinstance(value, type)]
CODE = "\n".join(ast.unparse(TREES[name]) for name in NAMES - {"ihgmm.policy"})


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.__name__)
def test_a_threshold_is_in_use_and_says_what_it_decides(group):
    lines = inspect.getsource(group).splitlines()
    for name in filter(str.isupper, vars(group)):
        assert re.search(rf"\b{group.__name__}\.{name}\b", CODE), name
        (line,) = [line for line in lines if re.match(rf"    .*\b{name}\b.* = ", line)]
        assert "  # " in line, name


def test_the_commands_are_there(root):
    commands = re.findall(r"python (benchmarks/\w+\.py)", inspect.getsource(policy))

    assert len(commands) > 4

    for command in commands:
        assert (root / command).exists(), command
