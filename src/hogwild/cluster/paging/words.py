"""Word vectors of which a node has the rows of one block of its text at a time, under numbers of their own."""

from __future__ import annotations

import mmap
from collections.abc import Mapping
from contextlib import suppress

import numpy as np

from hogwild.arrays import Floats, Table, aligned_floats
from hogwild.cluster.paging.blocks import Block, Need, draw_pool
from hogwild.cluster.text.textfeed import TextFeed
from hogwild.executor.delta import RowIds
from hogwild.feeds.corpus.feed import Corpus
from hogwild.kernels.word2vec.windows import FARTHEST, Embeddings, Text, chances_to_stay
from hogwild.programs.words.word2vec import Word2Vec

_LEFT_OUT = -1


class PooledWords(Word2Vec):
    """The program of a node, whose negatives are drawn from a pool that is drawn now and then."""

    def __init__(self, program: Word2Vec, pool: int) -> None:
        self.__dict__.update(vars(program))
        self._pool = pool

    def samples(self, feed: Corpus) -> Text:
        """The text, with a pool in the place of all words."""
        text: Text = super().samples(feed)
        self._noise = text.chance, text.alias
        self._text = text._replace(chance=np.zeros(self._pool, np.uint32), alias=np.zeros(self._pool, np.int32))
        return self._text

    def draw(self, seed: tuple[int, ...]) -> None:
        """Another pool. The workers stand still."""
        self._text.alias[:] = draw_pool(*self._noise, self._pool, seed)


class PagedWords(Word2Vec):
    """The program of a node. Compiled code sees a small vocabulary, whose words are other ones in each block.

    Parameters
    ----------
    program : what is trained, without weights.
    text : the node's part, as the fetcher writes it.
    every : visits of a block.
    pool : negatives that are drawn for a block, of which its visits draw theirs; 0: as many as they draw.
    """

    def __init__(self, program: Word2Vec, text: TextFeed, every: int, pool: int) -> None:
        super().__init__(**vars(program.config))
        self._ids, self._given_pool, self._every = text, pool, every
        self.rows: RowIds = np.zeros(0, np.int64)
        """The number that each row at hand has for all nodes, rising."""

    @property
    def pool(self) -> int:
        """Negatives that are drawn for a block."""
        each = self.task.shared or self._stretch * self.config.negatives
        return self._given_pool or self._every * each

    # -- for the executor -------------------------------------------------------------------------------------------

    def startup(self, feed: Corpus, seed: int) -> None:
        """Room for the rows of any block."""
        self.divide_text(feed)
        self._stay = chances_to_stay(feed.counts, self.config.sample)
        self._row_of = np.full(len(feed.counts) + 1, _LEFT_OUT, np.int32)  # its last is for ends of sentences: id -1
        most = min(len(feed.counts), self._every * self._stretch + 2 * self.seen + self.pool)
        self.weights = Embeddings(*(aligned_floats(most * self.cells).reshape(most, self.cells) for _ in range(2)))
        self._memory, ids = self._ids.overlay()
        # All chances are 0: what is drawn is always the alias, which is any of the pool.
        chance, alias = np.zeros(self.pool, np.uint32), np.zeros(self.pool, np.int32)
        self._text = Text(ids, np.zeros(most, np.uint32), chance, alias)

    @property
    def seen(self) -> int:
        """Words before and after a stretch that may be looked at from it."""
        return FARTHEST * self.config.window

    def samples(self, feed: Corpus) -> Text:
        """The text, in which only the words of one block have numbers of rows that are there."""
        return self._text

    def tables(self) -> Mapping[str, Table]:
        """As many rows as there is room for."""
        return self.tables_of(len(self.weights.inputs))

    def finish(self, feed: Corpus) -> None:
        """Nothing is put in order: all rows are with the parameter actors."""

    # -- blocks -----------------------------------------------------------------------------------------------------

    def block(self, epoch: int, number: int, visits: tuple[int, int]) -> Block:
        """A block of the visits between two."""
        first, last = (visit * self._stretch for visit in visits)
        return Block(epoch, number, max(0, first - self.seen), min(len(self._ids), last + self.seen))

    def turn_to(self, block: Block, need: Need, cells: Mapping[str, tuple[RowIds, Floats]]) -> None:
        """Make a block's words the words that there are. The workers stand still. cells: of rows of each table."""
        self.rows = rows = need.rows
        self._row_of[rows] = np.arange(len(rows), dtype=np.int32)
        text, ids = self._text, self._ids.ids[block.first : block.last]
        with suppress(AttributeError):  # memory of the last block goes back; where this is not known, at the end
            self._memory.madvise(mmap.MADV_DONTNEED)
        text.ids[block.first : block.last] = self._row_of[ids]  # id -1 finds the last cell, which is -1
        text.stay[: len(rows)] = self._stay[rows]
        text.alias[:] = self._row_of[need.negatives]
        self._row_of[rows] = _LEFT_OUT
        for name, (numbers, values) in cells.items():
            getattr(self.weights, name)[np.searchsorted(rows, numbers)] = values
