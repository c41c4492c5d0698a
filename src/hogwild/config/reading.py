"""How files are read."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Annotated, Literal, Self

from hogwild.config.kinds import Column, Columns, File, Format, Subwords, TagScheme, letters_of
from hogwild.config.options import Config, Shown, require, require_not_negative

MISSING = ("NA", "NaN", "N/A", "null", "None", "?", "-")
"""Words that stand for a missing value in tables, unless the user names others."""
RatingFormat = Literal["auto", "ratings", "lists", "parquet", "arrow", "jsonl"]
Separator = Literal["auto", "tab", "comma", "semicolon", "space", "colons"]


@dataclass(frozen=True, kw_only=True)
class SourceConfig(Config):
    """What all readers have in common."""

    invalid_utf8: Literal["stop", "replace"] = "stop"
    """What invalid UTF-8 does; `replace` counts it."""
    pipe: Annotated[str, Shown("COMMAND")] = ""
    """Shell command that each file is sent through before it is read."""
    cache: bool = True
    """Keep the encoded data on disk and use it again."""


@dataclass(frozen=True, kw_only=True)
class LinesConfig(SourceConfig):
    """What readers of lines have in common."""

    bad_lines: Literal["stop", "skip"] = "stop"
    """What a malformed line does; `skip` counts and reports them. Tagged text: its sentence goes with it."""
    bad_share: float = 0.01
    """With `skip`: give up when more than this share of the lines (tagged text: sentences) is malformed."""

    def check(self) -> None:
        require(self, "bad_share", 0 <= self.bad_share <= 1, "it is a share between 0 and 1. Try 0.01.")


@dataclass(frozen=True)
class FeedConfig(LinesConfig):
    """How files are read."""

    format: Format = "auto"
    """Kind of file; `auto` goes by name and content."""
    label: Column = ""
    """Label column of a table, by name or number (0 is the first, -1 the last), or slot or feature, by name. Default:
    `label`, else the first."""
    weight: Column = ""
    """Column of a table with the weights of rows, by name or number: a row of weight 2 counts as two, one of weight 0
    as none, in training and in what is measured; they are divided by their mean. Default, and `none`: all are 1."""
    text: Column = ""
    """Text column of a table or of `label<TAB>text` lines, by name or number."""
    numeric: Columns = ()
    """Columns to read as numbers. Default: those whose first rows all are."""
    categorical: Columns = ()
    """Columns to read as categories. Default: those that are not numbers."""
    multi: Annotated[tuple[str, ...], Shown("COLUMN[:SEPARATOR]")] = ()
    """Columns of a table whose fields hold several values with | or another separator between them, as in a|b|c: each
    is a feature, once a row, and all are of one slot. Columns of lists are read so without being named."""
    ignore: Columns = ()
    """Columns to leave out."""
    interactions: Annotated[tuple[str, ...], Shown("A:B")] = ()
    """Pairs of columns of a table whose values count together, for linear models: of two categories each pair is a
    feature, of a number and a category the number by category, of two numbers their product."""
    missing: Annotated[tuple[str, ...], Shown("WORD")] = MISSING
    """Words that stand for a missing value in tables, in small or capital letters; empty fields always do. Those that
    are given stand instead of the default ones."""
    missing_numbers: Literal["mean", "zero", "error"] = "mean"
    """What missing numbers of tables are: the mean of their column in training, with a feature beside it that says so;
    0, with none; or an error."""
    number_style: Literal["plain", "point", "comma"] = "plain"
    """How numbers of tables are written: plain; `point`: also 1,234.5 and $31; `comma`: 1.234,5 and 31 €."""
    dates: Annotated[str, Shown("iso|FORMAT")] = ""
    """How dates of tables are written: `iso`, or as in %d.%m.%Y; columns of dates are then numbers, of years since
    2000. Default: they are categories."""
    header: Literal["auto", "yes", "no"] = "auto"
    """Whether the first line of a table names the columns."""
    label_separator: Annotated[str, Shown("TEXT")] = ""
    """What stands between the labels of a row in a column of a table, as in `red|round`. Default: a field is one label.
    Lists in JSON lines, Parquet and Arrow need none."""
    label_prefix: Annotated[str, Shown("TEXT")] = "__label__"
    """What labels begin with in fastText's lines: `__label__pos __label__short text of the sentence`."""
    several_labels: bool = False
    """Rows may have several labels, or none: each label is learnt for itself. Default: if some row has several."""
    slots: File = ""
    """Description of the slots of MultiSlot and TFRecord files: TOML, or a data-feed description."""
    indices: Annotated[str, Shown("NAME")] = ""
    """Feature of TFRecord files with the ids. Default: `nz_idx`, else the integers that have values beside them."""
    values: Annotated[str, Shown("NAME")] = ""
    """Feature of TFRecord files with the values. Default: `nz_values`, else the floats that are as many as the ids."""
    binary: bool = False
    """All values of TFRecord files are 1: they are not read."""
    layout: Annotated[Literal["flat", "slots"], Shown(hidden=True)] = "flat"
    """`slots`: columns of categories become slots and columns of numbers a dense matrix, for models that tell slots
    apart."""
    hash_bits: int = 20
    """Hashed features (text, hashed categories) go to 2^N ids."""
    categories: Literal["enumerate", "hash"] = "enumerate"
    """Give every category an id of its own, or hash it."""
    hash_seed: int = 0x5EED
    """Seed of hashing: the same words with another seed go to other ids."""
    shared_ids: bool = False
    """The same category in two slots is one feature; by default every slot has its own."""
    min_count: Annotated[int | None, Shown("N")] = None
    """Categories that occur less often become one feature of their slot or column, which unseen ones get too. Default:
    2 for models that tell slots apart, of categories that are not hashed; else 1, which keeps all."""
    ngrams: int = 2
    """Words and word n-grams up to this length become features of text."""
    subwords: Subwords = ""
    """Parts of words too become features of text: runs of so many letters of `<word>`, such as 3:6, by which words that
    are spelt alike are alike, as in fastText. Default: none."""
    lowercase: bool = True
    """Lower-case text before it is hashed."""
    normalize: bool = True
    """Scale every text row to length one."""
    scale: bool = True
    """Divide every column of numbers by the root mean square of its values other than 0; where it stands beside slots,
    centre it on its mean and divide it by its standard deviation."""
    unlabelled: Annotated[bool, Shown(hidden=True)] = False
    """For prediction: files without a label column, and rows without a known label, are read with target 0."""
    features: int = 0
    """Number of features of svmlight and TFRecord files; 0: one more than the largest id."""
    zero_based: Literal["auto", "yes", "no"] = "auto"
    """Whether svmlight ids start at 0."""
    max_line: int = 64 << 20
    """Longest line in bytes; a longer one means that this is not the format it seems to be."""

    def __post_init__(self) -> None:
        words = tuple(word for words in self.missing for word in str(words).split(","))
        object.__setattr__(self, "missing", words)
        super().__post_init__()

    def check(self) -> None:
        super().check()
        require(self, "hash_bits", 1 <= self.hash_bits <= 30, "it must lie between 1 and 30. Try 20.")
        require(self, "hash_seed", 0 <= self.hash_seed < 2**64, "it must lie between 0 and 18446744073709551615.")
        least = self.min_count is None or self.min_count >= 1
        require(self, "min_count", least, "it must be at least 1, which keeps every category. Try 10.")
        counts = self.min_count in (None, 1) or self.categories == "enumerate"
        require(self, "min_count", counts, "hashed categories are not counted. Leave out --categories hash.")
        require(self, "dates", _is_form(self.dates), "give iso, or the form of a date such as %d.%m.%Y.")
        blank = not self.label_prefix or any(sign.isspace() for sign in self.label_prefix)
        require(self, "label_prefix", not blank, "it must be a word without blanks. Try __label__.")
        letters_of(self.subwords)
        unshared = not (self.interactions and self.shared_ids)
        require(self, "interactions", unshared, "columns that share their categories have no pairs. Leave one out.")
        alone = not self.interactions or self.layout == "flat"
        require(self, "interactions", alone, "they are for linear models; others tell slots apart. Leave it out.")
        require(self, "ngrams", 1 <= self.ngrams <= 16, "it must lie between 1 and 16. Try 2.")
        require(self, "features", 0 <= self.features < 2**31, "it must lie between 0 (count them) and 2147483647.")
        require(self, "max_line", self.max_line >= 1, "it must be at least 1 byte. Try 67108864.")

    @property
    def cut_off(self) -> int:
        """How often a category must occur to have a feature of its own: one that occurs once has a row of a table that
        is hardly trained, and what is like it at prediction, the unseen ones, would have none."""
        if self.min_count is not None:
            return self.min_count
        return 2 if self.layout == "slots" and self.categories == "enumerate" else 1


