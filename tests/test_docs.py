"""The pages keep their word: commands run, options exist, all public names are listed.

Python examples (``>>>``) are doctests of the pages: ``pytest README.md docs`` runs
them. Here are shell commands. All lines of a page are run in one new folder,
but for those that begin as ``NOT_RUN`` says, which ``.ci/run`` gives to a shell in a
copy of the repository; their options are checked here too. What runs a page is marked
so, and left to ``.ci/run``.
"""

import ast
import importlib
import os
import re
import shlex
import subprocess
import sys
import tomllib
import warnings
from dataclasses import is_dataclass
from pathlib import Path

import anndata
import numpy as np
import pandas as pd
import pytest
import typer
from typer.testing import CliRunner

import ihgmm
from ihgmm import make_ihgmm
from ihgmm.cli.commands import app

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/*.md"))]

NOT_RUN = {
    "pip install": "changes the environment the tests run in",
    "pytest": "these are the tests",
    "python -m venv": "part of a developer's setup",
    ". .venv": "part of a developer's setup",
    "pre-commit": "part of a developer's setup",
    "ihgmm reproduce": "takes minutes; tests of experiments run parts",
}
READERS = ("customers.csv", "new.csv")
CELLS = ("cells.h5ad", "new.h5ad")
"""Files that pages take the reader to have."""

WITHOUT_PROMPT = {
    "tutorial-single-cell.md": "needs scanpy, see below",
    "embeddings.md": "needs wordllama, see below",
    "bertopic.md": "needs BERTopic, see below",
}


def blocks(page, *languages):
    """Return the fenced blocks of a page in one of the languages."""
    fence = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    fences = fence.findall(page.read_text(encoding="utf-8"))
    return [text for language, text in fences if language in languages]


def commands(page):
    """Return the shell commands of a page, one by one, without comments."""
    for block in blocks(page, "bash"):
        for line in block.replace("\\\n", " ").splitlines():
            for part in line.removeprefix("$ ").split(" && "):
                words = shlex.split(part, comments=True)
                if words:
                    yield words


LINK = re.compile(r"\]\((?!https?:|#)([^)\s#]+)(#[^)]*)?\)")
ALL = [(page, words) for page in PAGES for words in commands(page)]
RUN = {page: [] for page in PAGES}
for page, words in ALL:
    if not " ".join(words).startswith(tuple(NOT_RUN)):
        RUN[page].append(words)


@pytest.mark.pages
@pytest.mark.parametrize(
    "page", [page for page in PAGES if RUN[page]], ids=lambda page: page.name
)
def test_commands_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, kinds = make_ihgmm(80, 12, 8, random_state=0)
    frame = pd.DataFrame(X, columns=[f"feature {j}" for j in range(12)])
    frame.insert(0, "barcode", [f"r{i}" for i in range(80)])
    frame.insert(1, "type", [f"t{kind}" for kind in kinds])
    for name in READERS:
        frame.to_csv(name, index=False)
    if any(name in CELLS for words in RUN[page] for name in words):
        rng = np.random.default_rng(0)
        counts = rng.poisson(rng.gamma(0.5, 10, (6, 60))[np.arange(240) % 6])
        for name in CELLS:
            cells = anndata.AnnData(np.log1p(counts), layers={"counts": counts})
            cells.write_h5ad(name)
    for words in RUN[page]:
        assert words[0] == "ihgmm", f"{page.name}: say in NOT_RUN why not {words}"
        result = CliRunner().invoke(app, words[1:])
        assert result.exit_code == 0, f"{page.name}: {words}\n{result.output}"
        for name in words:
            if name.endswith((".csv", ".html", ".npz")):
                assert (tmp_path / name).stat().st_size > 0


@pytest.mark.parametrize(
    "words", [w for _, w in ALL if w[0] == "ihgmm"], ids=lambda words: " ".join(words)
)
def test_options_exist(words):
    group = typer.main.get_command(app)
    with group.make_context("ihgmm", words[1:2], resilient_parsing=True) as context:
        name, command, _ = group.resolve_command(context, words[1:])
        assert command is not None, f"no command {words[1]}"
        command.make_context(name, words[2:], parent=context)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_blocks_are_found_by_what_runs_them_and_pages_are_read_on_their_own(page):
    assert not blocks(page, "console", "sh", "shell", "zsh")  # .ci/run looks for bash

    for block in blocks(page, "python", "py", "pycon"):
        assert block.startswith(">>> ") or page.name in WITHOUT_PROMPT, block

    # Roles of Sphinx and links without a text show as they are in other viewers.
    text = page.read_text(encoding="utf-8")

    assert re.findall(r"\{[a-z:]+\}`[^`]|\[\]\([^)]*\)", text) == []

    for target, _ in LINK.findall(text):
        if not target.startswith("auto_examples/"):  # made when pages are built
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def run_blocks(page, names):
    """Run the blocks of a page that have no prompt."""
    for block in blocks(ROOT / "docs" / page, "python"):
        if not block.startswith(">>> "):
            exec(block, names)


@pytest.mark.pages
def test_the_usual_way_runs(tmp_path, monkeypatch):
    # scanpy is large, so it is no part of the extra for tests.
    sc = pytest.importorskip("scanpy", reason="scanpy is not installed")
    pytest.importorskip("igraph", reason="igraph is not installed")
    adata = anndata.AnnData(np.random.default_rng(0).poisson(1.0, (120, 600)) * 1.0)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "downloaded.csv").write_text("cell,name\n" + "1,B cells\n2,T\n" * 60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # theirs
        run_blocks("tutorial-single-cell.md", {"sc": sc, "adata": adata})

    assert len(adata.obs["leiden"]) == 120
    assert adata.obs["type"].cat.categories.tolist() == ["B cells", "T"]

    adata.write_h5ad(tmp_path / "named.h5ad")


WORDS = (
    "goal match player football coach stadium league referee team season",
    "oven butter sugar recipe flour cake bread kitchen dessert baking",
    "planet orbit telescope star galaxy moon rocket comet astronomy space",
)


def test_ihsc_clusters_for_bertopic(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where a model is saved
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # theirs
        pytest.importorskip("bertopic", reason="BERTopic is not installed")
        pytest.importorskip("wordllama", reason="wordllama is not installed")
        rng = np.random.default_rng(0)
        kinds = np.arange(90) % 3
        lines = [rng.choice(WORDS[k].split(), rng.integers(4, 30)) for k in kinds]
        names = {"texts": [" ".join(line) for line in lines]}
        names["new_texts"] = names["texts"]
        run_blocks("embeddings.md", names)
        assert list(names["labels"]) == list(names["model"].labels_)
        names["known"] = np.where(np.arange(90) < 20, 2 - kinds, -1)
        run_blocks("bertopic.md", names)
        names["strict"].set_params(outliers=0.05)
        topics_with_outliers, _ = names["model"].fit_transform(
            names["texts"], names["vectors"]
        )
        guided = names["guided"]
        topics_transformed, _ = guided.transform(names["texts"], names["vectors"])
    output = capsys.readouterr().out

    assert all(word in output for word in ("goal", "oven", "planet"))
    assert -1 not in names["new_topics"]
    assert 1 <= topics_with_outliers.count(-1) <= 5

    topics = np.array(names["topics"])
    shares = names["shares"]
    for k in range(3):
        assert len(set(topics[kinds == k])) == 1

    assert set(topics) == {0, 1, 2}
    assert list(topics_transformed) == list(topics) == list(shares.argmax(axis=1))
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-6)
    assert list(guided.hdbscan_model.predict(names["vectors"])) == list(2 - kinds)


def test_skipped_commands_are_still_there():
    lines = [" ".join(words) for _, words in ALL]
    for key in NOT_RUN:
        assert any(line.startswith(key) for line in lines), f"{key} is in no page"


REFERENCE = "".join(
    (ROOT / "docs" / name).read_text(encoding="utf-8")
    for name in ("api.rst", "api-inside.rst")
)


def listed(*, documented):
    """Return the public names that the reference lists, by module.

    Of those, ``documented`` are the ones whose docstrings it shows.
    """
    names = {}
    module = None
    for line in REFERENCE.splitlines():
        if match := re.match(r"\.\. (?:currentmodule|automodule):: (\S+)", line):
            module = match[1]
            names.setdefault(module, set())
        elif match := re.match(r"   (\w+)$", line):
            names[module].add(match[1])
        elif module and not documented:
            for pair in re.findall(r"``(\w+)``|py:data:: (\w+)", line):
                names[module].update(filter(None, pair))
    return names


def test_reference_lists_every_public_name():
    names = listed(documented=False)
    top = names["ihgmm"]

    assert len(names) > 20

    for module, public_here in names.items():
        home = importlib.import_module(module)
        methods = {"fit", "predict", "transform", "score", "Matrix"}
        missing = [name for name in public_here - methods if not hasattr(home, name)]
        assert not missing, f"{module} has no {missing}"
        # Modules of the inside name no public names of their own.
        public = {name for name in getattr(home, "__all__", ()) if name[0] != "_"}
        assert public <= public_here | top, f"{module}: {public - public_here - top}"


def test_every_name_of_the_reference_has_an_example():
    lacking = []
    for module, names in listed(documented=True).items():
        for name in names:
            thing = getattr(importlib.import_module(module), name)
            # What makes a result shows it, and one warning is filtered as another.
            is_error = isinstance(thing, type) and issubclass(thing, Exception)
            if is_dataclass(thing) or is_error:
                continue
            # Doctest finds those that are there, so that they run too.
            if not re.search(r"^ *Examples\n *-+\n[^>]*>>> ", thing.__doc__, re.M):
                lacking.append(f"{module}.{name}")

    assert not lacking, f"{len(lacking)} names have no example: {lacking}"


def test_reference_lists_every_public_package():
    source = Path(ihgmm.__file__).parent
    packages = {path.parent.name for path in source.glob("[!_]*/__init__.py")}
    named = {
        module.split(".")[1] for module in listed(documented=True) if "." in module
    }

    # Pages and estimators tell of these.
    assert packages - named <= {"cli", "estimators", "words"}


