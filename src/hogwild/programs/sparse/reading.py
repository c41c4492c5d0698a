"""From what a user has (files, frames, arrays, texts) to a feed with the features of a model; feeds that do not fit."""

from __future__ import annotations

import glob
from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike, fspath, path
from typing import Any

import numpy as np

from hogwild.arrays import DenseRows, Ids
from hogwild.config import FeedConfig
from hogwild.errors import ConfigError, InputError, brief
from hogwild.feeds.memory import feed_of, filled
from hogwild.feeds.open import open_feed
from hogwild.feeds.slots.onerow import SlotRow
from hogwild.feeds.sparse.feed import Feed
from hogwild.feeds.sparse.fitting import misfit
from hogwild.feeds.sparse.onerow import MatrixRow, NumberedRow, OneRow, RowEncoder
from hogwild.programs.rows import RowProgram
from hogwild.programs.sparse.extending import extended_schema, row_names

_TABLE = "table"


class ReadingProgram(RowProgram):
    """A program over rows, that knows by which schema its data became features."""

    features: int
    order: Ids | None = None
    _row: RowEncoder | None = None  # what makes features of one row, by the schema `_row_of`
    _row_of: Mapping[str, Any] | None = None
    _fitting: Mapping[str, Any] | None = None  # the schema of the last feed that was found to fit

    def meet(self, feed: Any) -> None:
        """Before training: learn what the features of the first feed are; later ones must have the same."""
        if not isinstance(feed, Feed):
            raise ConfigError(
                f"{type(feed).__name__} is no feed; open a file with hogwild.open_feed(path), or make one of data in "
                "memory with hogwild.feed_of(X, y)."
            )
        if not feed.labelled:
            raise InputError(f"{feed.source}: there are no labels to learn; give feed_of(X, y) one a row.")
        if self.weights is None or self.schema is None:
            self.schema = self.schema_of(feed)
        else:
            self.check_fit(feed)
        self.means = self.means or _means_of(feed)
        if "features" in self.schema:
            self.schema = {**self.schema, "features": max(self.features, feed.features)}

    def schema_of(self, feed: Feed) -> dict[str, Any]:
        """What turns further data into the features that this feed has."""
        return dict(feed.schema)

    def check_fit(self, feed: Any) -> None:
        """Raise InputError unless the features of a feed are those of the model."""
        if not isinstance(feed, Feed):
            raise InputError(f"{type(feed).__name__} is no feed; open_feed and feed_of make one.")
        if self.schema is None or feed.schema is self._fitting:
            return
        why = misfit(feed, self.schema)
        if not why and isinstance(feed.samples, DenseRows) and feed.features != self.features:
            why = f"it has {feed.features} columns, and the model {self.features}"
        if why:
            remedy = "give open_feed or feed_of the schema of the model (program.schema)"
            raise InputError(f"{feed.source} does not fit the model: {why}; {remedy}.")
        self._fitting = feed.schema

    def feed_from(self, data: Any, like: Any = None) -> Any:
        """A feed, of (X, y) or the path of a file too; like: one whose features it must have."""
        if isinstance(data, Feed):
            return data
        known = like.schema if like is not None else self.schema if self.weights is not None else None
        if isinstance(data, tuple) and 2 <= len(data) <= 3:
            weight = data[2] if len(data) > 2 else None
            table = known if known and known.get("format") == _TABLE else None
            rows = filled(data[0], self.means or _means_of(like)) if known is not None else data[0]
            return feed_of(rows, data[1], weight, schema=table)
        paths = _paths_of(data)
        return open_feed(paths, self.feed_config, schema=known) if paths else data

    def joined(self, feed: Any, old: Any, reopen: Any = None) -> Any:
        """In the columns of the model, with its categories and those that are new."""
        if (old.schema or {}).get("interactions"):
            raise ConfigError("a model of crossed columns (--interactions) cannot go on with more data; train anew.")
        both = extended_schema(old.schema or {}, feed.schema)
        if not both or both == feed.schema:
            return feed
        if {**both, "names": ()} == {**feed.schema, "names": ()}:  # by which no id is another
            return replace(feed, schema=both)
        if reopen is not None:
            return reopen(replace(feed, schema=both))
        if why := misfit(feed, both):
            raise InputError(
                f"{feed.source} was not read like the data of the model to start from ({why}); give the file itself, "
                "or open it with schema=program.schema."
            )
        return replace(feed, schema=both)

    def feature_names(self) -> Sequence[int | str]:
        """By which other models know the features of this one."""
        return row_names(self.schema or {}, self.features)

    def read(self, data: Any, labels: bool = False) -> Feed:
        """Data as a feed with the features of this model.

        data: a feed; the path of a file, or several; a frame, records or rows of values, whose columns are those of
        training; texts; a matrix. labels: they are needed, not only taken where there are some.
        """
        if isinstance(data, Feed):
            if data.away:
                raise InputError(f"{data.source}: its rows are with the nodes that train on them; open the file here.")
            self.check_fit(data)
            feed = data
        elif paths := _paths_of(data):
            config = self.feed_config or FeedConfig()
            feed = open_feed(paths, replace(config, unlabelled=not labels), schema=self.schema)
        else:
            y = None
            if labels and isinstance(data, tuple) and len(data) == 2:
                data, y = data
            data = filled(data, self.means)
            free = not labels and self._table is not None and not hasattr(data, "tocsr")  # labels may be anything
            feed = feed_of(data, y, schema=self._table, config=FeedConfig(unlabelled=True) if free else None)
            self.check_fit(feed)
        if labels and not feed.labelled:
            raise InputError(f"{feed.source}: there are no labels to compare with; give (X, y), or a feed with labels.")
        return feed

    def one_row(self, row: Any, matrix: bool = False) -> OneRow:
        """The features of one row by the schema of the model. matrix: it has columns of numbers, and nothing else."""
        if self.order is not None:
            raise ConfigError("this model is being trained; predict_one answers when training has ended.")
        if self._row is None or self._row_of is not self.schema:
            if self._table is not None:
                from hogwild.feeds.tables.onerow import TableRow  # late: pyarrow is slow to import

                self._row = TableRow(self._table)
            elif self.schema and self.has_columns:
                self._row = SlotRow(self.schema)
            else:
                self._row = (MatrixRow if matrix else NumberedRow)(self.features, self.means)
            self._row_of = self.schema
        return self._row(row)

    def flat_row(self, row: Any) -> OneRow:
        """The same where dense columns are features, numbered after the others."""
        found = self.one_row(row)
        if not found.dense or not self.schema:
            return found
        return found.flat(getattr(self._row, "features", self.features), len(self.schema["slots"]))

    def are_ids(self, row: Any) -> bool:
        """Whether a row is given as numbers of features, not as values: of sparse data without names, and whole."""
        dense = self.has_columns or bool(self.means)
        return not dense and not isinstance(row, Mapping) and np.asarray(row).dtype.kind in "iu"

    @property
    def has_columns(self) -> bool:
        """Whether values of a row have names: of columns or of slots."""
        return bool(self.schema) and (self._table is not None or "slots" in (self.schema or ()))

    @property
    def _table(self) -> Mapping[str, Any] | None:
        """The schema, if it is that of columns."""
        return self.schema if self.schema and self.schema.get("format") == _TABLE else None


def _means_of(feed: Feed | None) -> list[float]:
    """Of the columns, where they have no names; else the schema knows them."""
    if feed is None or feed.schema or not isinstance(feed.samples, DenseRows):
        return []
    return [float(mean) for mean in feed.samples.matrix.mean(0, np.float64)]


def _paths_of(data: Any) -> list[str]:
    """The files that are meant; none if the data itself is given."""
    if isinstance(data, str | PathLike):
        name = fspath(data)
        if isinstance(data, str) and name != "-" and not path.exists(name) and not glob.glob(name):
            raise InputError(f"there is no file {brief(name)}; for one text or row there is predict_one, for several"
                             " predict takes a list.")  # fmt: skip
        return [str(name)]
    if isinstance(data, list | tuple) and data and all(isinstance(item, PathLike) for item in data):
        return [str(fspath(item)) for item in data]
    return []
