"""Arrow files that would end the process that reads them, or keep it for ever."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from fuzz import seedfiles
from fuzz.kept import KEPT
from fuzz.readers import arrow_files
from hogwild.config import FeedConfig
from hogwild.errors import InputError
from hogwild.feeds.io.source import Source
from hogwild.feeds.memory import feed_of
from hogwild.feeds.open import open_feed
from hogwild.feeds.tables import arrowcheck


def refusal(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        open_feed(path, FeedConfig(format="arrow"))
    return str(caught.value)


def stuck(directory: Path, monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """Let the child run this instead."""
    script = directory / "child"
    script.write_text(f"#!/bin/sh\n{code}\n")
    script.chmod(0o700)
    monkeypatch.setattr(arrowcheck.sys, "executable", str(script))


def pets(directory: Path) -> Path:
    path = directory / "pets.arrow"
    path.write_bytes(seedfiles.arrow_file(seedfiles.PETS))
    return path


def test_a_file_that_ends_its_reader_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stuck(tmp_path, monkeypatch, "echo 4; kill -SEGV $$")
    assert refusal(pets(tmp_path)).endswith(
        "this is no readable Arrow file (reading it ends a process with SIGSEGV); write it again, or check --format."
    )


def test_a_file_that_keeps_its_reader_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stuck(tmp_path, monkeypatch, f"echo $$ > {tmp_path}/pid; echo 4; exec sleep 600")
    source = Source("pets", pets(tmp_path), FeedConfig())
    start = time.monotonic()
    assert arrowcheck.why_unsound(source, patience=0.5) == "reading it makes no progress for 0.5 seconds"
    assert time.monotonic() - start < 60
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


@pytest.mark.parametrize("kept", KEPT["arrow"], ids=range(len(KEPT["arrow"])))
def test_files_that_ended_the_process_once(tmp_path: Path, kept: object) -> None:
    path = tmp_path / kept.name  # type: ignore[attr-defined]
    path.write_bytes(kept.content(arrow_files()))  # type: ignore[attr-defined]
    assert "this is no readable Arrow file (" in refusal(path)


def test_what_was_read_before_is_not_read_through_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = pets(tmp_path)
    lists = tmp_path / "lists.arrow"
    lists.write_bytes(seedfiles.arrow_file(seedfiles.ROWS))
    first = [len(open_feed(file)) for file in (path, lists)]
    stuck(tmp_path, monkeypatch, "exit 1")
    assert [len(open_feed(file)) for file in (path, lists)] == first == [4, 3]


def test_frames_of_our_own_need_no_child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pandas as pd

    stuck(tmp_path, monkeypatch, "exit 1")
    assert len(feed_of(pd.DataFrame({"town": ["Ulm", "Bonn"], "size": [1.0, 2.0]}))) == 2


def test_nothing_is_imported_from_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pyarrow.py").write_text("raise SystemExit(3)")
    (tmp_path / "hogwild").mkdir()
    (tmp_path / "hogwild" / "__init__.py").write_text("raise SystemExit(3)")
    monkeypatch.chdir(tmp_path)
    assert len(open_feed(pets(tmp_path), FeedConfig(cache=False))) == 4