@pytest.mark.parametrize("folder", ["benchmarks", "examples"])
def test_scripts_import_what_there_is(folder):
    # Benchmarks take hours and are run by hand: names that have changed show here.
    for script in (ROOT / folder).glob("*.py"):
        for node in ast.walk(ast.parse(script.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and "ihgmm" in (node.module or ""):
                exec(ast.unparse(node), {})


@pytest.mark.pages
def test_pictures_of_how_it_works_are_those_that_are_drawn(tmp_path):
    names = ("how-it-works.md", "default.md")
    text = "".join((ROOT / "docs" / name).read_text("utf-8") for name in names)
    script = ROOT / "docs" / "how_pictures.py"
    process = subprocess.run(
        [sys.executable, "-W", "error", str(script), str(tmp_path)],
        env={**os.environ, "MPLBACKEND": "agg", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )

    assert process.returncode == 0, process.stderr

    drawn = sorted(path.name for path in tmp_path.iterdir())

    assert sorted(re.findall(r"images/((?:how|default)-\S+?\.png)", text)) == drawn


def test_pages_agree_on_the_installation():
    for page in ("README.md", "docs/index.md", "docs/start.md"):
        text = (ROOT / page).read_text(encoding="utf-8")
        assert 'pip install ".[cli,plot]"' in text


RESULTS = ROOT / "benchmarks" / "results"
NUMBER = re.compile(r"(?<![\w.,])(\d[\d,]*)?(\.\d+)?(%?)(?![\w,]*\w)")


def figures(text):
    """Return figures as they are written, with their values and decimals."""
    for integer, decimals, percent in NUMBER.findall(text):
        if integer or decimals:
            value = float((integer or "0").replace(",", "") + (decimals or ""))
            yield f"{integer}{decimals}{percent}", value, max(len(decimals) - 1, 0)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_figures_are_those_of_the_benchmarks(page):
    """Every decimal or percentage in a quotation is in the results it names.

    A comment stands before each: ``<!-- figures of real.md, cpu.md -->``.
    """
    quotation = re.compile(r"<!-- figures of (.+?) -->\n(.+?)(?:\n\n|\Z)", re.DOTALL)
    for files, block in quotation.findall(page.read_text(encoding="utf-8")):
        texts = [(RESULTS / f).read_text(encoding="utf-8") for f in files.split(", ")]
        values = {value for text in texts for _, value, _ in figures(text)}
        results = values | {100 * value for value in values}
        for figure, value, decimals in figures(block):
            if decimals or figure.endswith("%"):
                rounded = {round(number, decimals) for number in results}
                assert value in rounded, f"{page.name}: {figure} is not in {files}"


@pytest.mark.parametrize("results", RESULTS.glob("*.md"), ids=lambda path: path.name)
def test_results_are_of_this_version(results):
    made_by = set(re.findall(r"ihgmm (\d+\.\d+)", results.read_text(encoding="utf-8")))
    assert made_by == {".".join(ihgmm.__version__.split(".")[:2])}


def test_the_oldest_versions_are_tried_that_we_say_we_support():
    run = ROOT / ".ci" / "run"
    if not run.exists():
        pytest.skip("not in a clone")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    expected = project["dependencies"] + [
        name for extra in ("cli", "plot", "sdp", "large", "anndata", "test")
        for name in extras[extra] if not re.match("ihgmm|.*playwright", name)
    ]  # fmt: skip
    floors = dict(re.match(r"([\w-]+)[^>]*>=(.*)", name).groups() for name in expected)
    oldest = run.read_text().partition("oldest() {")[2].partition("\n}")[0]
    tried = dict(re.findall(r"([\w-]+)==(\S+)", oldest))
    for name, floor in floors.items():
        assert f"{tried[name]}.".startswith(f"{floor}."), name
    recipe = (ROOT / "conda" / "recipe.yaml").read_text()
    for name, floor in re.findall(r"- ([\w-]+) >=([\d.]+)", recipe):
        if not name.startswith("hatch"):
            assert floor == floors[name.replace("matplotlib-base", "matplotlib")], name

    assert f'python_min: "{project["requires-python"].strip(">=")}"' in recipe


def defined_names(source):
    """Return all names that a source defines, imports or takes as an argument."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.alias):
            names.add((node.asname or node.name).split(".")[-1])
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            names.add(node.attr)
    return names


def test_what_the_page_on_extending_names_is_there():
    text = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    code = "\n".join(re.findall(r"^(?:>>>|\.\.\.) (.*)$", text, flags=re.MULTILINE))
    sources = [*(ROOT / "src").rglob("*.py"), *(ROOT / "tests").rglob("*.py")]
    names = set().union(*(defined_names(path.read_text("utf-8")) for path in sources))
    names |= set(re.findall(r"\w+", code))

    for token in re.findall(r"`([^`\n]+)`", prose):
        if re.fullmatch(r"[\w/.]+(\.py|/)", token):
            homes = [ROOT, ROOT / "src" / "ihgmm", ROOT / "src" / "ihgmm" / "matrix"]
            assert any((home / token).exists() for home in homes), token
        elif match := re.match(r"(?:\w+\.)*(\w+)", token):
            name = match[1]
            modules = {path.stem for path in sources}
            assert name in names | modules or " " in token, token
