"""Files that are read in parts: rows, labels, weights, ids and ranks of all parts together are those of open_feed."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hogwild.config import FeedConfig
from hogwild.errors import InputError
from hogwild.feeds.io.parts import cut_files
from hogwild.feeds.io.source import open_sources
from hogwild.feeds.open import open_feed
from hogwild.feeds.parted import EncodedPart, WholeError, check_lines, learn, part_in

ROWS = 60


def svmlight(draw: random.Random) -> str:
    ids = [sorted(draw.sample(range(1, 30), draw.randrange(5))) for _ in range(ROWS)]
    return "".join(f"{draw.choice((0, 1))} {' '.join(f'{k}:{draw.uniform(0, 3):.3f}' for k in row)}\n" for row in ids)


def binary(draw: random.Random) -> str:
    last = {50: " 9:2.5"}
    return "".join(f"{draw.choice((0, 1))} {draw.randrange(1, 9)}:1{last.get(k, '')}\n" for k in range(ROWS))


def table(draw: random.Random) -> str:
    def row(k: int) -> str:
        town = draw.choice(("Rome", "Oslo, north", "label", ""))
        number = "" if k % 7 == 0 else f"{draw.gauss(5, 2):.4f}"
        label, kind = draw.choice(("ham", "spam")), f"{draw.choice('abcdef')}{draw.randrange(9)}"
        return f'{label},{number},"{town}",{kind},{k % 3 + 1}\n'

    return "label,size,town,kind,heavy\n" + "".join(map(row, range(ROWS)))


def texts(draw: random.Random) -> str:
    words = [" ".join(f"w{draw.randrange(40)}" for _ in range(draw.randrange(1, 9))) for _ in range(ROWS)]
    return "\ufeff" + "".join(f"{draw.choice(('good', 'bad', 'odd'))}\t{line}\n" for line in words)


def fasttext(draw: random.Random) -> str:
    several = ["__label__a", "__label__b __label__c", "__label__c"]
    return "".join(f"{several[0 if k < 30 else draw.randrange(3)]} w{draw.randrange(9)} x\n" for k in range(ROWS))


def jsonl(draw: random.Random) -> str:
    rows = [{"label": draw.randrange(2), "town": draw.choice("abc"), "size": draw.gauss(0, 1)} for _ in range(ROWS)]
    return "".join(json.dumps(row) + "\n" for row in rows)


def criteo(draw: random.Random) -> str:
    def fields() -> list[str]:
        counts = [draw.choice(("", str(draw.randrange(50)))) for _ in range(13)]
        return [str(draw.randrange(2)), *counts, *(draw.choice(("", f"{draw.randrange(9):08x}")) for _ in range(26))]

    return "".join("\t".join(fields()) + "\n" for _ in range(ROWS))


def libffm(draw: random.Random) -> str:
    rows = [sorted({(f, draw.randrange(9)) for f in draw.sample((0, 2, 5), 2)}) for _ in range(ROWS)]
    return "".join(f"{draw.randrange(2)} {' '.join(f'{f}:{k}:1' for f, k in row)}\n" for row in rows)


CASES: dict[str, tuple[Callable[[random.Random], str], dict[str, Any]]] = {
    "svmlight": (svmlight, {}),
    "few values": (binary, {}),
    "table": (table, {"weight": "heavy"}),
    "table of slots": (table, {"layout": "slots", "categories": "hash", "hash_bits": 8, "ignore": ("heavy",)}),
    "table, rare": (table, {"min_count": 3}),
    "texts": (texts, {"format": "text", "hash_bits": 10, "ngrams": 2}),
    "fasttext": (fasttext, {"hash_bits": 10}),
    "jsonl": (jsonl, {"format": "jsonl"}),
    "criteo": (criteo, {"format": "criteo", "categories": "hash", "hash_bits": 10}),
    "libffm": (libffm, {"format": "libffm"}),
}


def read_parts(paths: Sequence[Path], config: FeedConfig, count: int, folder: Path) -> tuple[Any, list[Any]]:
    """What one process learns of all, and the rows of each part."""
    learned = learn(paths, config)
    cut = cut_files(open_sources(paths, config), "it", count, lines=True)
    encoded = []
    for number, parts in enumerate(cut.parts):
        place = folder / f"part{number}"
        place.mkdir()
        encoded.append((place, EncodedPart(parts, learned, place)))
    counts = np.zeros(max(len(part.counts) for _, part in encoded), np.int64)
    for _, part in encoded:
        counts[: len(part.counts)] += part.counts
    outlines = [part.finish(counts) for _, part in encoded]
    feeds = [part_in(place, part.names, learned) for place, part in encoded]
    for outline, feed in zip(outlines, feeds, strict=True):
        np.testing.assert_array_equal(outline.lengths, np.diff(feed.samples.offsets))
        np.testing.assert_array_equal(outline.targets, feed.samples.targets)
    return learned, feeds


def rows_of(feed: Any) -> list[Any]:
    """Each row as plain values, under the ranks of its features."""
    samples = feed.samples
    values = getattr(samples, "values", np.ones(len(samples.ids), np.float32))
    slots = getattr(samples, "slots", np.zeros(len(samples.ids)))
    dense = getattr(samples, "dense", np.zeros((len(feed), 0)))
    found = []
    for row, (first, last) in enumerate(zip(samples.offsets, samples.offsets[1:], strict=False)):
        label: Any = float(samples.targets[row])
        if feed.sets:
            label = feed.sets[int(label)]
        entries = [part[first:last].tolist() for part in (samples.ids, values, slots)]
        found.append((*entries, dense[row].tolist(), label, float(samples.importance[row])))
    return found


@pytest.mark.parametrize("name", CASES)
def test_the_parts_together_are_the_whole(tmp_path: Path, name: str) -> None:
    make, options = CASES[name]
    config = FeedConfig(cache=False, **options)
    paths = [tmp_path / "a.txt", tmp_path / "b.txt"]
    for number, path in enumerate(paths):
        path.write_text(make(random.Random(number)))
    whole = open_feed(paths, config)
    for count in (2, 3):
        folder = tmp_path / str(count)
        folder.mkdir()
        learned, feeds = read_parts(paths, config, count, folder)
        assert [row for feed in feeds for row in rows_of(feed)] == rows_of(whole)
        assert (learned.schema, learned.labels, learned.features) == (whole.schema, whole.labels, whole.features)
        assert learned.notes == whole.notes
        for feed in feeds:
            assert (feed.schema, feed.labels, feed.features) == (whole.schema, whole.labels, whole.features)
            np.testing.assert_array_equal(feed.original, whole.original)


def test_lines_are_told_by_where_their_part_begins(tmp_path: Path) -> None:
    path = tmp_path / "a.svm"
    path.write_text("1 1:1\n0 2:1\n1 3:1\n0 4:1\n")
    _, feeds = read_parts([path], FeedConfig(cache=False), 2, tmp_path)
    assert [feed.place(1) for feed in feeds] == [f"{path}:2", f"{path} from byte 12:2"]


def test_malformed_lines_are_judged_in_the_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.svm"
    path.write_text("1 1:1\n" * 200 + "0 1:x\n" + "0 2:1\n" * 10)
    config = FeedConfig(cache=False, bad_lines="skip", bad_share=0.01)
    learned, feeds = read_parts([path], config, 20, tmp_path)
    assert [len(feed) for feed in feeds].count(0) == 0
    assert sum(map(len, feeds)) == 210
    assert "1 of 211 lines malformed" in " ".join(learned.notes)
    with pytest.raises(InputError, match=r"a\.svm:201:3"):
        learn([path], FeedConfig(cache=False))


def test_a_quote_across_a_cut_is_no_silent_loss(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    some = "1,Rome\n0,Oslo\n" * 3
    path.write_text(f'label,town\n{some}1,"long{chr(10) * 200}"\n{some}')
    with pytest.raises(WholeError, match="across the cut"):
        read_parts([path], FeedConfig(cache=False), 2, tmp_path)


def test_what_is_read_whole(tmp_path: Path) -> None:
    packed = tmp_path / "a.svm.gz"
    packed.write_bytes(gzip.compress(b"1 1:1\n0 2:1\n"))
    with pytest.raises(WholeError, match="1 file that cannot be cut"):
        check_lines([packed], FeedConfig(), 2)
    check_lines([packed, packed], FeedConfig(), 2)
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    with pytest.raises(WholeError, match="format parquet"):
        check_lines([tmp_path / "a.parquet"], FeedConfig(), 2)
    with pytest.raises(WholeError, match="only once"):
        check_lines("-", FeedConfig(), 2)
