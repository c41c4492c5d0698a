"""Chunks against hand cases, against every way to place them, against the rules of the script, and seqeval."""

from __future__ import annotations

import time
import warnings
from itertools import product

import numpy as np
import pytest
from seqeval.metrics.sequence_labeling import get_entities

from hogwild.errors import InputError
from hogwild.feeds.tagged.schemes import chunks_of, coded, parts_of, spans_of
from reference.tagging import LETTERS, all_chunkings, encode, script_chunks

ENCODED = [*LETTERS, "iob1", "ioe1"]


def theirs(tags):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [(start, end + 1, kind) for kind, start, end in get_entities(list(tags))]


def random_sentences(tags, count, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.choice(tags, rng.integers(0, 12)).tolist() for _ in range(count)]


@pytest.mark.parametrize(
    ("tags", "chunks"),
    [
        ("", []),
        ("O O", []),
        ("B-X I-X O B-X", [(0, 2, "X"), (3, 4, "X")]),
        ("B-X B-X", [(0, 1, "X"), (1, 2, "X")]),
        ("O I-X I-X", [(1, 3, "X")]),                               # I after O begins a chunk
        ("I-X", [(0, 1, "X")]),
        ("B-X I-Y I-Y", [(0, 1, "X"), (1, 3, "Y")]),                # so does another type
        ("I-X I-Y", [(0, 1, "X"), (1, 2, "Y")]),
        ("I-X B-X I-X", [(0, 1, "X"), (1, 3, "X")]),                # IOB1
        ("I-X E-X I-X O", [(0, 2, "X"), (2, 3, "X")]),              # IOE1
        ("O E-X O", [(1, 2, "X")]),                                 # E after O is a chunk
        ("E-X E-X", [(0, 1, "X"), (1, 2, "X")]),
        ("B-X E-X B-X E-X", [(0, 2, "X"), (2, 4, "X")]),
        ("B-X S-X I-X", [(0, 1, "X"), (1, 2, "X"), (2, 3, "X")]),   # S inside a chunk ends it
        ("S-X S-X E-X", [(0, 1, "X"), (1, 2, "X"), (2, 3, "X")]),
        ("U-X B-X L-X O", [(0, 1, "X"), (1, 3, "X")]),
        ("W-X B-X M-X E-X", [(0, 1, "X"), (1, 4, "X")]),
        ("[-X ]-X I-X", [(0, 1, "X"), (1, 2, "X"), (2, 3, "X")]),
        ("B I I O B", [(0, 3, ""), (4, 5, "")]),                    # no dash, no type
        ("B- I-", [(0, 2, "")]),
        ("B I-X", [(0, 1, ""), (1, 2, "X")]),
        (".-X B-X", [(1, 2, "X")]),
        ("B-X . I-X", [(0, 1, "X"), (2, 3, "X")]),
        ("B-NP-TMP I-NP-TMP I-NP", [(0, 2, "NP-TMP"), (2, 3, "NP")]),
        ("B-X O-X I-X", [(0, 1, "X"), (2, 3, "X")]),
        ("B-X Q-X Q-Y NN B-X", [(0, 2, "X"), (2, 3, "Y"), (4, 5, "X")]),
        ("b-X", [(0, 1, "X")]),
        ("NN VB", []),
    ],
)
def test_hand_cases(tags, chunks):
    assert chunks_of(tags.split()) == chunks


@pytest.mark.parametrize("scheme", ENCODED)
@pytest.mark.parametrize("length", [1, 2, 5])
def test_every_placing_of_chunks_comes_back(scheme, length):
    placings = list(all_chunkings(length, "XY"))
    assert len(placings) == {1: 3, 2: 11, 5: 571}[length]
    for chunks in placings:
        assert chunks_of(encode(chunks, length, scheme)) == chunks


@pytest.mark.parametrize("letters", ["BI", "IE"])
def test_every_sequence_as_the_script_has_it(letters):
    tags = ["O", *(f"{letter}-{kind}" for letter in letters for kind in "XY")]
    for length in range(6):
        for sentence in product(tags, repeat=length):
            assert chunks_of(sentence) == script_chunks(list(sentence))


