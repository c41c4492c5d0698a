"""Documents: texts as word ids, each with a tag, that paragraph vectors are trained on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from hogwild.arrays import Offsets, Tokens
from hogwild.config import CorpusConfig, DocumentConfig
from hogwild.errors import InputError
from hogwild.feeds.corpus.feed import Corpus
from hogwild.feeds.corpus.open import Encoded, Maker, Sentences, Vocabulary, wanted_words
from hogwild.feeds.corpus.texts import FileTexts
from hogwild.feeds.held_out import entries_of, marked
from hogwild.feeds.io.blocks import replaced_notes
from hogwild.feeds.io.source import Paths, open_sources
from hogwild.feeds.storage import cache
from hogwild.feeds.storage.arrayfiles import ArrayWriter, Damaged, mapping, read_strings, title_of
from hogwild.feeds.storage.words import Words
from hogwild.kernels.ids.words import END, UNKNOWN
from hogwild.messages import counted, shown

_BATCH = 1 << 18  # words that are encoded together, about


@dataclass(frozen=True, repr=False)
class Documents(Corpus):
    """Texts that paragraph vectors are trained on, in memory or memory-mapped from the cache.

    As a Corpus, of which every document is one sentence, empty ones too. ends: behind the last word of each document,
    and its end of a sentence. tags: what documents are called; () where they are numbered from 0.
    """

    ends: Offsets = field(default_factory=lambda: np.zeros(0, np.int64))
    tags: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<Documents of {self.source}: {self.parts:,}, {self.total:,} words, {len(self.words):,} different>"

    def check(self) -> Documents:
        """Check all that compiled code will trust; returns the documents themselves."""
        super().check()
        bounds = np.concatenate([[0], self.ends])
        if (np.diff(bounds) < 1).any() or int(bounds[-1]) != len(self.samples.ids):
            raise InputError(f"{self.source}: the ends of documents do not fit their words; the data is damaged.")
        if self.tags and len(self.tags) != len(self.ends):
            raise InputError(f"{self.source}: {len(self.ends)} documents have {len(self.tags)} tags; data is damaged.")
        return self

    @property
    def parts(self) -> int:
        """Documents."""
        return len(self.ends)

    @property
    def sizes(self) -> Offsets:
        """Words of each document that are in the vocabulary."""
        return np.diff(self.ends, prepend=0) - 1

    def names(self) -> tuple[str, ...]:
        """The tags of all documents, numbers where they have no others."""
        return self.tags or tuple(map(str, range(self.parts)))

    def part(self, rows: Offsets, mark: str) -> Documents:
        """Some of the documents, under their own tags, in the vocabulary of all; counts are those of these."""
        fresh, tokens = entries_of(np.concatenate([[0], self.ends]), rows)
        taken, names = self.samples.ids[tokens], self.names()
        counts = np.bincount(taken[taken >= 0], minlength=len(self.words)).astype(self.counts.dtype)
        return replace(
            self, samples=Tokens(taken), counts=counts, notes=(), fingerprint=marked(self.fingerprint, mark),
            total=round(self.total * int(counts.sum()) / max(1, len(self))), ends=fresh[1:],
            tags=tuple(names[row] for row in rows.tolist()),
        )  # fmt: skip


def open_documents(
    paths: Paths, config: DocumentConfig | None = None, vocabulary: Sequence[str] | None = None,
    schema: Mapping[str, Any] | None = None,
) -> Documents:  # fmt: skip
    """Open files of documents: encoded once into memory-mapped word ids, found again on the next run.

    Parameters
    ----------
    paths
        Text files of one document a line, whose tags are the numbers of the lines from 0; or tables (CSV, Parquet,
        Arrow, JSON lines) with a column of texts and perhaps one of tags. Compressed or not, globs, or `-`.
    config
        How files are read.
    vocabulary
        Words to encode with, instead of those that the texts have often enough; other words are left out.
    schema
        `Documents.schema` of those that a model was trained on, whose columns a table has where `config` names none.

    Examples
    --------
    >>> documents = open_documents("reviews.csv", DocumentConfig(text="review", id="name"))     # doctest: +SKIP
    """
    config = config or DocumentConfig()
    sources = open_sources(paths, config)
    texts = FileTexts(sources, config, schema or {})
    options = {name: value for name, value in asdict(config).items() if name != "cache"}
    given, _ = wanted_words(vocabulary, ())
    exact = {**options, **texts.columns, "format": texts.form}
    key = cache.key_from({"documents": exact, "vocabulary": given}, sources)

    def write(directory: Path) -> None:
        maker = _DocumentMaker(config.vocabulary(), [source.name for source in sources], texts, given is not None)
        maker.make(_Texts(texts, maker.config), given, directory)

    return cache.open_entry(write, sources, key, map_documents, config.cache)


def documents_of(
    texts: Iterable[Any], config: DocumentConfig | None = None, vocabulary: Sequence[str] | None = None
) -> Documents:
    """Make documents of texts in memory.

    Parameters
    ----------
    texts
        Strings, of which words are what stands between white space; or pairs of a tag and a string. A list of words
        stands for a text too. Without tags, documents are numbered from 0.
    config
        As for `open_documents`; what concerns files is ignored.
    vocabulary
        As for `open_documents`.

    Examples
    --------
    >>> documents = documents_of([("a", "to be"), ("b", ""), ("c", "not to be")], DocumentConfig(min_count=1))
    >>> documents.words, documents.samples.ids.tolist(), documents.ends.tolist(), documents.tags
    (('be', 'to', 'not'), [1, 0, -1, -1, 2, 1, 0, -1], [3, 4, 8], ('a', 'b', 'c'))
    """
    config = config or DocumentConfig()
    if isinstance(texts, (str, bytes)) or not isinstance(texts, Iterable):
        raise InputError(f"the documents are {type(texts).__name__}; give a list of texts, or open a file with"
                         " open_documents.")  # fmt: skip
    given, _ = wanted_words(vocabulary, ())
    held = _Given(texts)

    def write(directory: Path) -> None:
        maker = _DocumentMaker(config.vocabulary(), [], held, given is not None)
        maker.make(_Texts(held, maker.config), given, directory)

    return cache.make_entry(write, [], "", map_documents, keep=False)


class _Given:
    """Texts of the caller's. tags: of those read so far; none where they have none."""

    replaced = 0
    columns: ClassVar[dict[str, str]] = {"text": "", "id": ""}

    def __init__(self, texts: Iterable[Any]) -> None:
        self._texts = list(texts)
        self.tags: list[str] = []

    def __iter__(self) -> Iterator[str]:
        self.tags = []
        tagged = bool(self._texts) and isinstance(self._texts[0], tuple)
        for number, item in enumerate(self._texts):
            if isinstance(item, tuple) != tagged or (tagged and len(item) != 2):
                raise InputError(f"document {number} is {shown(repr(item), 40)}; give texts, or pairs (tag, text)"
                                 " throughout.")  # fmt: skip
            tag, text = item if tagged else ("", item)
            if isinstance(text, list):
                text = " ".join(map(str, text))
            if not isinstance(text, str):
                raise InputError(f"document {number} is {type(text).__name__}, not a text; give strings.")
            if tagged:
                self.tags.append(str(tag))
            yield text