def _is_form(form: str) -> bool:
    """Whether this is a form of dates: a day that is written so is the same day when it is read."""
    day = datetime(2001, 2, 3)
    try:
        return form in ("", "iso") or datetime.strptime(day.strftime(form), form) == day
    except (ValueError, re.error):
        return False


@dataclass(frozen=True)
class VocabularyConfig(SourceConfig):
    """Which words of a text are kept."""

    min_count: int = 5
    """Words that occur less often are left out."""
    max_vocab: int = 0
    """Keep at most this many words, the most frequent ones; 0: no limit."""
    max_vocabulary: int = 1 << 22
    """Different words that are held while they are counted, which bounds memory; of more the rarest are dropped.
    Rounded down to a power of two."""
    lowercase: bool = False
    """Lower-case the text."""
    max_token: int = 1000
    """Longest word in bytes; a longer one is left out and counted."""

    def check(self) -> None:
        require(self, "min_count", self.min_count >= 1, "it must be at least 1, which keeps every word. Try 5.")
        require(self, "max_vocab", 0 <= self.max_vocab < 2**31, "it must lie between 0 (no limit) and 2147483647.")
        fits = 2 <= self.max_vocabulary <= 1 << 30
        require(self, "max_vocabulary", fits, "it must lie between 2 and 1073741824. Try 4194304.")
        require(self, "max_token", 1 <= self.max_token <= 1 << 20, "it must lie between 1 and 1048576. Try 1000.")


