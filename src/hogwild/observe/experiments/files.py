"""Files of experiments: one JSON object each, written whole, read with care."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hogwild.errors import InputError
from hogwild.executor.readers.checkpoint import digest_of
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


def data_digest(samples: Any, *words: Sequence[str]) -> str:
    """What tells data from other data, whatever its file is called: a bundle of arrays, and lists of strings."""
    named = {str(k): np.frombuffer(json.dumps(list(each)).encode(), np.uint8) for k, each in enumerate(words)}
    return digest_of({**samples._asdict(), **named})[:16]
