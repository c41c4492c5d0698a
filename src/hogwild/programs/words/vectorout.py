"""Word vectors to a file, in the text or the binary format of word2vec.

A word must hold no blank and no end of line there. Where one does, an underscore stands for each such character; where
that makes it equal to another word, more underscores follow, so that no word is lost.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np

from hogwild.arrays import Floats
from hogwild.errors import SaveError
from hogwild.feeds.io.outfile import write_file
from hogwild.feeds.io.parallel import in_order
from hogwild.feeds.sparse.labels import shown
from hogwild.kernels.parse.vectors import room_for_lines, write_lines
from hogwild.programs.words.files import Format

# Blanks of ASCII, whatever some reader takes for the end of a line, and halves of characters, which UTF-8 cannot hold.
_UNFIT = re.compile("[\x00\t-\r\x1c-\x20\x85\u2028\u2029\ud800-\udfff]")
_BLOCK = 1 << 18  # numbers written at a time


def write_vectors(name: str, words: Sequence[str], matrix: Floats, file_format: Format) -> int:
    """Write the file beside and rename it; returns how many words had to be changed."""
    fitting, changed = fitting_words(words)
    rows, dim = matrix.shape
    step = max(1, _BLOCK // dim)
    encode = _lines if file_format == "text" else _records
    blocks = (slice(start, min(start + step, rows)) for start in range(0, rows, step))

    def encoded() -> Iterator[bytes | memoryview]:
        yield f"{rows} {dim}\n".encode()
        for _, data in in_order(lambda block: encode(fitting[block], _finite(fitting, matrix, block)), blocks):
            yield data

    with write_file(name) as stream:
        for data in encoded():
            stream.write(data)
    return changed


def fitting_words(words: Sequence[str]) -> tuple[list[str], int]:
    """The words as they are written, all different, and how many of them were changed.

    >>> fitting_words(["new york", "new_york", "tea"])
    (['new_york_', 'new_york', 'tea'], 1)
    """
    fitting = list(words)
    unfit = [row for row, word in enumerate(fitting) if not word or _UNFIT.search(word)]
    if unfit:
        taken = set(fitting)
        for row in unfit:
            word = _UNFIT.sub("_", fitting[row]) or "_"
            while word in taken:
                word += "_"
            taken.add(word)
            fitting[row] = word
    return fitting, len(unfit)


def _finite(words: Sequence[str], matrix: Floats, block: slice) -> Floats:
    rows = np.ascontiguousarray(matrix[block])
    good = np.isfinite(rows).all(axis=1)
    if not good.all():
        word = shown(words[block.start + int(np.argmin(good))])
        raise SaveError(f"the vector of `{word}` has numbers that are not finite; it cannot be written.")
    return rows


def _lines(words: Sequence[str], rows: Floats) -> memoryview:
    text = np.frombuffer("".join(word + "\n" for word in words).encode(), np.uint8)
    out = room_for_lines(len(rows), rows.shape[1], len(text))
    return out[: write_lines(rows, text, out)].data


def _records(words: Sequence[str], rows: Floats) -> bytes:
    # As the original tool writes them, with a newline behind each.
    numbers = rows.astype("<f4", copy=False)
    return b"".join(b"%b %b\n" % (word.encode(), row.tobytes()) for word, row in zip(words, numbers, strict=True))
