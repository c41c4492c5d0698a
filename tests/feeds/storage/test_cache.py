"""The cache: encoded once, found again, never trusted blindly, safe when two runs make the same entry."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hogwild.arrays import BinaryRows, Rows
from hogwild.config import FeedConfig
from hogwild.errors import ConfigError, HogwildError, HogwildWarning, InputError, SaveError
from hogwild.feeds.corpus.open import open_corpus
from hogwild.feeds.io import workspace
from hogwild.feeds.io.source import Source, open_sources
from hogwild.feeds.open import open_feed
from hogwild.feeds.sparse import store
from hogwild.feeds.sparse.encoder import Chunk, Summary
from hogwild.feeds.sparse.feed import Feed
from hogwild.feeds.sparse.svmlight import SvmlightEncoder
from hogwild.feeds.storage import arrayfiles, cache
from system import mounted

TEXT = "1 1:0.5 3:2\n# c\n0 3:1 7:1\n1 3:4\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "a.svm"
    file.write_text(TEXT)
    return file


def features_of(feed: Feed) -> list[dict[int, float]]:
    """Rows by the features' own ids."""
    samples = feed.samples
    assert isinstance(samples, (Rows, BinaryRows))
    assert feed.original is not None
    values = samples.values if isinstance(samples, Rows) else np.ones(len(samples.ids))
    rows = []
    for start, end in zip(samples.offsets[:-1], samples.offsets[1:], strict=True):
        names = feed.original[samples.ids[start:end]].tolist()
        rows.append(dict(zip(names, values[start:end].tolist(), strict=True)))
    return rows


def entries_made(home: Path) -> list[str]:
    return sorted(p.name for p in (home / "feeds").iterdir())


