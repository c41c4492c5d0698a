"""Corpora on disk: found again, never trusted blindly, larger than memory; and the kernels without the compiler."""

from __future__ import annotations

import json
import lzma
import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from feeds.storage.test_cache import anonymous_memory, entries_made
from hogwild.arrays import Tokens
from hogwild.cli.main import main
from hogwild.config import CorpusConfig
from hogwild.errors import InputError, SaveError
from hogwild.feeds.corpus import encode
from hogwild.feeds.corpus import open as corpusreader
from hogwild.feeds.corpus.encode import TextPass
from hogwild.feeds.corpus.feed import Corpus
from hogwild.feeds.corpus.open import corpus_of, open_corpus
from hogwild.feeds.storage import cache
from places import ROOT
from reference import corpus as twin

WIKI = ROOT.parent / "shared" / "data" / "wiki" / "wiki100m.txt.xz"
CONFIG = CorpusConfig(min_count=1)
TEXT = "to be or not to be\nÜber alles\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text(TEXT)
    return path


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One item a pass over a text."""
    made: list[int] = []
    read = corpusreader.read_texts

    def counted(*arguments: Any) -> TextPass:
        made.append(1)
        return read(*arguments)

    monkeypatch.setattr(corpusreader, "read_texts", counted)
    return made


def same(first: Corpus, second: Corpus) -> bool:
    return (
        first.words == second.words
        and first.counts.tolist() == second.counts.tolist()
        and first.samples.ids.tolist() == second.samples.ids.tolist()
        and (first.total, first.schema, first.notes, first.fingerprint)
        == (second.total, second.schema, second.notes, second.fingerprint)
    )


def test_the_second_time_nothing_is_read(file: Path, home: Path, passes: list[int]) -> None:
    first = open_corpus(file, CONFIG)
    assert same(first, open_corpus(file, CONFIG))
    assert same(first, open_corpus(file, CONFIG, threads=3))
    assert len(passes) == 1
    assert entries_made(home) == [first.fingerprint]
    file.write_text(TEXT + "more\n")
    assert open_corpus(file, CONFIG).total == 9
    assert len(passes) == 2


def test_what_matters_makes_another_entry(file: Path) -> None:
    made = [
        open_corpus(file, config, vocabulary).fingerprint
        for config, vocabulary in [
            (CONFIG, None),
            (CorpusConfig(min_count=2), None),
            (CorpusConfig(min_count=1, lowercase=True), None),
            (CONFIG, ["be", "to"]),
            (CONFIG, ["to", "be"]),
        ]
    ]
    made += [open_corpus(file, CONFIG, keep=keep).fingerprint for keep in ((), ["to"], ["be"])]
    assert len(set(made)) == 7


def test_without_the_cache_nothing_stays(file: Path, home: Path) -> None:
    corpus = open_corpus(file, CorpusConfig(min_count=1, cache=False))
    assert corpus_of([["a", "b"]], CONFIG).words == ("a", "b")
    assert entries_made(home) == []
    assert corpus.samples.ids.tolist() == twin.ids_of(twin.sentences_of(TEXT.encode()), corpus.words)


@pytest.mark.parametrize("harm", ["ids", "counts", "words", "letters", "feed.json"])
def test_a_damaged_entry_is_made_again(file: Path, home: Path, passes: list[int], harm: str) -> None:
    mapped = open_corpus(file, CONFIG)
    first = replace(mapped, samples=Tokens(mapped.samples.ids.copy()), counts=mapped.counts.copy())
    path = home / "feeds" / first.fingerprint / harm
    data = path.read_bytes()
    path.write_bytes(b"\x7f" * len(data) if harm in ("ids", "letters") else data[:-1])
    assert same(first, open_corpus(file, CONFIG))
    assert len(passes) == 2


def test_a_failed_run_leaves_nothing(file: Path, home: Path) -> None:
    file.write_bytes(b"a \xff b")
    with pytest.raises(InputError, match="not UTF-8"):
        open_corpus(file, CONFIG)
    assert entries_made(home) == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_disk_that_fills(file: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encode, "open", lambda *rest, **more: open("/dev/full", "wb", 0), raising=False)  # noqa: SIM115
    with pytest.raises(SaveError, match="No space left on device"):
        open_corpus(file, CONFIG)
    assert entries_made(home) == []


def test_corpora_are_listed_and_cleared(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    corpus = open_corpus(file, CONFIG)
    (entry,) = cache.entries()
    assert (entry.key, entry.rows, entry.unit, entry.sources) == (corpus.fingerprint, 8, "words", (str(file),))
    assert main(["cache", "list"]) == 0
    assert "8 words" in capsys.readouterr().out
    assert main(["cache", "list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["entries"][0]["rows"] == 8
    assert cache.clear() == entry.bytes
    assert cache.entries() == []


@pytest.mark.skipif(not anonymous_memory(), reason="needs /proc/self/status")
def test_memory_does_not_grow_with_an_endless_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    large = tmp_path / "large.txt"
    part = b" ".join(b"word%d" % (k % 5000) for k in range(100_000)) + b" "
    with open(large, "wb") as out:
        out.writelines([part] * 150)
    assert large.stat().st_size > 120e6
    peak = [0]
    settle = corpusreader.settled

    def measured(*arguments: Any) -> Any:
        peak[0] = max(peak[0], anonymous_memory())
        for ids in settle(*arguments):
            peak[0] = max(peak[0], anonymous_memory())
            yield ids

    monkeypatch.setattr(corpusreader, "settled", measured)
    open_corpus(tmp_path / "large.txt", CorpusConfig(cache=False, max_vocab=10), threads=1)  # compiles
    before = anonymous_memory()
    peak[0] = 0
    corpus = open_corpus(large, CorpusConfig(cache=False), threads=2)
    assert corpus.total == 150 * 100_000
    assert corpus.counts[0] == 150 * 20
    assert peak[0] - before < 60e6


INTERPRETED = """
import sys
from pathlib import Path
from reference import corpus as twin
from hogwild.config import CorpusConfig
from hogwild.feeds.corpus.open import corpus_of, open_corpus
from hogwild.kernels.ids import words as wordtable
path = Path(sys.argv[1])
if sys.argv[2] == "collide":
    wordtable._fold = lambda state, word: wordtable._SPREAD  # all words of eight bytes and more have one key
