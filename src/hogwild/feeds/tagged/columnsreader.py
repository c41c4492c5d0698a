"""Read files of tokens in columns, CoNLL and CoNLL-U."""

from __future__ import annotations

from itertools import compress

import numpy as np

from hogwild.arrays import Offsets
from hogwild.errors import InputError
from hogwild.feeds.io.blocks import head_of
from hogwild.feeds.io.source import Source
from hogwild.feeds.sparse.labels import counted, shown
from hogwild.feeds.tagged.columns import TAGS, UNUSED, Asked, ColumnPlan, plan_columns
from hogwild.feeds.tagged.conll import (
    BAD,
    COMMENT,
    MOST,
    START,
    TOKEN,
    Layout,
    Rows,
    layout_of,
    look_at,
    rows_of,
    run_lengths,
    sentence_numbers,
    whole_sentences,
)
from hogwild.feeds.tagged.conllu import EMPTY, FIELDS, RANGE, REAL, kinds_of, plan_conllu, wrong_numbers
from hogwild.feeds.tagged.taggedtext import Origin, TextColumn
from hogwild.feeds.tagged.text import Gathering

_LONG = 1000  # tokens of a file without blank lines that a note names
_SHOWN = 3    # tags that a note names


class ColumnsReader:
    """Takes one file after the other; all have the columns of the first."""

    def __init__(self, gathering: Gathering, asked: Asked, form: str) -> None:
        self.gathering, self.asked = gathering, asked
        self.unicode = form == "conllu"
        self.form = form
        self.plan: ColumnPlan | None = None
        self.tabs = False
        self._notes: list[str] = []

    def read(self, source: Source) -> None:
        """Take the sentences of a file."""
        gathered = self.gathering
        layout = self._layout(source)
        before = gathered.sentences, gathered.tokens
        for first, text in whole_sentences(gathered.blocks(source), layout.tabs):
            self._take(text, first, source, layout)
        tokens = gathered.tokens - before[1]
        if gathered.sentences - before[0] == 1 and tokens >= _LONG:
            self._notes.append(f"{source.name} has no blank line: its {tokens:,} tokens are one sentence.")

    def columns(self) -> tuple[TextColumn, ...]:
        """All columns, in the order of the file."""
        assert self.plan is not None
        return tuple(self.gathering.column(k, name) for k, name in enumerate(self.plan.names))

    def origin(self, columns: tuple[TextColumn, ...]) -> Origin:
        """What the sentences are written with again."""
        return Origin(self.form, columns, "\t" if self.tabs else " ")

    def notes(self, columns: tuple[TextColumn, ...]) -> list[str]:
        """What was decided that the user did not say, and what is odd."""
        assert self.plan is not None
        notes, plan, config = [*self._notes], self.plan, self.asked.config
        said = config.columns and (config.tag_column or TAGS in config.columns)
        if not said and not self.asked.needed:
            used = ", ".join(plan.features())
            unused = [str(k) for k, name in enumerate(plan.names) if name == UNUSED]
            tags = f"; tags: {plan.names[plan.tag] if self.unicode else f'column {plan.tag}'}" if plan.tag >= 0 else ""
            ignored = f"; not used: column {', '.join(unused)}" if unused and not self.unicode else ""
            notes.append(f"Columns: {used}{tags}{ignored} (--columns and --tag-column say otherwise).")
        if plan.tag >= 0 and self.asked.with_tags:
            notes += self._odd_tags(columns)
        return notes

    def _layout(self, source: Source) -> Layout:
        """Judge the first lines of a file, and decide by those of the first file what its columns are."""
        layout = layout_of(head_of(source, self.gathering.config.invalid_utf8 == "replace"), source.name)
        count = layout.columns
        if not count:
            return layout
        if count > MOST:
            raise InputError(f"{source.name}: {count:,} columns found; is this the right --format?")
        self.tabs |= layout.tabs
        if self.unicode and count != len(FIELDS):
            raise InputError(
                f"{source.name}: {count} columns found, but CoNLL-U has {len(FIELDS)}; is this the right --format?"
            )
        if self.plan is None:
            self.plan = (
                plan_conllu(self.asked, source.name) if self.unicode else plan_columns(count, self.asked, source.name)
            )
            self.asked.places(self.plan, source.name)  # says at once what is missing
            self.gathering.open(count)
        if count != len(self.plan.names):
            raise InputError(
                f"{source.name}: {count} columns found, but {len(self.plan.names)} in the file before; give files with"
                " the same columns."
            )
        return layout._replace(hashed=self.unicode)

    def _take(self, text: bytes, first: int, source: Source, layout: Layout) -> None:
        lines = look_at(text, layout)
        numbers = sentence_numbers(lines)
        self.gathering.left_out["comment line"] += int((lines.status == COMMENT).sum())
        self.gathering.left_out["-DOCSTART- line"] += int((lines.status == START).sum())
        seen = len(run_lengths(numbers[(lines.status == TOKEN) | (lines.status == BAD)]))
        why = {
            k: f"expected {layout.columns} columns, found {lines.columns[k]}"
            for k in np.flatnonzero(lines.status == BAD).tolist()
        }
        while True:
            chosen = (lines.status == TOKEN) & ~np.isin(numbers, numbers[lines.status == BAD])
            rows = rows_of(lines, chosen, layout)
            wrong = self._wrong(rows.values, layout)
            if not wrong:
                break
            bad = np.isin(rows.which, list(wrong))
            places = np.flatnonzero(chosen)[bad]
            why |= {k: wrong[row] for k, row in zip(places.tolist(), rows.which[bad].tolist(), strict=True)}
            lines.status[places] = BAD
        self._report(why, numbers, first, source)
        self.gathering.bad.seen(seen)
        if rows.values:
            self._add(rows, numbers[chosen], layout)

    def _wrong(self, values: list[bytes], layout: Layout) -> dict[int, str]:
        """What is wrong with rows that have as many columns as they should, by row."""
        if not values or self.plan is None:
            return {}
        wrong = wrong_numbers(values[:: layout.columns]) if self.unicode else {}
        if self.plan.tag >= 0 and self.asked.with_tags and layout.tabs:
            tags = values[self.plan.tag :: layout.columns]
            if b"" in tags:
                wrong |= {row: f"the tag (column {self.plan.tag}) is empty" for row, tag in enumerate(tags) if not tag}
        return wrong

    def _report(self, why: dict[int, str], numbers: Offsets, first: int, source: Source) -> None:
        """Report each malformed sentence once, by its first malformed line."""
        before = -1
        for k in sorted(why):
            if numbers[k] != before:
                before = int(numbers[k])
                self.gathering.report(f"{source.place(first + k)}: {why[k]}")

    def _add(self, rows: Rows, numbers: Offsets, layout: Layout) -> None:
        columns = [rows.values[k :: layout.columns] for k in range(layout.columns)]
        which = rows.which
        if self.unicode:
            kinds = kinds_of(columns[0])
            for what in (RANGE, EMPTY):
                self.gathering.left_out[what] += int((kinds == what)[which].sum())
            kept = kinds == REAL
            if not kept.all():
                columns = [list(compress(column, kept.tolist())) for column in columns]
                numbers = numbers[kept[which]]
                which = (np.cumsum(kept) - 1)[which[kept[which]]]
        coded = [coder.codes(column)[which] for coder, column in zip(self.gathering.coders, columns, strict=True)]
        self.gathering.add(coded, run_lengths(numbers))

    def _odd_tags(self, columns: tuple[TextColumn, ...]) -> list[str]:
        """Tags that may be none: those of comments that look like tokens, and `_` in CoNLL-U."""
        assert self.plan is not None
        tags = columns[self.plan.tag]
        if self.unicode:
            missing = int((tags.codes == tags.values.index("_")).sum()) if "_" in tags.values else 0
            return [f"{counted(missing, 'token')} tagged `_`, which in CoNLL-U means no tag."] if missing else []
        if "#" not in columns[0].values:
            return []
        hashes = columns[0].codes == columns[0].values.index("#")
        alone = np.setdiff1d(tags.codes[hashes], tags.codes[~hashes])
        named = np.array([tags.values[code] == "#" for code in alone.tolist()], np.bool_)  # as treebanks call it
        alone = alone[~named]
        if not len(alone):
            return []
        names = ", ".join(f"`{shown(tags.values[code])}`" for code in alone[:_SHOWN].tolist())
        lines = int(np.isin(tags.codes[hashes], alone).sum())
        return [
            f"{counted(lines, 'line')} with the token `#` and a tag that no other token has ({names}"
            f"{', …' if len(alone) > _SHOWN else ''}): if these are comments, take them out of the file."
        ]
