"""The scores of a tagger: counts, shares, and how they are shown.

Precision is the share of what was found that is right, recall the share of what was to be found that was, f1 their
harmonic mean. All are shares of 1, and 0 where there is nothing to divide by.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from hogwild.feeds.sparse.labels import counted, shown
from hogwild.programs.program import Metrics
from hogwild.programs.taggers.schemes import Kind

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
