"""Check the English of pages, docstrings and messages: ``python docs/check_prose.py``.

The rules are in ``docs/prose.toml``: some checks of proselint, a list of our own, and
the length of the longest sentence. Code, names of the package and targets of links are
left out. Each fault is reported with its file, its line and what to write instead.
"""

import ast
import re
import sys
import tomllib
from pathlib import Path

from proselint.checks import __register__
from proselint.registry import CheckRegistry
from proselint.tools import LintFile

ROOT = Path(__file__).parent.parent
PAGES = ("README.md", "CONTRIBUTING.md", "docs/*.md", "docs/api*.rst")
CODE = ("src/ihgmm/**/*.py", "examples/*.py")

BLOCK = re.compile(r"^```.*?^```$|^> .*?$|^    \S.*?$", re.MULTILINE | re.DOTALL)
MARKUP = re.compile(
    r"\]\([^)]*\)"  # targets of links
    r"|`+[^`]*`+"  # names and code
    r"|\$[^$]*\$"  # formulas
    r"|<[^>]*>|https?://\S+"
)
DIRECTIVE = re.compile(r"^\{\w+\}.*$|^\.\. .*$|^ *:\w[\w ]*:.*$|^   \w+$", re.MULTILINE)
# Lines of docstrings: an example, or the name and the type of a parameter.
NOT_PROSE = re.compile(r"\s*(>>>|\.\.\.) |\s*\*{,2}\w[\w, *]* : |\s*-+$")


def blank(match):
    """Return a name in place of code, on as many lines."""
    lines = match[0].count("\n")
    return "\n" * lines if lines else "X"


def prose_of_page(text):
    """Return a page without its code, on the same lines."""
    return MARKUP.sub(blank, DIRECTIVE.sub("", BLOCK.sub(blank, text)))


def prose_of_module(text):
    """Return the docstrings of a module, on the same lines, without examples."""
    lines = [""] * text.count("\n")
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            continue
        if " " not in node.value:  # a key or an option
            continue
        at = node.lineno - 1
        for k, line in enumerate(node.value.splitlines()):
            if not NOT_PROSE.match(line) and at + k < len(lines):
                lines[at + k] += " " + line.strip()
    return MARKUP.sub(blank, "\n".join(lines))


def long_sentences(text, most):
    """Yield the line and the number of words of sentences that are too long."""
    for part in re.finditer(r"(?:(?!\n\s*(?:\n|[-|#*]|\d\.)|\|).)+", text, re.DOTALL):
        start = part.start()
        for sentence in re.split(r"(?<=[.:;?!])[*)\"]*\s+", part[0]):
            words = len(sentence.split())
            if words > most:
                yield text.count("\n", 0, start) + 1, words
            start += len(sentence) + 1


def faults(name, text, rules):
    """Yield a line for each fault of a text."""
    for line, words in long_sentences(text, rules["longest_sentence"]):
        yield f"{name}:{line}: a sentence of {words} words; make it two"
    for phrase, instead in rules["avoid"].items():
        for match in re.finditer(rf"\b(?:{phrase})", text, re.IGNORECASE):
            line = text.count("\n", 0, match.start()) + 1
            yield f"{name}:{line}: not {match[0]!r}: {instead}"
    checks = {"max_errors": 1000, "checks": rules["proselint"]}
    for result in LintFile(name, text).lint(checks):
        yield f"{name}:{result.pos[0]}: {result.check_result.message}"


def main():
    """Report all faults, and fail if there is one."""
    CheckRegistry().register_many(__register__)
    rules = tomllib.loads((ROOT / "docs" / "prose.toml").read_text(encoding="utf-8"))
    found, files = [], 0
    for patterns, prose in ((PAGES, prose_of_page), (CODE, prose_of_module)):
        for path in sorted(p for each in patterns for p in ROOT.glob(each)):
            name = path.relative_to(ROOT).as_posix()
            if name not in rules["skip"]:
                files += 1
                text = prose(path.read_text(encoding="utf-8"))
                found += faults(name, text, rules)
    print(*found, f"{files} files, {len(found)} faults", sep="\n")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