def count_encodings(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    calls: list[int] = []
    chunks = SvmlightEncoder.chunks

    def counted(self: SvmlightEncoder, sources: Sequence[Source]) -> Iterator[Chunk]:
        calls.append(len(sources))
        return chunks(self, sources)

    monkeypatch.setattr(SvmlightEncoder, "chunks", counted)
    return calls


def test_a_feed_has_ranked_ids_and_places(path: Path) -> None:
    feed = open_feed(path).check()
    assert features_of(feed) == [{0: 0.5, 2: 2.0}, {2: 1.0, 6: 1.0}, {2: 4.0}]
    assert feed.original is not None
    assert feed.original.tolist() == [2, 0, 6, 1, 3, 4, 5]
    assert feed.samples.targets.tolist() == [1, 0, 1]
    assert feed.samples.importance.tolist() == [1, 1, 1]
    assert (len(feed), feed.nonzeros, feed.features, feed.longest) == (3, 5, 7, 2)
    assert [feed.place(row) for row in range(3)] == [f"{path}:1", f"{path}:3", f"{path}:4"]
    assert feed.labels == ()
    assert feed.fingerprint


def test_the_second_time_nothing_is_encoded(path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = count_encodings(monkeypatch)
    first = open_feed(path)
    second = open_feed(path)
    assert calls == [1]
    assert features_of(first) == features_of(second)
    assert first.notes == second.notes
    assert first.schema == second.schema
    assert entries_made(home) == [first.fingerprint]


def test_other_names_same_content(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = count_encodings(monkeypatch)
    open_feed(path)
    other = tmp_path / "b.svm"
    other.write_text(TEXT)
    assert open_feed(other).place(1) == f"{other}:3"
    assert calls == [1]


def test_what_matters_makes_another_entry(path: Path) -> None:
    keys = {
        open_feed(path, config, schema).fingerprint
        for config, schema in [
            (FeedConfig(), None),
            (FeedConfig(features=9), None),
            (FeedConfig(zero_based="yes"), None),
            (FeedConfig(pipe="cat"), None),
            (FeedConfig(), {"format": "svmlight", "zero_based": False, "features": 4}),
            (FeedConfig(format="svmlight", ngrams=7), None),  # the same as the first
        ]
    }
    assert len(keys) == 5


def test_a_changed_file_is_encoded_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = count_encodings(monkeypatch)
    open_feed(path)
    path.write_text(TEXT.replace("0.5", "9.5"))
    assert features_of(open_feed(path))[0] == {0: 9.5, 2: 2.0}
    assert calls == [1, 1]


def test_a_file_that_changes_while_it_is_read(path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chunks = SvmlightEncoder.chunks

    def meddle(self: SvmlightEncoder, sources: Sequence[Source]) -> Iterator[Chunk]:
        for chunk in chunks(self, sources):
            path.write_text("0 1:1\n")
            yield chunk

    monkeypatch.setattr(SvmlightEncoder, "chunks", meddle)
    with pytest.raises(InputError, match=r"a\.svm changed while it was read; start again"):
        open_feed(path)
    assert entries_made(home) == []


@pytest.mark.parametrize("damage", ["cut", "gone", "header", "version", "fields", "grown", "nonsense", "id", "value"])
def test_a_damaged_entry_is_made_again(path: Path, home: Path, monkeypatch: pytest.MonkeyPatch, damage: str) -> None:
    calls = count_encodings(monkeypatch)
    entry = home / "feeds" / open_feed(path).fingerprint
    header = json.loads((entry / "feed.json").read_text())
    if damage == "cut":
        os.truncate(entry / "ids", 8)
    elif damage == "gone":
        (entry / "targets").unlink()
    elif damage == "header":
        (entry / "feed.json").write_text("{")
    elif damage == "version":
        (entry / "feed.json").write_text(json.dumps(header | {"version": 0}))
    elif damage == "fields":
        (entry / "feed.json").write_text(json.dumps(header | {"features": 99}))
    elif damage == "grown":
        (entry / "values").write_bytes(bytes(100))
    elif damage == "id":
        (entry / "ids").write_bytes(np.array([0, 1, 2, 7, 0], np.int32).tobytes())  # features are 0 to 6
    elif damage == "value":
        (entry / "values").write_bytes(np.full(5, np.nan, np.float32).tobytes())
    else:
        (entry / "offsets").write_bytes(bytes(4 * 8))
    assert features_of(open_feed(path)) == [{0: 0.5, 2: 2.0}, {2: 1.0, 6: 1.0}, {2: 4.0}]
    assert calls == [1, 1]
    assert entries_made(home) == [entry.name]
    open_feed(path)
    assert calls == [1, 1]


def test_what_is_not_ours_in_the_place_of_an_entry_stays(path: Path, home: Path, tmp_path: Path) -> None:
    entry = home / "feeds" / open_feed(path).fingerprint
    other = tmp_path / "other"
    shutil.copytree(entry, other)
    for put in (
        lambda: entry.write_text("junk"),
        lambda: entry.mkdir() or (entry / "feed.json").write_text("mine"),
        lambda: entry.symlink_to(other),
    ):
        cache.clear()
        put()
        feed = open_feed(path)
        assert len(feed) == 3
        assert "cannot be replaced, so the encoded data is not kept" in feed.notes[-1]
        assert cache.entries() == []
        assert os.path.lexists(entry)
        (shutil.rmtree if entry.is_dir() and not entry.is_symlink() else os.unlink)(entry)
    assert (other / "ids").exists()


def test_writing_to_the_arrays_does_not_reach_the_disk(path: Path) -> None:
    feed = open_feed(path)
    feed.samples.targets[:] = 5
    assert open_feed(path).samples.targets.tolist() == [1, 0, 1]


def test_values_of_one_are_not_stored(tmp_path: Path) -> None:
    binary = tmp_path / "binary.svm"
    binary.write_text("1 1:1 2:1\n0 1:1\n")
    feed = open_feed(binary).check()
    assert isinstance(feed.samples, BinaryRows)
    assert features_of(feed) == [{0: 1.0, 1: 1.0}, {0: 1.0}]


class Fixed:
    """An encoder that yields what it is given."""

    def __init__(self, chunks: list[Chunk], summary: Summary) -> None:
        self._chunks, self._summary = chunks, summary

    def chunks(self, sources: Sequence[Source]) -> Iterator[Chunk]:
        yield from self._chunks

    def summary(self) -> Summary:
        return self._summary


def chunk(rows: list[list[int]], values: list[float], targets: list[float]) -> Chunk:
    return Chunk(
        np.array([len(row) for row in rows], np.int64),
        np.array([ident for row in rows for ident in row], np.int32),
        np.array(values, np.float32),
        np.array(targets, np.float32),
        np.arange(1, len(rows) + 1),
    )


def test_values_that_begin_late_and_stop_again(path: Path) -> None:
    parts = [chunk([[1], [2, 3]], [], [0, 0]), chunk([[1, 2]], [5, 6], [0]), chunk([[3]], [], [0])]
    feed = store.make_feed(Fixed(parts, Summary(4)), open_sources(path), "k")
    assert features_of(feed) == [{1: 1.0}, {2: 1.0, 3: 1.0}, {1: 5.0, 2: 6.0}, {3: 1.0}]


def test_targets_and_values_that_are_final_only_at_the_end(path: Path) -> None:
    parts = [chunk([[1, 2], [5]], [], [0, 1]), chunk([[2]], [], [2])]
    summary = Summary(6, ("a", "b", "c"), first_id=1, relabel=(2, 0, 1), scales=(0.5, 4.0))
    feed = store.make_feed(Fixed(parts, summary), open_sources(path), "k")
    assert feed.samples.targets.tolist() == [2, 0, 1]
    assert features_of(feed) == [{0: 0.5, 1: 4.0}, {4: 1.0}, {1: 4.0}]


def test_rows_without_entries_and_no_rows_at_all(tmp_path: Path, home: Path) -> None:
    file = tmp_path / "a.svm"
    file.write_text("1\n0\n")
    feed = open_feed(file).check()
    assert features_of(feed) == [{}, {}]
    for nothing in ("", "# only a comment\n\n"):
        file.write_text(nothing)
        with pytest.raises(InputError, match=r"a\.svm: no rows; is the file empty"):
            open_feed(file)
    assert len(entries_made(home)) == 1


def test_without_the_cache_nothing_stays(path: Path, home: Path) -> None:
    feed = open_feed(path, FeedConfig(cache=False))
    assert entries_made(home) == []
    assert features_of(feed) == [{0: 0.5, 2: 2.0}, {2: 1.0, 6: 1.0}, {2: 4.0}]


def test_a_cache_that_cannot_be_written_is_done_without(path: Path, home: Path, tmp_path: Path) -> None:
    home.write_text("a file where the cache should be")
    with pytest.warns(HogwildWarning, match="cache-home is not a directory, so that the cache is not used"):
        feed = open_feed(path)
    assert len(feed) == 3
    assert home.read_text() == "a file where the cache should be"


def test_a_full_disk(path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: Any, **kwargs: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(arrayfiles.os, "fsync", full)
    with pytest.raises(SaveError, match=r"cannot be written: No space left on device; free space \(`hogwild cache"):
        open_feed(path)
    assert entries_made(home) == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_disk_that_fills_while_chunks_are_written(path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrayfiles, "open", lambda name, *rest, **more: open("/dev/full", "wb", 0), raising=False)  # noqa: SIM115
    with pytest.raises(SaveError, match="No space left on device"):
        open_feed(path)
    assert entries_made(home) == []


def test_an_entry_that_cannot_be_mapped_now_stays(path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = open_feed(path).fingerprint

    def refuse(*arguments: object, **named: object) -> None:
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    with monkeypatch.context() as limited:
        limited.setattr(arrayfiles.mmap, "mmap", refuse)
        with pytest.raises(HogwildError, match="do not fit the addresses that this process may use"):
            open_feed(path)
    assert entries_made(home) == [key]
    calls = count_encodings(monkeypatch)
    open_feed(path)
    assert calls == []


def anonymous_memory() -> int:
    """Bytes of this process that are not mapped files."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) << 10
    return 0


@pytest.mark.skipif(not anonymous_memory(), reason="needs /proc/self/status")
def test_memory_does_not_grow_with_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    large = tmp_path / "large.svm"
    block = b"".join(b"1 %d:0.25 %d:1.5\n" % (k % 1000, 1000 + k) for k in range(50_000))
    with open(large, "wb") as file:
        file.writelines([block] * 150)
    peak = [0]
    add = store.FeedWriter.add

    def measured(self: store.FeedWriter, chunk: Chunk) -> None:
        add(self, chunk)
        peak[0] = max(peak[0], anonymous_memory())

    monkeypatch.setattr(store.FeedWriter, "add", measured)
    before = anonymous_memory()
    feed = open_feed(large, FeedConfig(cache=False))
    assert len(feed) == 150 * 50_000
    assert large.stat().st_size > 150e6
    assert peak[0] - before < 90e6


def test_entries_and_clearing(path: Path, home: Path) -> None:
    assert cache.entries() == []
    assert cache.clear() == 0
    feed = open_feed(path)
    (entry,) = cache.entries()
    assert (entry.key, entry.rows, entry.sources) == (feed.fingerprint, 3, (str(path),))
    assert entry.bytes == sum(file.stat().st_size for file in (home / "feeds" / entry.key).iterdir())
    assert cache.clear() == entry.bytes
    assert cache.entries() == []
    assert features_of(feed)[2] == {2: 4.0}  # a run that uses it goes on


def _open_slowly(path: str, barrier: Any, results: Any) -> None:
    finish = store.FeedWriter.finish

    def wait_then_finish(self: store.FeedWriter, *args: Any) -> None:
        finish(self, *args)
        barrier.wait(60)  # all have encoded; now all publish at once

    store.FeedWriter.finish = wait_then_finish  # type: ignore[method-assign]
    feed = open_feed(path)
    results.put((os.getpid(), feed.samples.targets.tolist(), feed.fingerprint))


def test_processes_that_make_the_same_entry(path: Path, home: Path) -> None:
    context = multiprocessing.get_context("spawn")
    count = 2
    barrier, results = context.Barrier(count), context.Queue()
    processes = [context.Process(target=_open_slowly, args=(str(path), barrier, results)) for _ in range(count)]
    for process in processes:
        process.start()
    found = [results.get(timeout=120) for _ in processes]
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    assert [targets for _, targets, _ in found] == [[1, 0, 1]] * count
    assert entries_made(home) == [found[0][2]]
    assert len(cache.entries()) == 1


def test_what_a_killed_run_leaves_is_swept(path: Path, home: Path) -> None:
    context = multiprocessing.get_context("fork")
    process = context.Process(target=_die_while_writing, args=(str(path),))
    process.start()
    process.join(60)
    assert process.exitcode == -9
    assert len(entries_made(home)) == 1
    assert len(open_feed(path)) == 3
    assert not [name for name in entries_made(home) if name.startswith(workspace.PREFIX)]


def _die_while_writing(path: str) -> None:
    store.FeedWriter.finish = lambda self, *args: os.kill(os.getpid(), 9)  # type: ignore[method-assign]
    open_feed(path)


def flip(path: Path, bit: int) -> None:
    data = bytearray(path.read_bytes())
    data[bit // 8] ^= 1 << bit % 8
    path.write_bytes(data)


def test_flipped_bits_never_reach_compiled_code(path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any one bit of any array: the entry is made again, and the data is what the file says."""
    calls = count_encodings(monkeypatch)
    entry = home / "feeds" / open_feed(path).fingerprint
    whole = features_of(open_feed(path))
    arrays = [name for name in arrayfiles.DTYPES if (entry / name).exists() and (entry / name).stat().st_size]
    rng = np.random.default_rng(0)
    tried = 0
    for name in arrays:
        bits = (entry / name).stat().st_size * 8
        for bit in sorted({0, bits - 1, *rng.integers(0, bits, 8).tolist()}):
            flip(entry / name, bit)
            feed = open_feed(path)
            assert features_of(feed) == whole, (name, bit)
            assert feed.samples.targets.tolist() == [1, 0, 1]
            tried += 1
            assert len(calls) == 1 + tried, (name, bit)
    assert tried > 50


def test_a_checksum_tells_all_single_flips_and_swaps_in_long_arrays() -> None:
    array = np.arange(6 << 20, dtype=np.uint64)  # three pieces
    whole = arrayfiles.checksum_of(array)
    assert arrayfiles.checksum_of(array.copy()) == whole
    rng = np.random.default_rng(1)
    for place in (0, len(array) - 1, *rng.integers(0, len(array), 6)):
        array[place] ^= np.uint64(1) << np.uint64(rng.integers(64))
        assert arrayfiles.checksum_of(array) != whole
        array[place] = place
    half = len(array) // 3  # whole pieces change places
    swapped = np.concatenate([array[half : 2 * half], array[:half], array[2 * half :]])
    assert arrayfiles.checksum_of(swapped) != whole
    assert arrayfiles.checksum_of(array) == whole


def make_files(tmp_path: Path, count: int) -> list[Path]:
    paths = [tmp_path / f"{k}.svm" for k in range(count)]
    for k, file in enumerate(paths):
        file.write_text("".join(f"{row % 2} {row + k + 1}:1.5\n" for row in range(1000)))
    return paths


def test_the_least_recently_used_makes_room(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, third = make_files(tmp_path, 3)
    keys = {}
    for k, file in enumerate((first, second)):
        keys[file] = open_feed(file).fingerprint
        os.utime(home / "feeds" / keys[file], (1000 + k, 1000 + k))
    open_feed(first)  # now the second is the least recently used
    each = cache.entries()[0].bytes
    monkeypatch.setenv("HOGWILD_CACHE_SIZE", str(int(each * 2.5)))
    keys[third] = open_feed(third).fingerprint
    assert {entry.key for entry in cache.entries()} == {keys[first], keys[third]}
    assert sum(entry.bytes for entry in cache.entries()) <= each * 2.5


def test_what_is_larger_than_the_limit_is_not_kept_and_evicts_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small, large = make_files(tmp_path, 2)
    small.write_text(TEXT)
    kept = open_feed(small).fingerprint
    monkeypatch.setenv("HOGWILD_CACHE_SIZE", "2 kB")
    feed = open_feed(large)
    assert len(feed) == 1000
    assert "more than the cache may hold (2e-06 GB), and is not kept" in feed.notes[-1]
    assert [entry.key for entry in cache.entries()] == [kept]
    monkeypatch.setenv("HOGWILD_CACHE_SIZE", "0")
    assert open_feed(large).notes == feed.notes[:-1]
    monkeypatch.setenv("HOGWILD_CACHE_SIZE", "much")
    with pytest.raises(ConfigError, match="HOGWILD_CACHE_SIZE is 'much'; write for example 500MB"):
        open_feed(large)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to another user")
def test_an_entry_of_another_owner_means_uncached(path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = count_encodings(monkeypatch)
    entry = home / "feeds" / open_feed(path).fingerprint
    os.chown(entry, 65534, 65534)
    feed = open_feed(path)
    assert len(feed) == 3
    assert "cannot be replaced, so the encoded data is not kept" in feed.notes[-1]
    os.chown(entry, 0, 0)
    os.chown(entry / "ids", 65534, 65534)
    open_feed(path)
    assert calls == [1, 1, 1]
    assert (entry / "ids").stat().st_uid == 0  # made again


@pytest.mark.parametrize("bits", [0o777, 0o770])
def test_a_cache_that_others_may_write_to_is_not_used(path: Path, home: Path, bits: int) -> None:
    open_feed(path)
    home.chmod(bits)
    with pytest.warns(HogwildWarning, match=r"others may write to .*cache-home, so that the cache is not used"):
        feed = open_feed(path)
    assert features_of(feed) == [{0: 0.5, 2: 2.0}, {2: 1.0, 6: 1.0}, {2: 4.0}]
    home.chmod(0o700)


def test_folders_of_the_user_in_the_cache_stay(path: Path, home: Path, tmp_path: Path) -> None:
    open_feed(path)
    chapters = [home / "feeds" / name / "chapter.txt" for name in ("thesis", "0" * 32)]
    for chapter in chapters:
        chapter.parent.mkdir()
        chapter.write_text("years of work")
    (home / "hashes" / "mine.json").write_text("{}")
    (home / "hashes" / ("1" * 32 + ".json")).symlink_to(path)
    (home / "feeds" / ("2" * 32)).symlink_to(tmp_path)
    assert len(cache.entries()) == 1
    cache.clear()
    assert cache.entries() == []
    assert [chapter.read_text() for chapter in chapters] == ["years of work"] * 2
    assert (home / "hashes" / "mine.json").exists()
    assert path.exists()


def test_a_file_of_the_user_in_an_entry_stays_and_is_named(path: Path, home: Path) -> None:
    entry = home / "feeds" / open_feed(path).fingerprint
    (entry / "notes.txt").write_text("mine")
    with pytest.raises(SaveError, match=r"also holds 'notes.txt', which is not ours, and stays"):
        cache.clear()
    assert (entry / "notes.txt").read_text() == "mine"


def test_a_cache_on_a_full_disk_is_done_without(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (file,) = make_files(tmp_path, 1)
    file.write_text(file.read_text() * 20)
    (tmp_path / "text").write_text("every word of a text occurs here\n" * 20_000)
    with mounted(home, "64k"):
        monkeypatch.setattr(workspace, "_left", set())
        feed = open_feed(file)
        assert len(feed) == 20_000
        assert "the disk of the cache is full, so the encoded data is not kept" in feed.notes[-1]
        assert feed.samples.targets.sum() == 10_000
        assert cache.entries() == []
        monkeypatch.setattr(workspace, "_left", set())
        corpus = open_corpus(tmp_path / "text")
        assert corpus.total == 140_000
        assert "the disk of the cache is full" in corpus.notes[-1]
