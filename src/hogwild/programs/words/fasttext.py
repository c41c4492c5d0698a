"""fastText's models (`.bin`): words, rows of words and n-grams, and outputs; read and written as its own library does.

In order, little-endian: magic and version; the arguments of training; the dictionary (sizes, then each word with a NUL
behind it, its count and its kind); a matrix of inputs, rows of words first and of n-grams after them; one of outputs.
Nothing that a file announces is believed before its size says that it can be.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Floats
from hogwild.errors import InputError, SaveError
from hogwild.feeds.io.outfile import write_file
from hogwild.feeds.io.source import Source, open_sources
from hogwild.feeds.io.streams import read_fully
from hogwild.messages import shown
from hogwild.programs.words.subwords import Parts, Spelling

MAGIC = b"\xba\x16\x4f\x2f"
_VERSION = 12
_ARGUMENTS = struct.Struct("<12id")
_SIZES = struct.Struct("<3i2q")
_SHAPE = struct.Struct("<2q")
_MOST = 1 << 31  # rows and columns
_LONGEST = 1 << 20  # bytes of a word
_PIECE = 1 << 24  # bytes read at a time
_MODELS, _LOSSES = {"cbow": 1, "skip-gram": 2, "supervised": 3}, {"hs": 1, "ns": 2, "softmax": 3, "ova": 4}
_QUANTIZED = "a quantized model of fastText (.ftz), which holds no vectors; use the .bin that it was made of."
_DAMAGED = "the file is damaged or of another kind"


class Arguments(NamedTuple):
    """What fastText keeps of its options."""

    dim: int
    window: int
    epochs: int
    min_count: int
    negatives: int
    word_ngrams: int
    loss: int
    model: int
    buckets: int
    shortest: int
    longest: int
    rate_every: int
    sample: float


@dataclass(frozen=True)
class FastText:
    """A model of fastText. words: of the vocabulary; labels: of a supervised one, which follow its words."""

    arguments: Arguments
    words: tuple[str, ...]
    labels: tuple[str, ...]
    counts: npt.NDArray[np.int64]
    inputs: Floats
    outputs: Floats

    @property
    def supervised(self) -> bool:
        """Whether it tells labels of texts."""
        return self.arguments.model == _MODELS["supervised"]

    @property
    def spelling(self) -> Spelling:
        """Its n-grams of letters."""
        got = self.arguments
        return Spelling(got.shortest, got.longest, got.buckets) if got.longest > 0 else Spelling(0, 0, got.buckets)

    def parts(self) -> Parts | None:
        """What its words are made of; None where they are one whole."""
        if self.arguments.longest <= 0:
            return None
        got, words = self.arguments, len(self.words)
        training = {
            "window": min(100, max(1, got.window)), "negatives": min(100, max(1, got.negatives)),
            "cbow": got.model == _MODELS["cbow"], "loss": "hs" if got.loss == _LOSSES["hs"] else "ns",
            "subwords": f"{max(1, got.shortest)}:{got.longest}", "buckets": got.buckets,
            "sample": min(1.0, max(0.0, got.sample)),
        }  # fmt: skip
        if training["loss"] == "hs":
            training["negatives"] = 5
        outputs = None if self.supervised else self.outputs
        return Parts(self.spelling, self.inputs[:words], self.inputs[words:], outputs, training)


class _Reader:
    """The bytes of a file one after the other. left: those that there are still, or None if nobody knows."""

    def __init__(self, source: Source, stream: BinaryIO) -> None:
        self.name, self._stream, self.at = source.name, stream, 0
        self._size = source.path.stat().st_size if source.plain() else None
        self._kept = b""

    def fail(self, what: str) -> InputError:
        """An error that says where."""
        return InputError(f"{self.name}: {what} at byte {self.at:,}; {_DAMAGED}.")

    def take(self, count: int, what: str) -> bytes:
        """The next bytes."""
        if len(self._kept) < count:
            self._kept += read_fully(self._stream, count - len(self._kept))
        if len(self._kept) < count:
            raise InputError(
                f"{self.name}: ends at byte {self.at + len(self._kept):,} inside {what}; copy it again from where it "
                "was made."
            )
        taken, self._kept = self._kept[:count], self._kept[count:]
        self.at += count
        return taken

    def unpack(self, form: struct.Struct, what: str) -> tuple[Any, ...]:
        """The next numbers."""
        return form.unpack(self.take(form.size, what))

    def check_room(self, needed: int, what: str) -> None:
        """InputError if the file cannot have so many bytes more."""
        if self._size is not None and self.at + needed > self._size:
            raise InputError(
                f"{self.name}: announces {what}, at least {needed:,} bytes from byte {self.at:,} on, but has "
                f"{self._size:,}: it was cut short or is of another kind."
            )

    def entries(self, count: int) -> tuple[list[bytes], npt.NDArray[np.int64], npt.NDArray[np.int8]]:
        """Words of the dictionary with their counts and kinds."""
        self.check_room(10 * count, f"{count:,} words")
        words: list[bytes] = []
        rest: list[bytes] = []
        data, place = self._kept, 0
        while len(words) < count:
            end = data.find(b"\0", place)
            if end < 0 or end + 10 > len(data):
                if end < 0 and len(data) - place > _LONGEST:
                    raise self.fail(f"word number {len(words) + 1:,} has no end")
                new = read_fully(self._stream, _PIECE)
                if not new:
                    raise InputError(f"{self.name}: ends inside word number {len(words) + 1:,} of {count:,}; copy it "
                                     "again from where it was made.")  # fmt: skip
                self.at += place
                data, place = data[place:] + new, 0
                continue
            words.append(data[place:end])
            rest.append(data[end + 1 : end + 10])
            place = end + 10
        self.at += place
        self._kept = data[place:]
        joined = np.frombuffer(b"".join(rest), np.dtype([("count", "<i8"), ("kind", "i1")]))
        return words, joined["count"].astype(np.int64), joined["kind"]

    def matrix(self, rows: int, columns: int, what: str) -> Floats:
        """A matrix of this shape."""
        found = self.unpack(_SHAPE, what)
        if found != (rows, columns):
            raise self.fail(f"{what} announce {found[0]:,} rows of {found[1]:,} numbers, not {rows:,} of {columns:,},")
        self.check_room(4 * rows * columns, f"{rows:,} rows of {columns:,} numbers")
        parts: list[Floats] = []
        made = np.empty((rows, columns), np.float32) if self._size is not None else None
        done = 0
        step = max(1, _PIECE // (4 * columns))
        while done < rows:
            count = min(step, rows - done)
            part = np.frombuffer(self.take(4 * columns * count, what), "<f4").reshape(count, columns)
            if not np.isfinite(part).all():
                row = done + int(np.argmin(np.isfinite(part).all(axis=1)))
                raise InputError(f"{self.name}: row {row:,} of {what} has numbers that are not finite; {_DAMAGED}.")
            if made is None:
                parts.append(part)
            else:
                made[done : done + count] = part
            done += count
        if made is None:
            made = np.concatenate(parts) if parts else np.zeros((0, columns), np.float32)
        return made


def is_fasttext(head: bytes) -> bool:
    """Whether a file that begins so is a model of fastText."""
    return head.startswith(MAGIC)


def read_fasttext(path: str | Path) -> FastText:
    """A model of fastText, compressed or not. Raises InputError for whatever is wrong."""
    (source,) = open_sources(Path(path))
    with source.open() as stream:
        reader = _Reader(source, stream)
        if reader.take(4, "its first line") != MAGIC:
            raise InputError(f"{source.name}: is no model of fastText; {_DAMAGED}.")
        (version,) = reader.unpack(struct.Struct("<i"), "the version")
        if version not in (11, _VERSION):
            raise InputError(f"{source.name}: a model of fastText of version {version}; 11 and 12 can be read.")
        got = Arguments(*reader.unpack(_ARGUMENTS, "the arguments"))
        if version == 11 and got.model == _MODELS["supervised"]:
            got = got._replace(longest=0)  # as its library does
        size, words, labels, _, pruned = reader.unpack(_SIZES, "the sizes")
        _check(reader, got, (size, words, labels, pruned))
        spelt, counts, kinds = reader.entries(size)
        if (counts < 0).any() or kinds[:words].any() or (kinds[words:] != 1).any():
            raise reader.fail("words and labels do not stand in order")
        if reader.take(1, "a mark") != b"\0":
            raise InputError(f"{source.name}: {_QUANTIZED}")
        inputs = reader.matrix(words + got.buckets, got.dim, "rows of inputs")
        if reader.take(1, "a mark") != b"\0":
            raise InputError(f"{source.name}: {_QUANTIZED}")
        outputs = reader.matrix(labels if got.model == _MODELS["supervised"] else words, got.dim, "rows of outputs")
        if read_fully(stream, 1) or reader._kept:
            raise reader.fail("the file goes on")
    try:
        names = tuple(word.decode("utf-8") for word in spelt)
    except UnicodeDecodeError as error:
        odd = shown(error.object.decode("utf-8", "backslashreplace"))
        raise InputError(f"{source.name}: the word {odd} is not UTF-8; such words cannot be looked up.") from None
    return FastText(got, names[:words], names[words:], counts[:words], inputs, outputs)


def _check(reader: _Reader, got: Arguments, sizes: tuple[int, int, int, int]) -> None:
    size, words, labels, pruned = sizes
    if not 0 < got.dim < _MOST or not 0 <= got.buckets < _MOST or got.model not in _MODELS.values():
        raise reader.fail("its arguments cannot be")
    if got.longest > 0 and not (0 <= got.shortest <= got.longest <= 64 and got.buckets > 0):
        raise reader.fail(f"n-grams of {got.shortest} to {got.longest} letters in {got.buckets} buckets cannot be")
    if words < 1 or labels < 0 or size != words + labels:
        raise reader.fail(f"{size:,} entries, {words:,} words and {labels:,} labels do not fit together")
    if pruned >= 0:
        raise InputError(f"{reader.name}: a pruned model of fastText (.ftz); use the .bin that it was made of.")


def write_fasttext(
    name: str, words: Sequence[str], counts: npt.NDArray[np.int64] | None, parts: Parts
) -> None:
    """Write a model that fastText opens; beside, and renamed."""
    training: Mapping[str, Any] = {"window": 5, "negatives": 5, "cbow": False, "loss": "ns", "sample": 1e-4}
    training = {**training, **parts.training}
    spelling, (rows, dim) = parts.spelling, parts.inputs.shape
    got = Arguments(
        dim, training["window"], 5, 1, training["negatives"], 1, _LOSSES[training["loss"]],
        _MODELS["cbow" if training["cbow"] else "skip-gram"], spelling.buckets if spelling.longest else 0,
        spelling.shortest, spelling.longest, 100, training["sample"],
    )  # fmt: skip
    often = np.maximum(1, np.arange(rows, 0, -1) if counts is None else counts)
    spelt = [word.encode("utf-8", "surrogatepass") for word in words]
    if any(b"\0" in word for word in spelt):
        raise SaveError("a word has a NUL in it, which fastText takes for its end; it cannot be written.")
    # fastText makes a tree of its own, so that what our forks have learnt would be at the wrong ones.
    outputs = parts.outputs if parts.outputs is not None and training["loss"] == "ns" else np.zeros((rows, dim), "<f4")
    with write_file(name) as stream:
        stream.write(MAGIC + struct.pack("<i", _VERSION) + _ARGUMENTS.pack(*got))
        stream.write(_SIZES.pack(rows, rows, 0, int(often.sum()), -1))
        for first in range(0, rows, 1 << 14):
            block = zip(spelt[first : first + (1 << 14)], often[first : first + (1 << 14)].tolist(), strict=True)
            stream.write(b"".join(b"%b\0%b\0" % (word, struct.pack("<q", count)) for word, count in block))
        stream.write(b"\0")
        _write_matrix(stream, [parts.inputs, parts.grams], words)
        stream.write(b"\0")
        _write_matrix(stream, [outputs], words)


def _write_matrix(stream: Any, tables: Sequence[Floats], words: Sequence[str]) -> None:
    dim = tables[0].shape[1]
    stream.write(_SHAPE.pack(sum(len(table) for table in tables), dim))
    step = max(1, _PIECE // (4 * dim))
    for table in tables:
        for first in range(0, len(table), step):
            part = np.ascontiguousarray(table[first : first + step], "<f4")
            if not np.isfinite(part).all():
                raise SaveError("the vectors have numbers that are not finite; they cannot be written.")
            stream.write(part.data)
