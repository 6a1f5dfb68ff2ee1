"""Imports point down the layers, and nothing optional is loaded unasked."""

import ast
import subprocess
import sys

# From the bottom: a module may import from its own layer or one below.
LAYERS = [
    {
        "_chunks",
        "_stored",
        "_readers",
        "_dask",
        "_devices",
        "_arrays",
        "_threads",
        "_products",
        "_norms",
        "_tall",
        "_progress",
        "_files",
    },
    {
        "groups",
        "gram",
        "blocks",
        "krylov",
        "starts",
        "eigen",
        "flips",
        "rounding",
        "spectral",
        "spherical",
        "sdp",
        "two_component",
        "hetero",
    },
    {
        "_callbacks",
        "_checks",
        "model",
        "metrics",
        "estimation",
        "memberships",
        "refinement",
        "em",
        "selection",
        "heterogeneity",
        "diagnostics",
        "planning",
        "theory",
        "datasets",
    },
    {"_reporting", "cluster", "mixture"},
    {
        "anndata",
        "cli",
        "experiments",
        "plotting",
        "report",
        "storage",
        "__main__",
    },
]
# Estimators write reports of themselves: the one look upwards, when it is asked for.
UPWARDS = {("_reporting", "report")}
HEIGHT = {name: height for height, names in enumerate(LAYERS) for name in names}


def imported(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            parts = node.module.split(".")
            if parts[0] == "ihgmm" and len(parts) > 1:
                yield parts[1]


def test_every_module_has_a_layer_and_imports_point_down(root):
    source = root / "src" / "ihgmm"
    for path in source.rglob("*.py"):
        module = path.relative_to(source).parts[0].removesuffix(".py")
        if module == "__init__":
            continue
        for name in imported(ast.parse(path.read_text(encoding="utf-8"))):
            if (module, name) in UPWARDS:
                continue
            assert HEIGHT[name] <= HEIGHT[module], f"{path.name} imports {name}"


OPTIONAL = (
    "typer",
    "rich",
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
    "array_api_compat",
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
    assert loaded("import ihgmm") == loaded("import sklearn.cluster")


def test_checks_and_fitted_estimators_alone_use_sklearn_validation(root):
    source = root / "src" / "ihgmm"
    used = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*.py")
        if "sklearn.utils.validation" in path.read_text(encoding="utf-8")
    }
    checks = {"_checks/data.py", "_checks/rows.py"}
    assert used == checks | {"cluster/_base.py", "mixture/_fitted.py"}
