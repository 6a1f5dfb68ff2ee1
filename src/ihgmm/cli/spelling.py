"""What the library says of its parameters, in the spelling of the shell."""

from __future__ import annotations

import re
from typing import Any

# Parameters that commands have as options: flags are given or not.
FLAGS = ("refine", "signed", "paper")
OPTIONS = {
    "n_clusters": "-k",
    "random_state": "--seed",
    **{
        name: f"--{name.replace('_', '-')}"
        for name in ("whiten", "outliers", "missing", "method")
    },
    "max_clusters": "--max-clusters",
}
_VALUE = r"""=(?:"([^"\s]*)"|'([^'\s]*)'|([\w.+-]*[\w+]))"""
# Calls and names that have a command in their place; the first that fits is taken.
_PHRASES: list[tuple[str, Any]] = [
    (r"select_n_clusters\(X, max_clusters=(\d+)\)", r"choose-k --max-clusters \1"),
    (r"select_n_clusters\(X\)\.plot\(\)", "the evidence (choose-k)"),
    (r"select_n_clusters(\(X\))?", "choose-k"),
    (r"(?<!ihgmm )\bchoose-k\b", "ihgmm choose-k"),
    (r"diagnose\(X, labels\)", "ihgmm report"),
    (r"IhSC\.paper", "IhSC --paper"),
    # What only --paper asks for, or no option does.
    (r"\bgram=\S+ shows fewer", "the fit shows fewer"),
    (r"\bgram='cosine' or refine=True", "refine=True"),
    (r'; otherwise raise tol or take gram="hollow"', ""),
    (
        r"Use clip=1\.5, which shortens long rows, or",
        "Leave out --paper, so that long rows are shortened, or use",
    ),
    (r" \(clip=1\.5\)", ""),
    (r'\buse space="auto"', "leave out --paper"),
    (r'; otherwise raise tol or take eigen_solver="lanczos"', ""),
    (r"\bRaise max_iter or tol, or ask\b", "Ask"),
    (r" Raise max_iter or tol=\S+\.", ""),
    (r"\bn_samples=(\d+)", r"the \1 rows"),
    (r"\bn_clusters=(\d+) clusters", r"\1 clusters"),
    (r"\bgive n_clusters\b", "give -k"),
    (r"\bby predict\b", "by ihgmm predict"),
    (r"\bDivide the columns by their deviation", r"\g<0> (--prepare scale)"),
    (r"\bSubtract its mean\b", r"\g<0> (--prepare standardize)"),
    # A column that is to be left out has been named before.
    (
        r"""([Cc]olumn ('[^']*'|"[^"]*") .*\bleave it out)\b""",
        r"\1 (--drop-columns \2, or --id-column \2 if it names the rows)",
    ),
    # People count from 1, and rows of arrays have no other name.
    (r"\bat row (\d+), column ", lambda found: f"in row {int(found[1]) + 1}, column "),
]


def in_shell(text: str) -> str:
    """Return a message of the library as users of the command line would give it.

    Examples
    --------
    >>> in_shell("Fit with whiten='counts' or refine=True; n_clusters=9 is too many.")
    'Fit with --whiten counts or --refine; -k 9 is too many.'
    >>> in_shell("Count them with select_n_clusters(X, max_clusters=500).")
    'Count them with ihgmm choose-k --max-clusters 500.'
    """
    for pattern, phrase in _PHRASES:
        text = re.sub(pattern, phrase, text)
    for name in FLAGS:
        text = re.sub(rf"\b{name}=True\b", f"--{name}", text)
    for name, option in OPTIONS.items():
        text = re.sub(rf"(?<![\w-]){name}{_VALUE}", rf"{option} \1\2\3", text)
    return text
