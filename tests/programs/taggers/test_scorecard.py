"""How scores of taggers are shown."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from rich.cells import cell_len

import hogwild
from hogwild.programs.taggers.scores import Lexicon, Score, score_tags
from problems.tagged import CHUNKS, flat, random_pair


def test_text_for_the_terminal():
    scores = score_tags([["B-NP", "I-NP", "O", "B-VP"]], [["B-NP", "I-NP", "B-PP", "O"]])
    assert scores.text().splitlines() == [
        "4 tokens, 50.00 % with the right tag",
        "1 sentence, 0.00 % all right",
        "",
        "type  precision  recall      f1  support  found",
        "NP       100.00  100.00  100.00        1      1",
        "VP         0.00    0.00    0.00        1      0",
        "PP         0.00    0.00    0.00        0      1",
        "all       50.00   50.00   50.00        2      2",
    ]
    words = score_tags([["B", "E", "S"]], [["B", "E", "S"]]).text().splitlines()
    assert words[-2:] == [
        "word       precision  recall      f1  support  found",
        "all words     100.00  100.00  100.00        2      2",
    ]


def test_text_has_eighty_columns_and_not_too_many_rows():
    tags = ["B-" + "名" * 60, "B-" + "x" * 90, "B-\x1b[31mred", *(f"B-{k}" for k in range(100))]
    scores = score_tags([tags], [tags])
    lines = scores.text().splitlines()
    assert len(lines) == 2 + 1 + 1 + 60 + 1 + 2
    assert lines[-1] == "43 types more, with less support, are not shown."
    lines = scores.text(rows=200).splitlines()
    assert len(lines) == 2 + 1 + 1 + 103 + 1
    assert "\x1b" not in "".join(lines)
    assert {cell_len(line) for line in lines[3:]} == {cell_len(lines[-1])}
    millions = replace(scores, total=Score("all", 2_345_678, 1_234_567, 1_000_000))
    assert max(cell_len(line) for line in millions.text(rows=200).splitlines()) == 79


def test_json_is_json():
    gold, guess = random_pair(CHUNKS, 20)
    scores = score_tags(gold, guess, lexicon=Lexicon(flat(gold), {"O"}))
    shown = json.loads(json.dumps(scores.to_json(), allow_nan=False))
    assert shown["metrics"] == scores.metrics()
    assert shown["types"] == scores.table()
    assert shown["counts"]["right_tokens"] == scores.right
    assert shown["counts"]["oov_support"] == len(flat(gold)) - flat(gold).count("O")
    assert shown["kind"] == "chunks"
    assert shown["metrics"]["oov_share"] == pytest.approx(1 - flat(gold).count("O") / len(flat(gold)))


def test_names_of_the_package():
    assert hogwild.score_tags is score_tags
    assert hogwild.chunks_of(["I-X"]) == [(0, 1, "X")]
    assert hogwild.TagScores is type(score_tags([], []))
