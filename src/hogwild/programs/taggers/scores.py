"""Compare the tags of a text with predicted ones: sentences of strings, numbers of tags, or a feed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from hogwild.arrays import Offsets
from hogwild.errors import ConfigError, InputError
from hogwild.feeds.tagged.feed import TaggingFeed
from hogwild.feeds.tagged.schemes import (
    SINGLE,
    Codes,
    Flags,
    Kind,
    Spans,
    TagParts,
    coded,
    kind_of,
    parts_of,
    spans_of,
)
from hogwild.messages import counted, shown
from hogwild.programs.program import Metrics

# -- The scores of a tagger: counts, shares, and how they are shown ---------------------------------------------------
# Precision is the share of what was found that is right, recall the share of what was to be found that was, f1 their
# harmonic mean. All are shares of 1, and 0 where there is nothing to divide by.


_ROWS = 60   # of a table in the terminal
_WIDTH = 30  # of a name in a table: with counts of millions a line has 79 columns
_HEADS = {"chunks": "type", "words": "word", "tags": "tag"}


class Score(NamedTuple):
    """Counts of one type: how many were to be found (support), were found, and of those were right."""

    name: str
    support: int
    found: int
    right: int

    @property
    def precision(self) -> float:
        """Right among the found."""
        return _share(self.right, self.found)

    @property
    def recall(self) -> float:
        """Right among those to be found."""
        return _share(self.right, self.support)

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        return _share(2 * self.right, self.support + self.found)

    def row(self) -> dict[str, Any]:
        """As a row of a table."""
        shares = {"precision": self.precision, "recall": self.recall, "f1": self.f1}
        return {"name": self.name, **shares, "support": self.support, "found": self.found, "right": self.right}


class New(NamedTuple):
    """Words that the vocabulary has not: how many there are, and how many are right (found, or rightly tagged)."""

    support: int
    right: int


@dataclass(frozen=True)
class TagScores:
    """What predicted tags are worth.

    kind: what is looked for: `chunks`, `words` (of segmented text), or `tags`, where each token is one to be found.
    total: all of them together. types: each type of chunk, or each tag, the most frequent first.
    sentences, whole: sentences that are not empty, and those of them with every tag right.
    unseen: tags of the text that the tagger cannot give, with the number of their tokens, all of them wrong.
    new: words outside the vocabulary (for chunks and tags: tokens); None without a vocabulary.

    Examples
    --------
    >>> import hogwild
    >>> scores = hogwild.score_tags([["B-NP", "I-NP", "O"]], [["B-NP", "I-NP", "B-VP"]])
    >>> scores.metrics()["precision"], scores.types[0].name
    (0.5, 'NP')
    """

    kind: Kind
    tokens: int
    right: int
    sentences: int
    whole: int
    total: Score
    types: tuple[Score, ...]
    unseen: dict[str, int] = field(default_factory=dict)
    new: New | None = None

    @property
    def accuracy(self) -> float:
        """Share of tokens with the right tag."""
        return _share(self.right, self.tokens)

    @property
    def precision(self) -> float:
        """Of all chunks, words or tags together."""
        return self.total.precision

    @property
    def recall(self) -> float:
        """Of all chunks, words or tags together."""
        return self.total.recall

    @property
    def f1(self) -> float:
        """Of all chunks, words or tags together."""
        return self.total.f1

    @property
    def macro_f1(self) -> float:
        """Mean of the f1 of all types."""
        return _share(sum(score.f1 for score in self.types), len(self.types))

    @property
    def sentence_accuracy(self) -> float:
        """Share of sentences with every tag right."""
        return _share(self.whole, self.sentences)

    @property
    def new_share(self) -> float:
        """Share of words, or tokens, that are outside the vocabulary; 0 without one."""
        return _share(self.new.support, self._words) if self.new else 0.0

    @property
    def _words(self) -> int:
        return self.total.support if self.kind == "words" else self.tokens

    def metrics(self) -> Metrics:
        """Shares by lower-case name. For plain tags precision, recall and f1 would all be the accuracy."""
        found: Metrics = {"accuracy": self.accuracy}
        if self.kind == "tags":
            found["macro_f1"] = self.macro_f1
        else:
            found |= {"precision": self.precision, "recall": self.recall, "f1": self.f1}
        found["sentence_accuracy"] = self.sentence_accuracy
        if self.new is not None:
            found["oov_recall" if self.kind == "words" else "oov_accuracy"] = _share(self.new.right, self.new.support)
            found["oov_share"] = self.new_share
        return found

    def table(self) -> list[dict[str, Any]]:
        """A row for each type: name, precision, recall, f1, support, found, right."""
        return [score.row() for score in self.types]

    def to_json(self) -> dict[str, Any]:
        """Metrics, counts and table as JSON values."""
        counts = {"tokens": self.tokens, "right_tokens": self.right}
        counts |= {"sentences": self.sentences, "right_sentences": self.whole}
        counts |= {"support": self.total.support, "found": self.total.found, "right": self.total.right}
        if self.new is not None:
            counts |= {"oov_support": self.new.support, "oov_right": self.new.right}
        return {
            "kind": self.kind,
            "metrics": self.metrics(),
            "counts": counts,
            "unseen": dict(self.unseen),
            "types": self.table(),
        }

    def text(self, rows: int = _ROWS) -> str:
        """For the terminal: shares in points of 100, and a table with so many types at the most."""
        lines = [f"{counted(self.tokens, 'token')}, {_points(self.accuracy)} % with the right tag"]
        lines.append(f"{counted(self.sentences, 'sentence')}, {_points(self.sentence_accuracy)} % all right")
        if self.new is not None:
            what = "word" if self.kind == "words" else "token"
            of = f"outside the vocabulary ({_points(self.new_share)} % of all)"
            right = _points(_share(self.new.right, self.new.support))
            lines.append(f"{counted(self.new.support, what)} {of}, {right} % right")
        listed = list(self.types[: max(rows, 0)])
        left = len(self.types) - len(listed)
        total = [] if self.kind == "tags" else [self.total]
        if self.kind == "words" and len(self.types) == 1:
            listed, left, total = [], 0, [self.total._replace(name="all words")]
        lines += ["", *_aligned(_HEADS[self.kind], [*listed, *total])]
        if left:
            lines += ["", f"{counted(left, _HEADS[self.kind])} more, with less support, are not shown."]
        return "\n".join(lines)


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _points(share: float) -> str:
    return f"{100 * share:.2f}"


def _aligned(head: str, scores: Sequence[Score]) -> list[str]:
    """Lines of a table of plain text: names to the left, numbers to the right."""
    from rich.cells import cell_len, set_cell_size  # late: only for a terminal

    names = [shown(score.name) or "(no type)" for score in scores]
    names = [name if cell_len(name) <= _WIDTH else set_cell_size(name, _WIDTH - 1) + "…" for name in names]
    width = max(cell_len(name) for name in (head, *names))
    heads = ("precision", "recall", "f1", "support", "found")
    cells: list[tuple[str, ...]] = [heads]
    for score in scores:
        shares = (_points(share) for share in (score.precision, score.recall, score.f1))
        cells.append((*shares, f"{score.support:,}", f"{score.found:,}"))
    widths = [max(len(row[k]) for row in cells) for k in range(len(heads))]
    return [
        "  ".join([set_cell_size(name, width), *(cell.rjust(w) for cell, w in zip(row, widths, strict=True))])
        for name, row in zip((head, *names), cells, strict=True)
    ]


# -- Texts compared with predictions ----------------------------------------------------------------------------------


UNSEEN = "(unseen)"
"""Stands for tags of a text that have no name: -1 among the codes."""
_NAMELESS = {"chunks": "", "words": "word", "tags": ""}


class Lexicon(NamedTuple):
    """What tells new words: the token at each place of the text, and the words that training has seen."""

    tokens: Sequence[str]
    words: Collection[str]


def score_tags(
    gold: Sequence[Sequence[str]],
    guess: Sequence[Sequence[str]],
    *,
    kind: Kind | Literal["auto"] = "auto",
    lexicon: Lexicon | None = None,
) -> TagScores:
    """Compare the tags of sentences with predicted ones.

    Parameters
    ----------
    gold, guess
        A list of tags for each sentence: the true ones, and those predicted.
    kind
        What is looked for: `chunks`, `words` or `tags`; `auto` goes by the tags, see `kind_of`.
    lexicon
        The tokens of all sentences in one list, and the known words: scores of new words are added.

    Examples
    --------
    >>> scores = score_tags([["B-NP", "I-NP", "O"]], [["B-NP", "I-NP", "B-VP"]])
    >>> scores.precision, scores.recall, round(scores.accuracy, 3)
    (0.5, 1.0, 0.667)
    """
    if len(gold) != len(guess):
        raise InputError(f"there are {len(gold):,} sentences but predictions for {len(guess):,}; give one for each.")
    index: dict[str, int] = {}
    offsets, true = coded(gold, index)
    theirs, guessed = coded(guess, index)
    if not np.array_equal(offsets, theirs):
        bad = int(np.flatnonzero(np.diff(offsets) != np.diff(theirs))[0])
        sizes = f"{counted(len(gold[bad]), 'tag')}, but {len(guess[bad]):,} predicted"
        raise InputError(f"sentence {bad + 1:,} has {sizes}; give one for each token.")
    return score_codes(offsets, true, guessed, tuple(index), kind=kind, lexicon=lexicon)


def score_codes(
    offsets: Offsets,
    gold: Codes,
    guess: Codes,
    tags: Sequence[str],
    *,
    kind: Kind | Literal["auto"] = "auto",
    lexicon: Lexicon | None = None,
) -> TagScores:
    """As `score_tags`, for tags as numbers: tags[gold[t]] and tags[guess[t]] are those of token t.

    Sentence s has the tokens offsets[s]:offsets[s + 1]. -1 in `gold` is a tag that has no name: it counts as wrong and,
    where chunks or words are looked for, as one by itself that is never found.
    """
    _check(offsets, gold, guess, tags)
    chosen = _chosen(kind, tags)
    if len(gold) and int(gold.min()) < 0:
        tags = (*tags, UNSEEN if chosen == "tags" else f"S-{UNSEEN}")
        gold = np.where(gold < 0, len(tags) - 1, gold)
    parts = _single(tags) if chosen == "tags" else parts_of(tags)
    true, found = spans_of(offsets, gold, parts), spans_of(offsets, guess, parts)
    hits = _hits(true, found, len(gold))
    same = gold == guess
    wrong = np.append(0, np.cumsum(~same))
    full = np.diff(offsets) > 0
    return TagScores(
        kind=chosen,
        tokens=len(gold),
        right=int(same.sum()),
        sentences=int(full.sum()),
        whole=int((full & (wrong[offsets[1:]] == wrong[offsets[:-1]])).sum()),
        total=Score("all", len(true.types), len(found.types), int(hits.sum())),
        types=_by_type(true, found, hits, [name or _NAMELESS[chosen] for name in parts.names]),
        new=None if lexicon is None else _new(true, hits, same, chosen, lexicon),
    )


def score_feed(feed: TaggingFeed, guess: Codes, vocabulary: Collection[str] | None = None) -> TagScores:
    """Compare the tags of a feed with predicted ones, given as numbers of `feed.tags` for all tokens in one array.

    Tags that are not among `feed.tags`, which are those of the model, are named and counted as wrong. What is looked
    for goes by the tags of the model. vocabulary: words that training has seen, see `vocabulary_of`.
    """
    if feed.text is not None and feed.text.tags is None:
        raise InputError(f"{feed.source}: has no tags to compare with; give text with tags.")
    gold, tags = _named(feed)
    lexicon = None if vocabulary is None else Lexicon(_tokens(feed), vocabulary)
    scores = score_codes(feed.samples.offsets, gold, guess, tags, kind=kind_of_feed(feed), lexicon=lexicon)
    return replace(scores, unseen=_unseen(feed, gold, tags))


def vocabulary_of(feed: TaggingFeed) -> frozenset[str]:
    """The words of a feed: of segmented text its words, of other text its tokens."""
    tokens = _tokens(feed)
    if kind_of_feed(feed) != "words":
        return frozenset(tokens)
    gold, tags = _named(feed)
    return frozenset(_words(spans_of(feed.samples.offsets, gold, parts_of(tags)), tokens))


# -- counting --


def _chosen(kind: Kind | Literal["auto"], tags: Sequence[str]) -> Kind:
    if kind not in ("auto", "chunks", "words", "tags"):
        raise ConfigError(f"kind is `{kind}`; it must be one of auto, chunks, words, tags.")
    return kind_of(tags) if kind == "auto" else kind


def _check(offsets: Offsets, gold: Codes, guess: Codes, tags: Sequence[str]) -> None:
    tokens = len(gold)
    if len(guess) != tokens:
        raise InputError(f"there are {counted(tokens, 'tag')}, but {len(guess):,} predicted; give one for each token.")
    if not len(offsets) or offsets[0] != 0 or offsets[-1] != tokens or (np.diff(offsets) < 0).any():
        raise InputError(f"offsets of sentences do not fit {counted(tokens, 'token')}; they begin with 0 and rise.")
    if len(set(tags)) != len(tags):
        raise InputError("a tag stands twice among `tags`; give each once.")
    for codes, least, name in ((gold, -1, "true"), (guess, 0, "predicted")):
        if tokens and not least <= int(codes.min()) <= int(codes.max()) < len(tags):
            raise InputError(f"a {name} tag has a number outside {least} … {len(tags) - 1}: no place in `tags`.")


def _single(tags: Sequence[str]) -> TagParts:
    """Tags such that each token is a chunk of its own, of the type that its tag is."""
    return TagParts(np.full(len(tags), SINGLE, np.int8), np.arange(len(tags), dtype=np.int32), tuple(tags))


def _hits(true: Spans, found: Spans, tokens: int) -> Flags:
    """Which of the true ones were found: with the same start, end and type."""
    place = np.full(tokens, -1, np.int64)
    place[found.starts] = np.arange(len(found.starts))
    match = place[true.starts]
    hits = match >= 0
    hits[hits] &= (found.ends[match[hits]] == true.ends[hits]) & (found.types[match[hits]] == true.types[hits])
    return hits


def _by_type(true: Spans, found: Spans, hits: Flags, names: Sequence[str]) -> tuple[Score, ...]:
    """Scores of all types that occur, the most frequent first."""
    there, called, right = (
        np.bincount(types, minlength=len(names)).tolist() for types in (true.types, found.types, true.types[hits])
    )
    scores = [Score(*counts) for counts in zip(names, there, called, right, strict=True) if counts[1] or counts[2]]
    return tuple(sorted(scores, key=lambda score: (-score.support, score.name)))


def _new(true: Spans, hits: Flags, same: Flags, kind: Kind, lexicon: Lexicon) -> New:
    """Words outside the vocabulary that were found; for chunks and tags, tokens outside of it with the right tag."""
    if len(lexicon.tokens) != len(same):
        raise InputError(f"the lexicon has {counted(len(lexicon.tokens), 'token')}, the text {len(same):,}.")
    known = lexicon.words if isinstance(lexicon.words, (set, frozenset, dict)) else frozenset(lexicon.words)
    words, right = (_words(true, lexicon.tokens), hits) if kind == "words" else (lexicon.tokens, same)
    strange = np.fromiter((word not in known for word in words), np.bool_, len(words))
    return New(int(strange.sum()), int((strange & right).sum()))


def _words(spans: Spans, tokens: Sequence[str]) -> list[str]:
    pairs = zip(spans.starts.tolist(), spans.ends.tolist(), strict=True)
    return ["".join(tokens[start:end]) for start, end in pairs]


# -- feeds --


def kind_of_feed(feed: TaggingFeed) -> Kind:
    """What the tags of the model say; segmented text has words even if each is but one character."""
    return "words" if feed.schema.get("format") == "segmented" else kind_of(feed.tags)


def _named(feed: TaggingFeed) -> tuple[Codes, tuple[str, ...]]:
    """Numbers of the tags of a feed, and their names, those that the model has not seen among them, after its own."""
    codes = feed.samples.tags
    column = None if feed.text is None else feed.text.tags
    unseen = codes < 0
    if column is None or not unseen.any() or len(column.codes) != len(codes):
        return codes, feed.tags
    theirs = column.codes[unseen]
    numbers = np.unique(theirs)
    named = np.array(codes)
    named[unseen] = len(feed.tags) + np.searchsorted(numbers, theirs)
    return named, (*feed.tags, *(column.values[number] for number in numbers.tolist()))


def _unseen(feed: TaggingFeed, gold: Codes, tags: Sequence[str]) -> dict[str, int]:
    if len(tags) > len(feed.tags):
        counts = np.bincount(gold, minlength=len(tags)).tolist()
        return dict(zip(tags[len(feed.tags) :], counts[len(feed.tags) :], strict=True))
    nameless = int((gold < 0).sum())
    return dict(feed.strange) or {UNSEEN: nameless} if nameless else {}


def _tokens(feed: TaggingFeed) -> list[str]:
    if feed.text is None or not feed.text.columns:
        raise InputError(f"{feed.source}: holds no words, only features; new words cannot be told from known ones.")
    column = feed.text.columns[0]
    return [column.values[code] for code in column.codes.tolist()]
