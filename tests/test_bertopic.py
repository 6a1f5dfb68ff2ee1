"""The pages on embeddings and on BERTopic run, where these packages are installed."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest

DOCS = Path(__file__).parent.parent / "docs"
WORDS = (
    "goal match player football coach stadium league referee team season",
    "oven butter sugar recipe flour cake bread kitchen dessert baking",
    "planet orbit telescope star galaxy moon rocket comet astronomy space",
)


def run(page, names):
    """Run the blocks of a page that have no prompt."""
    text = (DOCS / page).read_text(encoding="utf-8")
    for block in re.findall(r"^```python\n((?!>>> ).*?)^```$", text, re.M | re.S):
        exec(block, names)


def test_ihsc_clusters_for_bertopic(capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # theirs
        pytest.importorskip("bertopic", reason="BERTopic is not installed")
        pytest.importorskip("wordllama", reason="wordllama is not installed")
        rng, kinds = np.random.default_rng(0), np.arange(90) % 3
        lines = [rng.choice(WORDS[k].split(), rng.integers(4, 30)) for k in kinds]
        names = {"texts": [" ".join(line) for line in lines]}
        run("embeddings.md", names)
        names["known"] = np.where(np.arange(90) < 20, 2 - kinds, -1)
        run("bertopic.md", names)
        names["strict"].set_params(outliers=0.05)
        with_outliers, _ = names["model"].fit_transform(
            names["texts"], names["vectors"]
        )
        guided = names["guided"]
        again, _ = guided.transform(names["texts"], names["vectors"])
    said = capsys.readouterr().out
    assert all(word in said for word in ("goal", "oven", "planet"))
    assert -1 not in names["new_topics"]
    assert 1 <= with_outliers.count(-1) <= 5
    topics, shares = np.array(names["topics"]), names["shares"]
    for k in range(3):
        assert len(set(topics[kinds == k])) == 1
    assert set(topics) == {0, 1, 2}
    assert list(again) == list(topics) == list(shares.argmax(axis=1))
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-6)
    assert list(guided.hdbscan_model.predict(names["vectors"])) == list(2 - kinds)