def test_the_script_joins_neighbours_in_iobes():
    """The documented difference; were it gone, the module should say so no longer."""
    sentence = ["B-X", "E-X", "B-X", "E-X"]
    assert script_chunks(sentence) == [(0, 4, "X")]
    assert chunks_of(sentence) == theirs(sentence) == [(0, 2, "X"), (2, 4, "X")]


def test_random_sequences_as_seqeval_has_them():
    tags = ["O", "O", *(f"{letter}-{kind}" for letter in "BIES" for kind in ("X", "Y", "Y-Z"))]
    sentences = random_sentences(tags, 5000)
    found = [chunks_of(sentence) for sentence in sentences]
    assert found == [theirs(sentence) for sentence in sentences]
    assert sum(map(len, found)) > 10_000


def test_letters_of_other_schemes_do_what_those_of_seqeval_do():
    twins = {"M": "I", "L": "E", "U": "S", "W": "S"}
    tags = ["O", *(f"{letter}-{kind}" for letter in "BIESMLUW" for kind in "XY")]
    for sentence in random_sentences(tags, 3000, seed=1):
        assert chunks_of(sentence) == theirs([twins.get(tag[0], tag[0]) + tag[1:] for tag in sentence])


def test_letters_alone_as_seqeval_has_them_but_for_the_name_of_no_type():
    for sentence in random_sentences(list("OBIES"), 3000, seed=2):
        assert chunks_of(sentence) == [(start, end, "") for start, end, _ in theirs(sentence)]


def test_differences_from_seqeval():
    """seqeval looks at the first character only, and never ends a chunk of an unknown letter before B."""
    assert theirs(["Bank"]) == [(0, 1, "ank")]
    assert chunks_of(["Bank"]) == []
    assert theirs(["Q-X", "B-X"]) == [(1, 2, "X")]
    assert chunks_of(["Q-X", "B-X"]) == [(0, 1, "X"), (1, 2, "X")]


def test_no_chunk_goes_past_a_sentence():
    sentences = [[], *random_sentences(["O", "B-X", "I-X", "E-X", "S-Y"], 300, seed=3), [], ["I-X"], ["I-X"], []]
    index: dict[str, int] = {}
    offsets, codes = coded(sentences, index)
    parts = parts_of(tuple(index))
    spans = spans_of(offsets, codes, parts)
    expected = [
        (start + first, end + first, kind)
        for first, sentence in zip(offsets.tolist(), sentences, strict=False)
        for start, end, kind in chunks_of(sentence)
    ]
    assert [(s, e, parts.names[t]) for s, e, t in zip(*(array.tolist() for array in spans), strict=True)] == expected


def test_no_sentence_at_all():
    offsets, codes = coded([], {})
    assert offsets.tolist() == [0]
    assert [len(array) for array in spans_of(offsets, codes, parts_of(()))] == [0, 0, 0]


def test_codes_go_on_where_the_index_ends():
    index = {"O": 0}
    offsets, codes = coded([["B", "O"], [], ["I", "B"]], index)
    assert (offsets.tolist(), codes.tolist(), index) == ([0, 2, 2, 4], [1, 0, 2, 1], {"O": 0, "B": 1, "I": 2})


@pytest.mark.parametrize(
    ("sentences", "message"),
    [(["O", "B-X"], "sentence 1 is the string `O`"), ([["O"], [3]], "sentence 2 has the tag 3")],
)
def test_what_is_no_sentence_of_tags_is_told(sentences, message):
    with pytest.raises(InputError, match=message):
        coded(sentences, {})


def test_a_million_tokens_take_no_loop():
    rng = np.random.default_rng(4)
    tags = ("O", "B-X", "I-X", "B-Y", "I-Y")
    offsets, codes = np.arange(0, 1_000_001, 20), rng.integers(0, 5, 1_000_000).astype(np.int32)
    began = time.process_time()
    spans = spans_of(offsets, codes, parts_of(tags))
    assert time.process_time() - began < 1  # 0.03 s on an idle machine; a loop of Python takes 1.5 s
    assert len(spans.starts) == len(spans.ends) > 500_000
