"""A text that nodes read in parts: cut where words end, and the ids and the vocabulary of open_corpus in the end."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import pickle
import random
import re
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from hogwild.config import CorpusConfig
from hogwild.errors import InputError
from hogwild.feeds.corpus import encode, parts
from hogwild.feeds.corpus.open import open_corpus
from hogwild.feeds.corpus.parts import Phrasing, WholeText, count_part, cut_texts, merged_words, ranked_text
from hogwild.feeds.io import parts as cutting
from hogwild.feeds.io.parts import Cut, TextPart
from hogwild.feeds.storage import words as wordtables
from reference import corpus as twin

BOM = b"\xef\xbb\xbf"
BLANKS = b" \n\t\r\v\f\0"
Paths = Sequence[Path]


class Parted(NamedTuple):
    cut: Cut
    text: WholeText
    ids: list[list[int]]
    sizes: list[int]


def config_of(**options: Any) -> CorpusConfig:
    return CorpusConfig(**{"min_count": 1, "cache": False, **options})


def read_parts(
    paths: Paths | Path, nodes: int, config: CorpusConfig, folder: Path, threads: int = 1, keep: Sequence[str] = ()
) -> Parted:
    """What all nodes and the driver do, one after the other; what goes over the network is pickled."""
    cut = pickle.loads(pickle.dumps(cut_texts(paths, nodes, config)))
    assert len(cut.parts) == nodes
    found = []
    for part in cut.parts:
        folder = folder / "x"
        folder.mkdir()
        found.append(count_part(part, config, folder, threads))
    sent = pickle.loads(pickle.dumps([part.counts for part in found]))
    for array in (array for counts in sent for array in counts[:3]):
        array.flags.writeable = False  # as Ray gives them
    words = merged_words(sent, cut.title)
    phrasing = None
    if config.phrases:
        phrasing, more = Phrasing(words, config, keep), True
        for place, part in enumerate(found):
            (folder / f"p{place}").mkdir()
            part.share_words(pickle.loads(pickle.dumps(phrasing.shared)), folder / f"p{place}")
        while more:
            chosen = phrasing.choose([pickle.loads(pickle.dumps(part.count_pairs(config))) for part in found])
            more = phrasing.joined([part.join_pairs(pickle.loads(pickle.dumps(chosen))) for part in found])
    text = ranked_text(words, sent, config, cut.title, keep, phrasing)
    settled = [part.settle(text.words) for part in found]
    sizes = [part.size for part in settled]
    return Parted(cut, text, [[ident for block in part for ident in block.tolist()] for part in settled], sizes)


def vocabulary_of(counts: Any, config: CorpusConfig, title: str, keep: Any = ()) -> WholeText:
    return ranked_text(merged_words(counts, title), counts, config, title, keep)


def check(parted: Parted, paths: Paths | Path, config: CorpusConfig, keep: Sequence[str] = ()) -> None:
    """All that does not depend on the order of the files."""
    whole = open_corpus(paths, config, keep=keep, threads=2)
    assert parted.text.words == whole.words
    assert parted.text.counts.tolist() == whole.counts.tolist()
    assert parted.text.total == whole.total
    assert parted.text.schema == whole.schema
    assert parted.text.notes == whole.notes
    assert parted.sizes == [len(ids) for ids in parted.ids]


def check_in_order(parted: Parted, paths: Paths, config: CorpusConfig) -> bool:
    """The same for plain files, with the ids; returns whether no sentence was cut."""
    check(parted, paths, config)
    texts = {str(path): path.read_bytes() for path in paths}
    pieces = [[texts[part.path][part.first : part.last] for part in node] for node in parted.cut.parts]
    assert b"".join(piece for node in pieces for piece in node) == b"".join(texts.values())
    for node, part_ids in zip(parted.cut.parts, parted.ids, strict=True):
        sentences = [
            sentence
            for part in node
            for sentence in twin.sentences_of(text_of(part, texts), config.lowercase, config.max_token)
        ]
        assert part_ids == twin.ids_of(sentences, parted.text.words)
    ids = [*chain(*parted.ids)]
    whole = open_corpus(paths, config).samples.ids
    assert [ident for ident in ids if ident >= 0] == whole[whole >= 0].tolist(), "every word once, in order"
    sentences_whole = all(
        part.last == part.size or texts[part.path][part.last - 1 : part.last] == b"\n"
        for node in parted.cut.parts
        for part in node
    )
    if sentences_whole:
        assert ids == whole.tolist()
    return sentences_whole


def text_of(part: TextPart, texts: dict[str, bytes]) -> bytes:
    text = texts[part.path][part.first : part.last]
    # The twin drops a byte-order mark, which is a letter like others inside a file.
    return BOM + text if part.first else text


def make_text(rng: random.Random, kind: str) -> bytes:
    letters = ["a", "b", "B", "é", "É", "水", "🙂", "\ufeff", "\x1f"]
    between = {
        "lines": [" ", " ", " ", "\n"],
        "endless": [" ", "  ", "\t"],
        "long lines": [" "] * 150 + ["\n"],
        "blank lines": [" ", "\n", "\n\n", "\n \n", "\n\n\n"],
        "crlf": [" ", " ", "\r\n", "\r\n\r\n"],
        "odd": [" ", "\n", "\t", "\r", "\v", "\f", "\0", "\0\n"],
    }[kind]
    text = []
    for _ in range(rng.choice([60, 400])):
        length = rng.choice([1, 1, 1, 2, 2, 3, 8, 17, 60])
        chosen = letters if rng.random() < 0.3 else letters[:2]
        text += [*(rng.choice(chosen) for _ in range(length)), rng.choice(between)]
    return BOM * (rng.random() < 0.3) + "".join(text[: rng.choice([-1, len(text)])]).encode()


KINDS = ["lines", "endless", "long lines", "blank lines", "crlf", "odd"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_parts_together_are_the_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, seed: int) -> None:
    rng = random.Random(f"{kind} {seed}")
    monkeypatch.setattr(encode, "BLOCK", rng.choice([28, 64, 1 << 21]))
    monkeypatch.setattr(wordtables, "_FIRST", rng.choice([2, 64]))
    paths = [tmp_path / f"{k}.txt" for k in range(rng.choice([1, 1, 3]))]
    for path in paths:
        path.write_bytes(make_text(rng, kind))
    for nodes in (1, 2, 3, 7):
        config = config_of(
            min_count=rng.randint(1, 3), lowercase=rng.random() < 0.5, max_token=rng.choice([8, 20]),
            max_vocab=rng.choice([0, 0, 5]),
        )  # fmt: skip
        folder = tmp_path / f"nodes-{nodes}"
        folder.mkdir()
        whole = check_in_order(read_parts(paths, nodes, config, folder, rng.choice([1, 3])), paths, config)
        assert nodes > 1 or whole


@pytest.mark.parametrize("kind", ["lines", "long lines", "blank lines", "crlf", "odd"])
def test_ids_of_larger_texts_are_those_of_the_whole(tmp_path: Path, kind: str) -> None:
    rng = random.Random(kind)
    paths = [tmp_path / f"{k}.txt" for k in range(2)]
    for path in paths:
        path.write_bytes(b"".join(make_text(rng, kind) + b"\n" for _ in range(60)))
    config = config_of(min_count=3, max_token=20)
    for nodes in (1, 2, 3, 7):
        folder = tmp_path / f"nodes-{nodes}"
        folder.mkdir()
        assert check_in_order(read_parts(paths, nodes, config, folder), paths, config), "no sentence is cut"


def test_sentences_stay_whole_where_a_newline_is_near(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"".join(b"word%d and more of it\n" % k for k in range(500)))
    for nodes in range(2, 40):
        for near in (1 << 20, 30):
            monkeypatch.setattr(cutting, "NEAR", near)
            cuts = [part.last for (part,) in cut_texts(path, nodes).parts]
            assert all(path.read_bytes()[cut - 1 : cut] == b"\n" for cut in cuts)
            assert np.diff([0, *cuts]).max() - np.diff([0, *cuts]).min() <= 2 * 30
    config = config_of(min_count=2)
    assert check_in_order(read_parts([path], 7, config, tmp_path), [path], config)


def test_every_place_moves_to_the_end_of_a_word_or_sentence(tmp_path: Path) -> None:
    path = tmp_path / "text"
    for data in ("水é 🙂🙂 x\r\nb\0c\t\n\n水" + "é" * 40 + " d\n" + "e f" * 9).encode(), b"x" * 99, b"\n" * 9, b" x ":
        path.write_bytes(data)
        size = len(data)
        file = TextPart("text", str(path), 0, size, size)
        for near in (0, 1, 5, 30, 200):
            moved = [cutting._end_of_sentence(file, place, near) for place in range(1, size)]
            for place, end in enumerate(moved, 1):
                ends = [k for k in range(place, size + 1) if k == size or data[k - 1] == 10]
                words = [k for k in range(place, size + 1) if k == size or data[k - 1] in BLANKS]
                assert end == (ends[0] if ends[0] - place <= near else words[0])
                data[:end].decode()
            assert moved == sorted(moved)


@pytest.mark.parametrize("keep", [(), ("b_c",)])
def test_phrases_are_those_of_the_whole(tmp_path: Path, keep: Sequence[str]) -> None:
    draw = random.Random(0)
    common = ["new york", "new york city", "b c"]
    lines = [" ".join(draw.choice([*common, *"abcdefgh"]) for _ in range(draw.randrange(1, 9))) for _ in range(400)]
    path = tmp_path / "text"
    path.write_text("\n".join(lines) + "\n")
    config = config_of(phrases=2, phrase_min_count=3, phrase_threshold=0.15, min_count=2)
    parted = read_parts([path], 3, config, tmp_path, threads=2, keep=keep)
    assert {"new_york", "new_york_city"} <= set(parted.text.words)
    whole = open_corpus([path], config, keep=keep)
    check(parted, [path], config, keep)
    assert [ident for ids in parted.ids for ident in ids] == whole.samples.ids.tolist()


def test_a_word_that_is_longer_than_parts_and_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encode, "BLOCK", 64)
    monkeypatch.setattr(cutting, "_CHUNK", 16)
    path = tmp_path / "text"
    path.write_bytes(b"one two " + "é".encode() * 200 + b" three four " * 30)
    config = config_of(max_token=50)
    parted = read_parts([path], 2, config, tmp_path)
    assert not check_in_order(parted, [path], config)
    assert parted.text.notes == ("1 word longer than 50 bytes (--max-token) left out.",)
    with pytest.raises(InputError, match=r"text: 768 bytes of text cannot be divided among 9 nodes; use fewer nodes"):
        cut_texts(path, 9)


def test_what_begins_a_part_is_text_like_the_rest(tmp_path: Path) -> None:
    """Neither a byte-order mark nor the sign of a compressed file."""
    path = tmp_path / "text"
    for line in (BOM + b"mark b", b"BZh9 b c", b"\x1f\x8b is gzip".replace(b"\x8b", b"")):
        path.write_bytes(b"plain text\n" + (line + b"\n") * 20)
        for nodes in (2, 3, 7):
            folder = tmp_path / f"{nodes}-{line[:3].hex()}"
            folder.mkdir()
            assert check_in_order(read_parts([path], nodes, config_of(), folder), [path], config_of())


def test_a_file_may_be_named_twice_and_files_may_be_empty(tmp_path: Path) -> None:
    one, two, none = tmp_path / "one", tmp_path / "two", tmp_path / "none"
    one.write_text("a b c d e f g\n" * 5)
    two.write_text("b c\n" * 9)
    none.write_text("")
    paths = [one, none, two, one]
    parted = read_parts(paths, 3, config_of(), tmp_path)
    check(parted, paths, config_of())
    assert [*chain(*parted.ids)] == open_corpus(paths, config_of()).samples.ids.tolist()
    assert [part.name for part in cut_texts(paths, 1).parts[0]] == [str(one), str(two), str(one)]


@pytest.mark.parametrize("nodes", [1, 2, 3, 7])
def test_compressed_files_go_whole_and_plain_ones_fill_up(tmp_path: Path, nodes: int) -> None:
    rng = random.Random(nodes)
    texts = [make_text(rng, kind) for kind in KINDS] + [b"all that is plain\n" * 900]
    paths = [tmp_path / f"{k}" for k in range(len(texts))]
    for path, text, pack in zip(
        paths, texts, [gzip.compress, lzma.compress, bz2.compress, gzip.compress, bytes, bytes, bytes], strict=True
    ):
        path.write_bytes(pack(text))
    config = config_of(min_count=2, lowercase=True)
    parted = read_parts(paths, nodes, config, tmp_path)
    check(parted, paths, config)
    whole = [part for node in parted.cut.parts for part in node if part.path in map(str, paths[:4])]
    assert sorted(part.path for part in whole) == [str(path) for path in paths[:4]]
    assert all((part.first, part.last) == (0, part.size) for part in whole)
    sizes = [sum(part.last - part.first for part in node) for node in parted.cut.parts]
    assert max(sizes) < 1.3 * min(sizes)
    words = np.bincount([ident for ident in chain(*parted.ids) if ident >= 0])
    assert words.tolist() == parted.text.counts.tolist()


def test_files_that_cannot_be_cut(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in "abc"]
    for path, times in zip(paths, (1, 2, 40), strict=True):
        path.write_bytes(gzip.compress(random.Random(times).randbytes(1000 * times)))
    with pytest.raises(InputError, match=r"a and 2 more: 3 files that cannot be cut .* than the 4 nodes; unpack"):
        cut_texts(paths, 4)
    cut = cut_texts(paths, 2)
    assert [[os.path.basename(part.path) for part in node] for node in cut.parts] == [["c"], ["a", "b"]]
    assert re.fullmatch(r"3 files that cannot be cut .*: nodes have between 0\.0 and 0\.0 MB to read; .*", cut.notes[0])
    plain = tmp_path / "plain"
    plain.write_text("a b\n" * 9)
    with pytest.raises(InputError, match="1 file that cannot be cut"):
        cut_texts(plain, 2, config_of(pipe="cat"))
    parted = read_parts([plain, plain], 2, config_of(pipe="tr a c"), tmp_path)
    assert parted.text.words == ("b", "c")
    assert parted.ids == [[1, 0, -1] * 9] * 2


def test_what_nodes_cannot_read(tmp_path: Path) -> None:
    path, pipe = tmp_path / "text", tmp_path / "pipe"
    path.write_text("to be or not to be")
    os.mkfifo(pipe)
    for stream in ("-", pipe, [path, "-"]):
        with pytest.raises(InputError, match="can be read only once, and only here; write the text to a file"):
            cut_texts(stream, 2)
    with pytest.raises(InputError, match="does not exist"):
        cut_texts(tmp_path / "missing", 2)
    with pytest.raises(InputError, match="18 bytes of text cannot be divided among 9 nodes"):
        cut_texts(path, 9)
    (part,) = cut_texts(path, 2).parts[1]
    path.write_text("to be or not to be, that is")
    with pytest.raises(InputError, match=r"text has 27 bytes on .*, and had 18 where the text was divided"):
        count_part([part], config_of(), tmp_path)
    path.unlink()
    with pytest.raises(InputError, match=r"there is no .*text on .*; every node reads its part of the text itself"):
        count_part([part], config_of(), tmp_path)


def test_a_file_that_grows_while_a_node_reads_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "text"
    path.write_text("a b\n" * 100)
    (part,) = cut_texts(path, 2).parts[0]

    def read_texts(*given: Any) -> Any:
        path.write_text("a b\n" * 101)
        return encode.read_texts(*given)

    monkeypatch.setattr(parts, "read_texts", read_texts)
    with pytest.raises(InputError, match="changed while it was read"):
        count_part([part], config_of(), tmp_path)


def test_a_bad_byte_is_told_with_its_place_in_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encode, "BLOCK", 256)
    monkeypatch.setattr(cutting, "_CHUNK", 1000)
    path = tmp_path / "text"
    path.write_bytes(b"some words here\n" * 1000 + b"and \xc3( not \xff\0\n" + b"more words\n" * 200)
    bad = cut_texts(path, 3).parts[2]
    assert bad[0].first > 9000
    with pytest.raises(InputError, match=r"text:1001: byte 0xc3, byte 16,005 of the text, is not UTF-8"):
        count_part(bad, config_of(), tmp_path, 2)
    config = config_of(invalid_utf8="replace")
    parted = read_parts([path], 3, config, tmp_path)
    check(parted, path, config)
    assert parted.text.notes == ("1 NUL byte read as white space.", "2 bytes not UTF-8, read as `?`.")


def test_the_words_of_all_parts_decide(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("a a a b b c\na a a b d e\n")
    parted = read_parts(path, 2, config_of(min_count=3), tmp_path)
    check(parted, path, config_of(min_count=3))
    assert parted.text.words == ("a", "b")
    assert parted.ids == [[0, 0, 0, 1, 1, -1], [0, 0, 0, 1, -1]]
    counts = [count_part(part, config_of(), tmp_path).counts for part in cut_texts(path, 2).parts]
    kept = vocabulary_of(counts, config_of(min_count=3), "text", keep=["e", "zebra"])
    assert (kept.words, kept.counts.tolist()) == (("a", "b", "e"), [6, 3, 1])
    with pytest.raises(InputError, match="text: no word occurs 9 times; the most frequent one, `a`, occurs 6 times"):
        vocabulary_of(counts, config_of(min_count=9), "text")
    with pytest.raises(InputError, match="give a list of words"):
        vocabulary_of(counts, config_of(), "text", keep="e")


def test_parts_without_words(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("a b\n" * 4 + "\n" * 16)
    parted = read_parts(path, 2, config_of(), tmp_path)
    check(parted, path, config_of())
    assert parted.ids == [[0, 1, -1] * 4, []]
    path.write_text(" \n" * 99)
    counts = [count_part(part, config_of(), tmp_path).counts for part in cut_texts(path, 2).parts]
    with pytest.raises(InputError, match=r"text: no words; is the file empty\?"):
        vocabulary_of(counts, config_of(), "text")


def test_more_words_than_a_node_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wordtables, "_FIRST", 2)
    path = tmp_path / "text"
    path.write_text(" ".join(f"w{k}" for k in range(100)))
    for nodes, fits in ((1, False), (2, True)):
        (part, *_) = cut_texts(path, nodes).parts
        for threads in (1, 3):
            if fits:
                assert len(count_part(part, config_of(max_vocabulary=64), tmp_path, threads).counts.counts) > 45
                continue
            with pytest.raises(InputError, match=r"more than 64 different words, .*raise --max-vocabulary to 128"):
                count_part(part, config_of(max_vocabulary=64), tmp_path, threads)


def test_bytes_are_shared_out_evenly() -> None:
    for loads, more, expected in (
        ([0, 0, 0], 9, [3, 3, 3]), ([5, 0, 1], 9, [0, 5, 4]), ([5, 0, 1], 0, [0, 0, 0]), ([9, 9], 2, [1, 1]),
        ([4], 7, [7]),
    ):  # fmt: skip
        assert cutting._shares(loads, more) == pytest.approx(expected)
