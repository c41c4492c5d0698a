"""docs/format.md tells the truth: its reader, which knows nothing of this package, gives the scores that we do."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hogwild
from hogwild.config import FeedConfig

PAGE = (Path(__file__).parents[3] / "docs" / "format.md").read_text(encoding="utf-8")
SMALL_READER = re.search(r"```python\n(def load_small.*?)```", PAGE, re.DOTALL)[1]  # type: ignore[index]
READER = re.search(r"```python\n(import collections.*?)```", PAGE, re.DOTALL)[1]  # type: ignore[index]

TEXTS = ["Don't stop – it’s fine", "naïve Ünïcode «text» 12 times times", "a", "", "eight byte characters eightbyt"]
NUMBERS = ["1.5", "-3", "NA", "0", "1e3", " 7 "]
WORDS = ["red", "green", "", "blue  ", "?", "a word of more than sixteen bytes"]


def _rows() -> list[dict[str, str]]:
    draw = np.random.default_rng(4)
    rows = [
        {"n": draw.choice(NUMBERS), "color": draw.choice(WORDS), "m": f"{draw.normal():.4f}",
         "kind": draw.choice(WORDS), "text": draw.choice(TEXTS)}
        for _ in range(120)
    ]  # fmt: skip
    for row in rows:
        row["label"] = ("one", "two", "three")[int(draw.integers(3))]
    return rows


def _write(path: Path, rows: list[dict[str, str]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, list(rows[0]))
        table.writeheader()
        table.writerows(rows)


def _keep(rows: list[dict[str, str]], *names: str) -> list[dict[str, str]]:
    return [{name: row[name] for name in names} for row in rows]


def _text_of_means() -> hogwild.TextClassifier:
    return hogwild.TextClassifier(pooling="mean")


TABLE = ("n", "color", "m", "kind", "label")
MIXED = FeedConfig(text="text", numeric=("n", "m"), categorical=("color", "kind"), ngrams=3, hash_bits=12)
CASES = [
    pytest.param(hogwild.Linear, TABLE, FeedConfig(), id="linear"),
    pytest.param(hogwild.Linear, (*TABLE, "text"), MIXED, id="linear-text"),
    pytest.param(hogwild.Linear, TABLE, FeedConfig(categories="hash", hash_bits=10), id="linear-hash"),
    pytest.param(hogwild.FactorizationMachine, TABLE, FeedConfig(), id="fm"),
    pytest.param(hogwild.TextClassifier, ("text", "label"), FeedConfig(text="text", lowercase=False), id="text"),
    pytest.param(_text_of_means, ("text", "label"), FeedConfig(text="text", lowercase=False), id="text-mean"),
]


def test_the_reader_is_as_short_as_it_says() -> None:
    lines = [line for line in READER.splitlines() if line.strip() and not line.startswith("import ")]
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 120


@pytest.mark.parametrize(("kind", "columns", "config"), CASES)
def test_the_reader_scores_as_we_do(kind: Any, columns: tuple[str, ...], config: FeedConfig, tmp_path: Path) -> None:
    rows = _keep(_rows(), *columns)
    if kind is hogwild.FactorizationMachine:
        rows = [row for row in rows if row["label"] != "three"]
    _write(tmp_path / "rows.csv", rows)
    feed = hogwild.open_feed(tmp_path / "rows.csv", config)
    program = hogwild.train(kind(), feed, epochs=3, lr=0.2, mode="serial", quiet=True)
    hogwild.save_model(tmp_path / "model", program, feed_schema=feed.schema, feed_config=config)
    names: dict[str, Any] = {}
    exec(compile(READER, "format.md", "exec"), names)
    saved, arrays = names["load"](tmp_path / "model")
    bare = _keep(rows, *(name for name in columns if name != "label"))
    expected = program.scores(bare)
    found = [names["score"](saved, arrays, row) for row in rows]
    np.testing.assert_allclose(np.array(found).reshape(expected.shape), expected, rtol=2e-4, atol=2e-5)
    assert float(np.ptp(expected)) > 0.01
    new = {**rows[0], **dict.fromkeys(("color", "kind"), "never seen")}
    ours = program.scores([{name: new[name] for name in columns if name != "label"}])
    np.testing.assert_allclose(names["score"](saved, arrays, new).reshape(ours.shape), ours, rtol=2e-4, atol=2e-5)
    exec(compile(SMALL_READER, "format.md", "exec"), names)
    for how in ({"half": True}, {"int8": True, "pruned": 0.3}):
        small = hogwild.SmallConfig(**how)
        hogwild.save_model(tmp_path / "small", program, feed_schema=feed.schema, feed_config=config, small=small)
        expected = hogwild.load_model(tmp_path / "small").program.scores(bare)
        found = [names["score"](*names["load_small"](tmp_path / "small"), row) for row in rows]
        np.testing.assert_allclose(np.array(found).reshape(expected.shape), expected, rtol=2e-4, atol=2e-5)