data = "to be or not to be \\x1f odd\\nÜber anticonstitutionally Üb\\0er x anticonstitutionality international\\n"
data = data.encode() * 3
path.write_bytes(data)
corpus = open_corpus(path, CorpusConfig(min_count=2, lowercase=True, cache=False))
sentences = twin.sentences_of(data, True)
assert corpus.words == tuple(twin.vocabulary_of(sentences, 2)), corpus.words
assert corpus.samples.ids.tolist() == twin.ids_of(sentences, corpus.words)
joined = corpus_of(sentences, CorpusConfig(min_count=1, phrases=1, phrase_threshold=0.5, phrase_min_count=1))
expected = twin.join_phrases(sentences, 1, 0.5)
assert joined.words == tuple(twin.vocabulary_of(expected)), joined.words
assert joined.samples.ids.tolist() == twin.ids_of(expected, joined.words)
"""


@pytest.mark.parametrize("keys", ["usual", "collide"])
def test_without_the_compiler(tmp_path: Path, keys: str) -> None:
    paths = os.pathsep.join(str(ROOT / name) for name in ("src", "tests"))
    environment = {**os.environ, "PYTHONPATH": paths, "NUMBA_DISABLE_JIT": "1", "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, "-c", INTERPRETED, str(tmp_path / "tiny.txt"), keys]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.data
@pytest.mark.skipif(not WIKI.exists(), reason="needs ../shared/data/wiki")
def test_a_part_of_wikipedia(tmp_path: Path) -> None:
    with lzma.open(WIKI) as stream:
        data = stream.read(10_000_000)
    data = data[: data.rindex(b" ")]
    file = tmp_path / "wiki.txt"
    file.write_bytes(data)
    corpus = open_corpus(file, CorpusConfig(min_count=5))
    counts = Counter(data.decode().split())
    kept = sorted(((-count, word) for word, count in counts.items() if count >= 5))
    assert corpus.words == tuple(word for _, word in kept)
    assert corpus.counts.tolist() == [-count for count, _ in kept]
    assert corpus.total == sum(counts.values())
    assert corpus.samples.ids.tolist() == twin.ids_of([data.decode().split()], corpus.words)
