"""Files of experiments: one JSON object each, written whole, read with care."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.errors import InputError
from hogwild.feeds.io.outfile import write_file

SCHEMAS = ("hogwild.asyngrad", "hogwild.hogwild", "hogwild.embeddings")
"""What experiments write."""
_LARGEST = 256_000_000  # bytes of a file: ten threads, ten seeds and a hundred iterations have a tenth of it


def read_object(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The object of an experiment's file.

    Raises
    ------
    InputError
        If it is none.
    """
    file = Path(path)
    try:
        if file.stat().st_size > _LARGEST:
            raise InputError(f"{file}: {file.stat().st_size:,} bytes, too many for an experiment's file.")
        whole = json.loads(file.read_bytes())
    except OSError as error:
        raise InputError(f"{file}: {error.strerror}; give a directory of --log-dir or an experiment's file.") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file}: no JSON object ({error}); give what `hogwild experiment` wrote.") from error
    if not isinstance(whole, dict) or whole.get("schema") not in SCHEMAS:
        raise InputError(f"{file}: not what `hogwild experiment` writes; its schema is not {' or '.join(SCHEMAS)}.")
    return whole


def write_object(path: str, whole: Mapping[str, Any]) -> None:
    """Write the object of an experiment, in the place of the one before. Raises SaveError."""
    with write_file(path) as stream:
        text = json.dumps(whole, ensure_ascii=False, allow_nan=False, indent=1)
        stream.write(text.encode("utf-8", "backslashreplace") + b"\n")  # names of files may not be UTF-8


def digest_of(arrays: Iterable[npt.NDArray[Any]], words: Iterable[Sequence[str]] = ()) -> str:
    """What tells data from other data, whatever its file is called: arrays, and lists of strings.

    >>> digest_of([np.arange(3)]) == digest_of([np.arange(4)]), len(digest_of([np.arange(3)], [("a", "b")]))
    (False, 16)
    """
    found = hashlib.sha256()
    for array in arrays:
        found.update(f"{array.dtype.str}{array.shape}".encode())
        found.update(np.ascontiguousarray(array).view(np.uint8).data)
    for listed in words:
        found.update(json.dumps(list(listed)).encode())
    return found.hexdigest()[:16]