class _Texts(Sentences):
    """Passes over texts, of which words are what stands between ASCII white space. Every text ends, empty or not."""

    def _batches(self) -> Iterator[tuple[list[Any], list[int]]]:
        tokens: list[bytes] = []
        ends: list[int] = []
        for number, text in enumerate(self._sentences):
            lowered = str(text).lower() if self._config.lowercase else str(text)
            try:
                tokens += lowered.encode().split()
            except UnicodeEncodeError:
                raise InputError(f"document {number} holds half a surrogate pair; it is no text.") from None
            ends.append(len(tokens))
            if len(tokens) >= _BATCH:
                yield tokens, ends
                tokens, ends = [], []
        if ends:
            yield tokens, ends

    def _encode(self, words: Words, tokens: list[Any], ends: list[int]) -> Any:
        lengths = np.fromiter(map(len, tokens), np.int32, len(tokens))
        return words.encode_joined(b"".join(tokens), np.insert(lengths, ends, END), step=1)


class _DocumentMaker(Maker):
    """From passes over the texts to a directory that holds the documents."""

    def __init__(self, config: CorpusConfig, names: list[str], texts: FileTexts | _Given, bare: bool) -> None:
        super().__init__(config, names, 1, [])
        self._texts, self.bare = texts, bare

    def write(self, directory: Path, encoded: Encoded, chosen: Vocabulary, whole: dict[str, Any]) -> None:
        """Write the texts in the ids of the vocabulary, with all their ends, and their tags."""
        tags = self._texts.tags
        self.notes += replaced_notes(self._texts.replaced)
        where = ", ".join(self.names) or "the texts"
        if not encoded.stretches:
            raise InputError(f"{where}: no documents; is it empty?")
        _check_tags(tags, where)
        place = documents = empty = last = 0
        with ArrayWriter(directory) as writer:
            for stretch in encoded.stretches:
                ids = np.fromfile(stretch.path, np.int32, stretch.size, offset=4 * stretch.place)
                ids = np.where(ids >= 0, encoded.maps[stretch.table][ids], ids)
                ids = ids[ids != UNKNOWN].astype(np.int32)
                ends = np.flatnonzero(ids == END) + 1 + place
                empty += int(np.count_nonzero(np.diff(ends, prepend=last) == 1))
                documents += len(ends)
                place, last = place + len(ids), int(ends[-1])  # a stretch is of whole documents
                writer.write("ids", ids)
                writer.write("offsets", ends)
            if empty:
                verb = "has" if empty == 1 else "have"
                self.notes.append(f"{empty:,} of {counted(documents, 'document')} {verb} no word of the vocabulary:"
                                  " such vectors are all zeros.")  # fmt: skip
            writer.write("counts", chosen.counts)
            writer.write_strings("words", "letters", chosen.words)
            writer.write_strings("titles", "title_letters", tags)
            schema = {**whole["schema"], "format": "documents", **self._texts.columns}
            writer.seal({**whole, "schema": schema, "notes": self.notes})


def _check_tags(tags: list[str], where: str) -> None:
    """Raise InputError unless all documents have tags of their own."""
    first: dict[str, int] = {}
    for number, tag in enumerate(tags):
        if not tag:
            raise InputError(f"{where}: document {number} has an empty tag; give each a tag of its own.")
        if first.setdefault(tag, number) != number:
            raise InputError(f"{where}: the tag `{shown(tag)}` stands twice, for the documents {first[tag]:,} and"
                             f" {number:,} (from 0); give each a tag of its own.")  # fmt: skip


def map_documents(directory: Path, names: Sequence[str], fingerprint: str) -> Documents:
    """Map documents. `names` are those of their sources as they are called now. Raises Damaged."""
    with mapping(directory) as (header, arrays):
        words = read_strings(arrays["words"], arrays["letters"])
        tags = read_strings(arrays["titles"], arrays["title_letters"])
        if len(words) != len(arrays["counts"]) or (tags and len(tags) != len(arrays["offsets"])):
            raise Damaged("its words or tags do not fit together")
        return Documents(
            Tokens(arrays["ids"]), words, arrays["counts"], int(header["total"]), header["schema"],
            tuple(header["notes"]), title_of(names, "documents"), fingerprint, arrays["offsets"], tags,
        )  # fmt: skip
