"""A model of a few words in which some analogies hold, and tests for it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from problems.word_models import save_words

WORDS = ["king", "man", "woman", "queen", "apple", "pear", "[bold]plum[/]", "new york"]
MATRIX = np.array(
    [[1, 1, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [1, 0, 1, 0], [0, 0, 0, 1], [0.1, 0, 0, 1], [0, 0.3, 0, 1],
     [0, 0, -1, 0]], np.float32,
)  # fmt: skip
QUESTIONS = ": family\nman king woman queen\nman king woman dragon\n: fruit\napple pear king man\n"


def make_words(place: Path) -> Path:
    """The model, with files of tests beside it."""
    (place / "pairs.tsv").write_text("king\tqueen\t8\nman\tapple\t1\nwoman\tqueen\t7\nking\tunicorn\t2\n")
    (place / "more.csv").write_text("word,other,score\napple,pear,9\nking,pear,1\nman,king,6\n")
    (place / "questions.txt").write_text(QUESTIONS)
    return save_words(place / "model", WORDS, MATRIX)
