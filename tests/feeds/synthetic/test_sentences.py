"""Made-up text: the same for the same seed, in the form of each task, and not without its difficulties."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import pairwise

import pytest

from hogwild.config import TaggingConfig
from hogwild.feeds.synthetic.sentences import make_sentences, write_lines
from hogwild.feeds.tagged.read import read_tagged
from hogwild.feeds.tagged.schemes import chunks_of


def test_the_seed_makes_the_language_and_parts_are_other_sentences_of_it():
    one, again, part, other = (
        list(make_sentences(200, *where)) for where in ((1, 0), (1, 0), (1, 1), (2, 0))
    )
    assert one == again
    assert one != part
    words, parts, others = ({token.word for sentence in text for token in sentence} for text in (one, part, other))
    assert len(words & parts) > 0.5 * len(words)
    assert len(words & others) < 0.2 * len(words)


def test_a_longer_text_begins_with_the_shorter_one():
    assert list(make_sentences(30))[:10] == list(make_sentences(10))


def test_tags_keep_to_their_scheme():
    for sentence in make_sentences(100):
        tags = [token.tag for token in sentence]
        assert not tags[0].startswith("I-")
        for before, tag in pairwise(tags):
            assert not tag.startswith("I-") or before[2:] == tag[2:]
        assert {name for _, _, name in chunks_of(tags)} <= {"NP", "VP", "PP", "ADVP"}


def test_words_alone_do_not_tell_their_part_of_speech():
    """The most frequent one of each word, known from the text itself: context is needed."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for sentence in make_sentences(1000):
        for token in sentence:
            counts[token.word][token.pos] += 1
    right = sum(max(found.values()) for found in counts.values()) / sum(map(Counter.total, counts.values()))
    assert 0.7 < right < 0.95


@pytest.mark.parametrize(
    ("task", "columns", "tags"),
    [
        ("chunking", 2, {"O", *(f"{letter}-{name}" for letter in "BI" for name in ("NP", "VP", "ADVP")), "B-PP"}),
        ("pos", 1, {"DET", "PRON", "ADP", "ADV", "ADJ", "VERB", "NOUN", "PUNCT"}),
        ("segmentation", 1, {"B", "M", "E", "S"}),
    ],
)
def test_it_is_read_as_what_it_is(task, columns, tags, tmp_path):
    sentences = list(make_sentences(150))
    path = tmp_path / "text.txt"
    path.write_text(write_lines(task, sentences))
    form = "segmented" if task == "segmentation" else "conll"
    text = read_tagged(str(path), TaggingConfig(features=task, format=form))
    assert len(text) == 150
    assert len(text.columns) == columns
    assert set(text.tags.values) == tags  # 8 at the most: one vector of compiled code
    letters = sum(len(token.word) for sentence in sentences for token in sentence)
    assert text.tokens == (letters if task == "segmentation" else sum(map(len, sentences)))


def test_some_parts_of_speech_are_wrong_for_chunking():
    sentences = list(make_sentences(300))
    true = [token.pos for sentence in sentences for token in sentence]
    found = [line.split()[1] for line in write_lines("chunking", sentences).splitlines() if line]
    wrong = sum(one != other for one, other in zip(true, found, strict=True)) / len(true)
    assert 0.02 < wrong < 0.05