@dataclass(frozen=True)
class CorpusConfig(VocabularyConfig):
    """How running text is read."""

    phrases: int = 0
    """Passes that join pairs of words which occur together more often than by chance (`new_york`); 0: none."""
    phrase_threshold: float = 10.0
    """Pairs with a higher score become phrases."""
    phrase_min_count: int = 5
    """Occurrences that a pair does not get counted for its score; those that have no more are no phrases."""

    def check(self) -> None:
        super().check()
        require(self, "phrases", 0 <= self.phrases <= 10, "it must lie between 0 (none) and 10. Try 1.")
        require_not_negative(self, "phrase_threshold", remedy="Try 10; higher gives fewer phrases.")
        require_not_negative(self, "phrase_min_count", remedy="Try 5.")


@dataclass(frozen=True)
class DocumentConfig(VocabularyConfig):
    """How documents are read."""

    format: Literal["auto", "lines", "csv", "tsv", "parquet", "arrow", "jsonl"] = "auto"
    """Kind of file: `lines`, a document each, or a table; `auto` goes by name, and by content for Parquet and Arrow."""
    text: Column = ""
    """Column of a table with the texts, by name or number. Default: `text`, else the only one."""
    id: Column = ""
    """Column of a table with the tags of documents, by name or number. Default: rows are numbered from 0, as lines
    are."""

    def check(self) -> None:
        super().check()
        for name in ("text", "id"):
            table = self.format != "lines" or not getattr(self, name)
            require(self, name, table, "it is a column of a table, and the files hold lines; leave it out.")

    def vocabulary(self) -> CorpusConfig:
        """What reads words takes."""
        return CorpusConfig(**{item.name: getattr(self, item.name) for item in fields(VocabularyConfig)})


@dataclass(frozen=True)
class TaggingConfig(LinesConfig):
    """How tagged text is read."""

    format: Literal["auto", "conll", "conllu", "segmented", "jsonl", "tokens"] = "auto"
    """Kind of file: columns, CoNLL-U, words separated by spaces, JSON lines, or, for prediction, lines of tokens;
    `auto` goes by name and content."""
    features: Annotated[str, Shown("PRESET|FILE")] = ""
    """Feature templates: a preset (chunking, chunking-more, pos, segmentation; for a Bi-LSTM words, words-shapes,
    words-pos, characters), or a file of templates. Default: of a CRF chunking where there is a column pos, segmentation
    for segmented text, else pos; of a Bi-LSTM words-shapes."""
    columns: Annotated[tuple[str, ...], Shown("NAME,NAME")] = ()
    """Names of the columns of CoNLL files, or the fields of JSON lines, in order; - leaves one out. Default: all."""
    tag_column: Annotated[str, Shown("NAME|N")] = ""
    """Column of the tags, by name or number (0 is the first, -1 the last). Default: the last; CoNLL-U: upos."""
    scheme: TagScheme = "same"
    """Scheme that the tags are changed into as they are read, here and in all text for the model; bio is iob2."""
    chunks: Annotated[tuple[str, ...], Shown("TYPE,TYPE")] = ()
    """Keep only chunks of these types, such as NP; tags of others become O, here and in all text for the model.
    Default: all."""
    min_count: int = 1
    """Features that occur less often are left out."""

    def __post_init__(self) -> None:
        for listed in ("columns", "chunks"):
            names = tuple(name.strip() for names in getattr(self, listed) for name in names.split(","))
            object.__setattr__(self, listed, names)
        super().__post_init__()

    def check(self) -> None:
        super().check()
        require(self, "min_count", self.min_count >= 1, "it must be at least 1, which keeps every feature. Try 1.")

    def with_features(self, usual: str) -> Self:
        """The same, with these templates where the user names none."""
        return self if self.features else replace(self, features=usual)


@dataclass(frozen=True)
class RatingConfig(LinesConfig):
    """How ratings are read."""

    format: RatingFormat = "auto"
    """Kind of file: `ratings`: user, item and perhaps rating a line; `lists`: a user and all items; `jsonl`: an
    object a line; `auto` looks."""
    separator: Separator = "auto"
    """What stands between columns of text; `colons` is `::`."""
    header: Literal["auto", "yes", "no"] = "auto"
    """Whether the first line names the columns."""
    user: Column = ""
    """Column of the user, by name or number (0 is the first). Default: `user`, `userId` or such, else the first."""
    item: Column = ""
    """Column of the item. Default: `item`, `itemId`, `movieId` or such, else the second."""
    rating: Column = ""
    """Column of the rating; `none`: there is none. Default: `rating` or `score`, else the third, if there is one."""
    min_rating: Annotated[float | None, Shown("RATING")] = None
    """Leave out what is rated lower: for training on what users like. Default: everything counts."""
    max_line: int = 64 << 20
    """Longest line in bytes; a longer one means that this is not the format it seems to be."""

    def check(self) -> None:
        super().check()
        require(self, "max_line", self.max_line >= 1, "it must be at least 1 byte. Try 67108864.")
