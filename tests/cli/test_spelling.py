"""What the library says is said in the spelling of the shell."""

import ast
import re

import numpy as np
import pytest
from command_line import fail, invoke
from test_layers import TREES

from ihgmm.cli.screen import FLAGS, OPTIONS, in_shell


def messages():
    """Yield the texts of warnings and errors, a number in the place of each value."""
    for name, tree in TREES.items():
        if {"cli", "plotting"} & set(name.split(".")):
            continue
        in_words = "words" in name.split(".")
        for node in ast.walk(tree):
            called = getattr(getattr(node, "func", None), "id", "")
            if called in ("warn", "ValueError") and node.args:
                yield _text(node.args[0])
            if in_words and isinstance(node, ast.Yield | ast.Return):
                yield _text(node.value)
            if in_words and isinstance(node, ast.Dict):
                yield from map(_text, node.values)


def _text(node):
    if isinstance(node, ast.JoinedStr):
        return "".join(map(_text, node.values))
    return str(node.value) if isinstance(node, ast.Constant) else "7"


def test_no_message_names_a_parameter_that_is_an_option():
    names = "|".join([*FLAGS, *OPTIONS])
    python = rf"\b({names}|gram|order|clip)=|select_n_clusters|diagnose\(|IhSC\.paper"
    told = [text for text in messages() if re.search(python, text)]
    assert len(told) > 15  # so many have something to translate
    left = [text for text in map(in_shell, told) if re.search(python, text)]
    # The command line does not set these.
    unsaid = r"(gram|order)=7 is not one of"
    assert [text for text in left if not re.search(unsaid, text)] == []


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            "n_clusters='auto' took 5, and that is doubtful. Look at "
            "select_n_clusters(X).plot(), compare fits, and give n_clusters.",
            "-k auto took 5, and that is doubtful. Look at the evidence "
            "(ihgmm choose-k), compare fits, and give -k.",
        ),
        (
            'take outliers="auto" or missing=fit.',
            "take --outliers auto or --missing fit.",
        ),
        ("3 of n_clusters=9 clusters ended", "3 of 9 clusters ended"),
        ("it lies in unwhiten=3, my_missing=2 or --method=1", None),
    ],
)
def test_spelling(said, told):
    assert in_shell(said) == (said if told is None else told)


@pytest.mark.filterwarnings("default")
def test_warnings_and_errors_of_a_fit_are_translated():
    rng = np.random.default_rng(0)
    lines = rng.choice([-1, 1], (200, 1)) * np.eye(8)[np.arange(200) % 4]
    np.save("lines.npy", lines + 0.05 * rng.normal(size=(200, 8)))
    assert "use --signed." in invoke("fit", "lines.npy", "-k", 4).stderr
    message = fail("fit", "lines.npy", "-k", 4, "--signed", "--refine")
    assert message.startswith("error: --refine expects positive scales")
