"""Arrow files as they are opened here, and the child that reads one through before it is used.

`python -m hogwild.feeds.tables.arrowchild PATH BYTES` reads every batch, checks all of it, and says a line for each.
BYTES are the memory that it may take. Little is imported here, as that is most of what the child costs.
"""

from __future__ import annotations

import contextlib
import os
import resource
import sys
from collections.abc import Iterator
from typing import Any

import pyarrow as pa


def open_arrow(path: str) -> tuple[Any, Iterator[Any]]:
    """The schema of a file or stream, and its batches."""
    file = pa.memory_map(os.fsencode(path))  # bytes: not every name is UTF-8
    try:
        reader = pa.ipc.open_file(file)
        return reader.schema, (reader.get_batch(k) for k in range(reader.num_record_batches))
    except pa.ArrowInvalid:
        file.seek(0)
        stream = pa.ipc.open_stream(file)
        return stream.schema, iter(stream)


def read_through(path: str) -> Iterator[int]:
    """Read and check every batch; yields the rows of each."""
    schema, batches = open_arrow(path)
    _ = schema.names, str(schema)  # which raises where a name is not UTF-8
    for batch in batches:
        batch.validate(full=True)
        yield batch.num_rows


def _main(path: str, limit: str) -> int:
    for kind, size in ((resource.RLIMIT_AS, int(limit)), (resource.RLIMIT_CORE, 0)):
        with contextlib.suppress(ValueError, OSError):  # not every system has every limit
            resource.setrlimit(kind, (size, size))
    pa.set_cpu_count(1)
    try:
        for rows in read_through(path):
            print(rows, flush=True)
    except Exception as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(_main(*sys.argv[1:]))
