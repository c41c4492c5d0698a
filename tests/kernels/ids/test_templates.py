"""Keys of features: the same whether a name is in one piece or streamed; tables of keys, full and not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compiling import OFF
from hogwild.feeds.tagged.features import packed, plan_features
from hogwild.feeds.tagged.templates import parse_templates
from hogwild.kernels.ids.keys import (
    AHEAD,
    NONE,
    count_keys,
    find_keys,
    grown_counts,
    make_counts,
    settle,
    settle_valued,
)
from hogwild.kernels.ids.templates import keys_of_names, write_keys
from places import ROOT
from reference import tagging as twin

LINES = ["bias", "w[0]", "w[-2]|w[-1]|w[0]|pos[1]", "suffix(w,3)[0]", "same(w)[0,-1]", "prefix(w,4)[1]|w[-1]", "w[3]"]
# Names of all lengths modulo eight, so that values begin and end anywhere in a word of the hash.
WORDS = ["", "a", "ab", "abc", "über", "Straße", "\0", "a\0", "漢字仮名交じり文", "x" * 40, "ab", "abc", "abcdefgh"]


def names_to_keys(names: list[str]) -> list[int]:
    strings = packed(names, "names")
    keys = np.empty(len(names), np.uint64)
    keys_of_names(strings.pool, strings.starts, keys)
    return keys.tolist()


def keys_of(text: Any, lines: list[str], first: int = 0, last: int | None = None) -> list[list[int]]:
    layout = plan_features(text, parse_templates(lines))
    keys = np.empty(((last or text.tokens) - first, len(lines)), np.uint64)
    sentence = int(np.searchsorted(text.offsets, first, side="right")) - 1
    write_keys(layout.plan, layout.values, sentence, first, keys)
    return [[key for key in row if key != NONE] for row in keys.tolist()]


@pytest.fixture
def text() -> Any:
    words = [WORDS, ["one"], WORDS[::-1], ["a", "a"]]
    return twin.text_of([[{"w": word, "pos": f"P{len(word) % 3}"} for word in row] for row in words])


def test_streamed_keys_are_those_of_whole_names(text: Any) -> None:
    expected = [names_to_keys(row) for row in twin.features_of(LINES, text)]
    assert keys_of(text, LINES) == expected
    for first, last in ((0, 1), (3, 20), (13, 14), (14, text.tokens), (text.tokens - 1, text.tokens)):
        assert keys_of(text, LINES, first, last) == expected[first:last]


def test_keys_differ() -> None:
    names = ["", "\0", "\0\0", "a", "a\0", "\0a", *(f"w[{k}]=a" for k in range(-100, 100)), "w[0]=a|b", "w[0]=a||b"]
    names += ["x" * size for size in range(2, 600)]
    keys = names_to_keys(names)
    assert len(set(keys)) == len(names)
    assert int(NONE) not in keys


def test_names_are_built_from_places(text: Any) -> None:
    layout = plan_features(text, parse_templates(LINES))
    expected = twin.features_of(LINES, text)
    keys = np.empty((text.tokens, len(LINES)), np.uint64)
    write_keys(layout.plan, layout.values, 0, 0, keys)
    assert list(layout.names(np.flatnonzero(keys))) == [name for row in expected for name in row]
    assert layout.names(np.zeros(0, np.int64)) == ()


def found_in(ids: Any) -> tuple[Any, ...]:
    """What `find_keys` takes where there is one group, and -1 for what is not there."""
    return np.zeros(1, np.uint16), np.full(1, -1, np.int32), ids, np.empty(AHEAD, np.int64)


@pytest.mark.parametrize("parts", [1, 3])
def test_tables_count_and_grow(parts: int) -> None:
    random = np.random.default_rng(4)
    keys = random.integers(1, 2**64, 40, np.uint64)[random.integers(0, 40, 60 if OFF else 3000)]
    keys[5] = NONE
    expected = twin.ranked([int(key) for key in keys if key != NONE])  # type: ignore[misc]
    numbers = np.full(len(keys), -7, np.int32)
    seen: dict[int, tuple[int, int]] = {}
    for part in range(parts):
        counted, done, times = make_counts(4), 0, 0
        while done < len(keys):
            done = count_keys(counted, keys, done, 100, part, parts, numbers)
            if done < len(keys):
                counted, times = grown_counts(counted), times + 1
        assert times >= 1
        table = counted.table
        size = int(table.size[0])
        for key, count, first in zip(table.keys[:size].tolist(), counted.counts, counted.firsts, strict=False):
            seen[key] = int(count), int(first)
        mine = numbers >= 0
        mine &= numbers % parts == part
        assert table.keys[numbers[mine] // parts].tolist() == keys[mine].tolist()
        found = np.empty(len(keys), np.int32)
        assert find_keys(table, keys, *found_in(found)) == len(keys) - mine.sum()
        assert found[mine].tolist() == (numbers[mine] // parts).tolist()
        assert set(found[~mine].tolist()) == {-1}
    assert numbers[5] == -1
    assert {key: count for key, (count, _) in seen.items()} == expected
    assert all(keys[first - 100] == key and key not in keys[: first - 100] for key, (_, first) in seen.items())


def test_a_full_table_still_finds() -> None:
    keys = np.arange(1, 9, dtype=np.uint64)  # half of the cells are in use
    counted = make_counts(8)
    assert count_keys(counted, keys, 0, 0, 0, 1, np.empty(8, np.int32)) == 8
    found = np.empty(9, np.int32)
    assert find_keys(counted.table, np.append(keys, np.uint64(160)), *found_in(found)) == 1
    assert found.tolist() == [0, 1, 2, 3, 4, 5, 6, 7, -1]


def test_settling() -> None:
    numbers = np.array([[3, 1, 0], [-1, -1, -1], [2, -1, 2], [0, 1, 3]], np.int32)
    final, starts = np.array([2, 0, -1, 1], np.int32), np.empty(5, np.int64)
    flat = numbers.reshape(-1)
    assert settle(flat, 3, final, starts) == 6
    assert starts.tolist() == [0, 3, 3, 3, 6]
    assert flat[:6].tolist() == [0, 1, 2, 0, 1, 2]


def test_settling_with_values() -> None:
    numbers = np.array([3, 1, 3, 2, 0, 2, 3, 3, 3], np.int32)
    values = np.array([1, 2, 4, 8, 16, 32, 1, -1, 3], np.float32)
    begins, starts = np.array([0, 5, 5, 6, 9]), np.empty(5, np.int64)
    assert settle_valued(numbers, values, np.array([2, 0, -1, 1], np.int32), begins, starts) == 4
    assert starts.tolist() == [0, 3, 3, 3, 4]
    assert numbers[:4].tolist() == [0, 1, 2, 1]
    assert values[:4].tolist() == [2, 5, 16, 3]


@pytest.mark.skipif(OFF, reason="this is the inner run")
def test_without_the_compiler(tmp_path: Path) -> None:
    paths = os.pathsep.join(str(ROOT / name) for name in ("src", "tests"))
    environment = {**os.environ, "PYTHONPATH": paths, "NUMBA_DISABLE_JIT": "1", "HOGWILD_CACHE": str(tmp_path)}
    command = [sys.executable, "-W", "ignore", "-m", "pytest", "-p", "no:cacheprovider", __file__]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
