"""Paragraph vectors: a vector for each of many texts, by DM or DBOW, and for texts that were never seen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.arrays import CELL, Floats, Offsets, Room, Table, aligned_floats, make_scratch
from hogwild.config import Doc2VecConfig, DocumentConfig, DocumentTrainConfig
from hogwild.config.arguments import config_of, taking
from hogwild.config.models import NearbyConfig
from hogwild.errors import ConfigError, InputError, ModelError, brief
from hogwild.feeds.corpus.documents import Documents, documents_of
from hogwild.feeds.io.parallel import in_parts
from hogwild.kernels.loop.task import total_loss
from hogwild.kernels.word2vec.documents import (
    Alternating,
    Dbow,
    DbowTree,
    Dm,
    DmTree,
    DocumentEmbeddings,
    DocumentText,
    infer_rows,
)
from hogwild.kernels.word2vec.tree import hang_words
from hogwild.kernels.word2vec.windows import alias_table, chances_to_stay
from hogwild.machine import check_memory, cores
from hogwild.programs.program import CompiledProgram, Metrics, RowIds
from hogwild.programs.row_ids import hash_names
from hogwild.programs.saving.tensors import no_others, required
from hogwild.programs.words.vectors import Vectors
from hogwild.programs.words.word2vec import Word2Vec, scatter

_TASKS = {(False, False): Dm, (False, True): DmTree, (True, False): Dbow, (True, True): DbowTree}  # DBOW, tree
_MOST_WORDS = 16  # of a visit: all their gradients of one document's row are taken at the same weights
_EVALUATION = 0x5EED  # held-out loss draws the same windows and negatives each time
_PIECE = 1024  # visits of which the held-out loss has random numbers of their own: pieces are for threads
_TRIED = 5  # epochs of inference where the loss is measured
_LEFT = 0.17  # of the rate at the end of inference, as of training


class Halves(NamedTuple):
    """Documents cut in two: by the words of the first half vectors are found, by those of the second judged."""

    first: Documents
    second: Documents


@taking(Doc2VecConfig)
class Doc2Vec(CompiledProgram):
    """Vectors of texts.

    Parameters
    ----------
    tags : what the documents are called; those of the feed by default. A number stands for so many without tags.
    vocabulary : the words that it is to have; those of the feed by default.

    Examples
    --------
    >>> texts = [("tea", "a cup of tea"), ("sea", "a ship at sea"), ("tea 2", "tea in a cup")]
    >>> program, documents = Doc2Vec(dim=8, dbow=True), documents_of(texts, DocumentConfig(min_count=1))
    >>> program = hogwild.train(program, documents, quiet=True)                         # doctest: +SKIP
    >>> program.documents.most_similar("tea", topn=1), program.infer("a cup")           # doctest: +SKIP
    """

    name = "doc2vec"
    unit = "words"
    tells_units = True
    sharing = "all"
    training = DocumentTrainConfig
    epochs = 10

    def __init__(
        self, *values: Any, tags: Sequence[str] | int = (), vocabulary: Sequence[str] = (), **options: Any
    ) -> None:
        self.config = config = config_of(self, Doc2VecConfig, values, options)
        shared = {item.name: getattr(config, item.name) for item in fields(NearbyConfig)}
        self.tags: tuple[str, ...] = () if isinstance(tags, int) else tuple(tags)
        self.size = tags if isinstance(tags, int) else len(self.tags)
        self.vocabulary = tuple(vocabulary)
        self.counts: npt.NDArray[np.int64] = np.zeros(0, np.int64)
        self._near = Word2Vec(**shared, cbow=True, cbow_by=config.dm_by)
        self._words = Word2Vec(**shared)
        self._stretch, self._scale = _MOST_WORDS, 1.0

    @property
    def rate(self) -> float:
        """Learning rate where the user gives none: that of a mean, or of single rows."""
        return self._words.rate if self.config.dbow else self._near.rate

    @property
    def has_words(self) -> bool:
        """Whether it learns vectors of words too."""
        return not self.config.dbow or self.config.words

    # -- for the executor -------------------------------------------------------------------------------------------

    @property
    def task(self) -> Any:
        """DM or DBOW; with words, DBOW and skip-gram in turns."""
        if not self.config.words:
            return self._document_task
        return Alternating(self._words.task._replace(scale=self._scale), self._document_task, self._each)

    @property
    def _document_task(self) -> Any:
        config = self.config
        task = _TASKS[config.dbow, config.loss == "hs"](*self._near.task)
        task = task._replace(stretch=self._stretch, scale=self._scale)
        return task._replace(window=0, fixed=True) if config.dbow else task

    @property
    def _each(self) -> int:
        """Visits of documents to one of words, on the same text."""
        return -(-self._words.task.stretch // self._stretch)

    def feed_from(self, data: Any, like: Any = None) -> Any:
        """Documents; or texts, or pairs of tags and texts, of which they are made."""
        if isinstance(data, list):
            return documents_of(data, vocabulary=like.words if like is not None else None)
        return data

    def startup(self, feed: Documents, seed: int) -> None:
        """Rows for the words and the documents of the feed; what was trained on these before goes on."""
        if not isinstance(feed, Documents):
            raise ConfigError(
                f"{type(feed).__name__} is no feed of documents; use hogwild.open_documents or hogwild.documents_of."
            )
        feed.check().check_trainable()
        if self.weights is None:
            self.vocabulary, self.tags, self.size, self.counts = feed.words, feed.tags, feed.parts, feed.counts.copy()
            self.weights = self._made(seed)
            self.weights.documents[feed.sizes == 0] = 0
        elif (self.vocabulary, self.tags, self.size) != (feed.words, feed.tags, feed.parts):
            raise ConfigError("it was trained on other documents; infer vectors of new ones, or train a new program.")
        for model in (self._near, self._words):
            model.divide_text(feed)
        self._stretch = min(_MOST_WORDS, self._near.task.stretch)
        self._scale = self.visits(feed) / max(1, len(feed))

    def samples(self, feed: Documents) -> DocumentText:
        """The texts, with what is drawn from them, and the tree that words hang in."""
        config = self.config
        chance, alias = alias_table(self.counts, config.negative_exponent)
        none = np.zeros(0, np.int64)
        forks, nodes, signs = hang_words(self.counts) if config.loss == "hs" else (none, none, none.astype(np.float32))
        stay = chances_to_stay(self.counts, config.sample)
        return DocumentText(
            feed.samples.ids, stay, chance, alias, forks, nodes * self._near.cells, signs, feed.ends
        )  # fmt: skip

    @property
    def judged_by(self) -> tuple[str, ...]:
        """Text has nothing else to be measured by."""
        return ("loss",)

    def visits(self, feed: Documents) -> int:
        """Stretches of text; with words, those of both kinds."""
        ids = len(feed.samples.ids)
        return (self._each + 1) * -(-ids // self._words.task.stretch) if self.config.words else -(-ids // self._stretch)

    def units(self, feed: Documents) -> int:
        """Words of the texts, those that are not in the vocabulary included."""
        return feed.total

    def room(self, feed: Documents) -> Room:
        """For a stretch, its neighbours, its negatives and its documents."""
        return self._room_for(self._document_task)

    def _room_for(self, task: Any) -> Room:
        rooms = [self._near.room_for(task), *([self._words.room_for(self._words.task)] if self.config.words else [])]
        most = Room(*(max(sizes) for sizes in zip(*rooms, strict=True)))
        return most._replace(rows=most.rows + task.stretch)

    def tables(self) -> Mapping[str, Table]:
        """The rows of frequent words come first; those of documents as they stand."""
        near, words = self._near, len(self.vocabulary)
        each = {"inputs": words if self.has_words else 0, "outputs": words, "documents": self.size}
        additive = near.tables_of(words)["outputs"].additive
        return {name: Table(rows, near.cells, "ranked", additive) for name, rows in each.items()}

    def row_ids(self, table: str) -> RowIds:
        """Hashes of the words and of the tags; of forks, their numbers."""
        if table == "documents":
            return hash_names(self.names(), "tags")
        if table == "outputs" and self.config.loss == "hs":
            return np.arange(len(self.vocabulary), dtype=np.int64)
        return hash_names(self.vocabulary if self.tables()[table].rows else (), "words")

    def watchable(self) -> Mapping[str, Any]:
        """The vectors, without the zeros that fill their rows."""
        return {name: partial(self._unpadded, name) for name in ("inputs", "outputs", "documents")}

    def names(self) -> tuple[str, ...]:
        """The tags of all documents, numbers where they have no others."""
        return self.tags or tuple(map(str, range(self.size)))

    def _made(self, seed: int) -> DocumentEmbeddings:
        """Rows as those of word vectors begin: inputs and documents at random, outputs zero."""
        cells, random = self._near.cells, np.random.default_rng(np.random.SeedSequence((seed, 104729)))
        self.check_memory(len(self.vocabulary), self.size)
        tables = {name: aligned_floats(table.rows * cells).reshape(table.rows, cells)
                  for name, table in self.tables().items()}  # fmt: skip
        for name in ("inputs", "documents"):
            scatter(tables[name], self.config.dim, random)
        return DocumentEmbeddings(**tables)

    def check_memory(self, words: int, documents: int) -> int:
        """The bytes of the weights of so many words and documents; ConfigError if this machine has not so many."""
        needed = CELL * ((1 + self.has_words) * words + documents) * self._near.cells
        what = f"{words:,} words and {documents:,} documents of {self.config.dim} numbers need"
        check_memory(needed, what, "raise --min-count, or lower --max-vocab or --dim.")
        return needed

    # -- vectors ----------------------------------------------------------------------------------------------------

    def _unpadded(self, table: str) -> Floats:
        if self.weights is None:
            raise ConfigError("this program has no vectors yet; train it, or load one.")
        found: Floats = getattr(self.weights, table)[:, : self.config.dim]
        return found

    @property
    def documents(self) -> Vectors:
        """What was learnt of documents: a view of the weights, by their tags."""
        return Vectors(self.names(), self._unpadded("documents"), kind="documents")

    @property
    def vectors(self) -> Vectors:
        """What was learnt of words: a view of the weights. ConfigError where DBOW learnt none."""
        if not self.has_words:
            raise ConfigError("DBOW without words learns no word vectors; make it with words, or ask for documents.")
        return Vectors(self.vocabulary, self._unpadded("inputs"), self.counts)

    def described(self) -> str:
        """Documents and words."""
        return f"{self.size:,} documents, {len(self.vocabulary):,} words" if self.weights is not None else "not trained"

    # -- inference --------------------------------------------------------------------------------------------------

    def infer(self, text: str | Sequence[str], epochs: int = 0, seed: int = 1, lr: float | None = None) -> Floats:
        """The vector of a text, which may be a new one: learnt from its words, which themselves stay as they are.

        The same text and seed give the same vector, bit for bit. epochs: 0 for as many as training has by default; lr:
        the first learning rate, that of training by default.

        Raises InputError for a text without a word of the vocabulary: there is nothing to go by.
        """
        found, known = self.infer_all([text if isinstance(text, str) else list(text)], epochs, seed, lr)
        if not known[0]:
            raise InputError(f"the text {brief(text)} has no word of the vocabulary; there is nothing to go by.")
        vector: Floats = found[0]
        return vector

    def infer_all(
        self, texts: Documents | Iterable[Any], epochs: int = 0, seed: int = 1, lr: float | None = None,
        threads: int = 0,
    ) -> tuple[Floats, npt.NDArray[np.bool_]]:  # fmt: skip
        """The vectors of many texts, a row each, and whether each has a known word; zeros where it has none.

        Each has the vector that `infer` gives for it alone. texts: as `documents_of` takes them, or documents that were
        opened with the vocabulary of this program. threads: 0 for one a core.
        """
        feed = texts if isinstance(texts, Documents) else self._documents_of(texts)
        self._check_fit(feed)
        if epochs < 0 or (lr is not None and not lr > 0):
            raise ConfigError(f"epochs is {epochs} and lr is {lr}; they must be positive. Try 10, and leave lr out.")
        found = self._infer(feed, epochs or self.epochs, seed, lr or self.rate, threads or cores())
        return np.ascontiguousarray(found[:, : self.config.dim]), feed.sizes > 0

    def _documents_of(self, texts: Iterable[Any]) -> Documents:
        """Documents in the words of this program; texts that have none of them are such too."""
        lowercase = bool((self.schema or {}).get("lowercase", False))
        config, listed = DocumentConfig(lowercase=lowercase, min_count=1), list(texts)
        if not listed:
            raise InputError("there are no texts; give at least one.")
        return documents_of(listed, config, vocabulary=self.vocabulary)

    def _check_fit(self, feed: Documents) -> None:
        self._unpadded("outputs")
        if feed.words != self.vocabulary:
            raise ConfigError(
                "these documents have another vocabulary; use open_documents(..., vocabulary=program.vocabulary)."
            )

    def _infer(self, feed: Documents, epochs: int, seed: int, rate: float, threads: int) -> Floats:
        cells, dim = self._near.cells, self.config.dim
        begin = aligned_floats(cells).reshape(1, cells)
        scatter(begin, dim, np.random.default_rng(np.random.SeedSequence((seed, 15485863))))
        rows = aligned_floats(feed.parts * cells).reshape(feed.parts, cells)
        rows[:] = begin
        rows[feed.sizes == 0] = 0
        task = self._inference_task(feed)
        text, room = self.samples(feed), self._room_for(task)
        rates = (rate * np.linspace(1, _LEFT, epochs)).astype(np.float32)
        starts = np.concatenate([[0], feed.ends])

        def learn(first: int, last: int) -> None:
            if first < last:
                scratch = make_scratch(room, np.uint64(seed))
                base = int(starts[first])
                part = text._replace(ids=text.ids[base : int(starts[last])], ends=text.ends[first:last] - base)
                weights = self.weights._replace(documents=rows[first:last])
                infer_rows(task, part, weights, scratch, rates, np.uint64(seed))

        in_parts(feed.parts, min(threads, max(1, feed.parts)), learn)
        return rows

    def _inference_task(self, feed: Documents) -> Any:
        """Stretches as long as in training, whatever the texts are."""
        depth = int(np.diff(hang_words(self.counts)[0]).max()) if self.config.loss == "hs" else 0
        return self._document_task._replace(stretch=_MOST_WORDS, scale=1.0, depth=depth)

    def evaluate(self, feed: Documents, threads: int = 1) -> Metrics:
        """How well documents tell their own words: vectors are inferred from the first half of each, and the loss a
        word is that of the second half, which they have not seen. So documents of training count as new ones."""
        self._check_fit(feed)
        halves = halved(feed)
        weights = self.weights._replace(documents=self._infer(halves.first, _TRIED, _EVALUATION, self.rate, threads))
        task = self._inference_task(halves.second)
        text, room = self.samples(halves.second), self._room_for(task)
        visits = -(-len(text.ids) // task.stretch)
        sums = np.zeros(-(-visits // _PIECE))

        def add(first: int, last: int) -> None:
            for piece in range(first, last):
                scratch, start = make_scratch(room, np.uint64(_EVALUATION + piece)), piece * _PIECE
                sums[piece] = total_loss(task, text, weights, scratch, start, min(start + _PIECE, visits))

        in_parts(len(sums), threads, add)
        return {"loss": float(sums.sum()) / max(1, len(halves.second))}

    # -- saving -----------------------------------------------------------------------------------------------------

    def options(self) -> dict[str, Any]:
        """Its parameters, its words and its tags, or how many documents there are."""
        tags: Any = list(self.tags) if self.tags else self.size
        return {**vars(self.config), "tags": tags, "vocabulary": list(self.vocabulary)}

    def recall(self, options: Mapping[str, Any]) -> None:
        """Words and tags of the program that was saved."""
        tags = options.get("tags", ())
        self.tags, self.size = ((), tags) if isinstance(tags, int) else (tuple(tags), len(tags))
        self.vocabulary = tuple(options.get("vocabulary", ()))

    def arrays(self, state: bool = False) -> dict[str, npt.NDArray[Any]]:
        """Vectors of documents and, if there are some, of words, without the zeros that fill rows; outputs, counts."""
        arrays: dict[str, npt.NDArray[Any]] = {"documents": np.ascontiguousarray(self._unpadded("documents"))}
        if self.has_words:
            arrays["vectors"] = np.ascontiguousarray(self._unpadded("inputs"))
        return {**arrays, "outputs": np.ascontiguousarray(self._unpadded("outputs")), "counts": self.counts}

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take over vectors for the words and documents that it was made with."""
        words, dim = len(self.vocabulary), self.config.dim
        if not all(isinstance(name, str) for name in (*self.vocabulary, *self.tags)) or self.size < 0:
            raise ModelError("the options of the model do not say its words and documents.")
        shapes = {"documents": (self.size, dim), "outputs": (words, dim)} | (
            {"vectors": (words, dim)} if self.has_words else {}
        )
        found = {name: required(arrays, name, shape) for name, shape in shapes.items()}
        counts = required(arrays, "counts", (words,), np.int64)
        no_others(arrays, (*shapes, "counts"), "a model of documents")
        if (counts < 0).any():
            raise ModelError("array counts counts less than nothing.")
        self.counts = np.array(counts)
        self.weights = self._made(seed=0)
        for name, array in found.items():
            getattr(self.weights, {"vectors": "inputs"}.get(name, name))[:, :dim] = array


def halved(feed: Documents) -> Halves:
    """Each document cut after half of its words.

    >>> feed = documents_of(["to be or not", "be"], DocumentConfig(min_count=1))
    >>> [half.samples.ids.tolist() for half in halved(feed)], feed.words
    ([[3, 0, -1, -1], [2, 1, -1, 0, -1]], ('be', 'not', 'or', 'to'))
    """
    ids, sizes = feed.samples.ids, feed.sizes
    owners = np.repeat(np.arange(feed.parts), sizes + 1)
    places = np.arange(len(ids)) - (feed.ends - sizes - 1)[owners]
    early, cut = places < (sizes // 2)[owners], ids < 0
    return Halves(_of(feed, ids[early | cut], sizes // 2), _of(feed, ids[~early | cut], sizes - sizes // 2))


def _of(feed: Documents, ids: Any, sizes: Offsets) -> Documents:
    counts = np.bincount(ids[ids >= 0], minlength=len(feed.words)).astype(np.int64)
    return Documents(
        type(feed.samples)(ids), feed.words, counts, int(counts.sum()), feed.schema, ends=np.cumsum(sizes + 1),
        tags=feed.tags,
    )  # fmt: skip
