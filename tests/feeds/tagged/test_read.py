"""Which format a file has: as the user says, by name, by content."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

import pytest

from feeds.tagged.files import VERSE, read
from hogwild.config import TaggingConfig
from hogwild.errors import HogwildError, InputError
from hogwild.feeds.tagged.read import read_tagged
from hogwild.feeds.tagged.write import write_tagged

JSON = json.dumps({"tokens": ["{", "a"], "tags": ["O", "O"]}) + "\n"
ROW = "1\tVas\taller\tVERB\tV\t_\t0\troot\t_\t_\n"
SEGMENTED = "大 多数 的 加长 型 礼车\n这种 车辆 如果 归 私人\n动作 冒险 游戏\n其 测试 包含 了 美术 治疗 法\n"
GUESS = "to judge by the first lines"


@pytest.mark.parametrize(
    ("name", "data", "form", "guessed"),
    [
        ("a.conllu", ROW, "conllu", False),
        ("a.jsonl", JSON, "jsonl", False),
        ("a.JSON", JSON, "jsonl", False),
        ("a.ndjson", JSON, "jsonl", False),
        ("a.conll", VERSE, "conll", False),
        ("a.txt", VERSE, "conll", False),
        ("a.txt", "# x\n\n" + VERSE.replace(" ", "\t"), "conll", False),
        ("a.txt", "\n" + JSON, "jsonl", True),
        ("a.txt", '{"tokens": ["' + "x" * (1 << 21) + '"], "tags": ["O"]}', "jsonl", True),
        ("a.txt", "{ ( O\n} ) O\n", "conll", False),
        ("a.txt", "# text\n" + ROW, "conllu", True),
        ("a.txt", ROW.replace("1\t", "x\t"), "conll", False),
        ("a.txt", SEGMENTED, "segmented", True),
        ("a.txt", "to be or\nnot to be\n", "conll", False),
    ],
)
def test_by_name_and_content(tmp_path: Path, name: str, data: str, form: str, guessed: bool) -> None:
    (tmp_path / name).write_text(data)
    (tmp_path / f"{name}.gz").write_bytes(gzip.compress(data.encode()))
    for path in (tmp_path / name, tmp_path / f"{name}.gz"):
        text = read_tagged(path, TaggingConfig())
        assert text.schema["format"] == form
        assert any(GUESS in note for note in text.notes) == guessed


def test_in_doubt_it_is_columns(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"a\.txt:4: expected 2 columns, found 3\. Correct the line, check --format"):
        read(tmp_path / "a.txt", "a b\nc d\ne f\ng h i\nj k l\n")
    with pytest.raises(InputError, match=r"a\.txt: \d columns found, 2 expected"):  # columns that have names
        read(tmp_path / "a.txt", SEGMENTED, columns=("w", "tag"))
    assert any("Columns: w, pos" in note for note in read(tmp_path / "a.txt", VERSE).notes)


def test_what_the_user_says_goes_first(tmp_path: Path) -> None:
    text = read(tmp_path / "a.jsonl", SEGMENTED, format="segmented")
    assert text.schema["format"] == "segmented"
    assert text.notes == ()


def test_the_model_goes_before_the_name(tmp_path: Path) -> None:
    schema = read(tmp_path / "a.txt", SEGMENTED).schema
    text = read(tmp_path / "a.txt", "to be or\nnot to be\n", schema, with_tags=False)
    assert len(text) == 2
    assert text.tokens == 13


def test_two_formats_at_a_time(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(VERSE)
    (tmp_path / "b.jsonl").write_text(JSON)
    (tmp_path / "c.txt").write_text("\n")
    with pytest.raises(InputError, match=r"a\.txt looks like columns, but .*b\.jsonl like JSON lines"):
        read_tagged([tmp_path / "a.txt", tmp_path / "b.jsonl"], TaggingConfig())
    assert len(read_tagged([tmp_path / "c.txt", tmp_path / "b.jsonl"], TaggingConfig())) == 1


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        read_tagged(tmp_path / "none.txt", TaggingConfig())
    with pytest.raises(InputError, match="no file matches"):
        read_tagged(str(tmp_path / "*.conll"), TaggingConfig())
    with pytest.raises(InputError, match="is a directory"):
        read_tagged(tmp_path, TaggingConfig())


PIECES = [
    b"a", b"B-NP", b"#", b"# ", b"-DOCSTART-", b"\t", b" ", b"\n", b"\n\n", b"\r\n", b"\r", b"{", b'["x"]', b"1-2",
    b'{"tokens": ["a"], "tags": ["b"]}\n', b"\xff", b"\0", b"\xef\xbb\xbf", "水".encode(), "\u3000".encode(), b"\x0c",
    ROW.encode(), b"a b c\n", b"a\tb\n", b"\\ud800", b'"tags"',
]  # fmt: skip


@pytest.mark.parametrize("seed", range(150))
def test_whatever_is_in_a_file_gets_one_line(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    pieces = rng.sample(PIECES, rng.randint(1, 8))
    path = tmp_path / f"a{rng.choice(['.txt', '.conllu', '.jsonl'])}"
    options = {
        "format": rng.choice(["auto", "conll", "conllu", "segmented", "jsonl"]),
        "bad_lines": rng.choice(["stop", "skip"]),
        "bad_share": rng.choice([0.01, 1.0]),
        "invalid_utf8": rng.choice(["stop", "replace"]),
        "columns": rng.choice([(), (), ("w", "tag"), ("w",), ("w", "-", "-")]),
        "tag_column": rng.choice(["", "", "1", "-1", "tag", "0"]),
    }
    data, with_tags, said = b"".join(rng.choices(pieces, k=rng.randint(0, 60))), rng.random() < 0.5, "nothing"
    try:
        text = read(path, data, with_tags=with_tags, **options)
        assert "".join(write_tagged(text, ["T"] * text.tokens)).encode()
    except HogwildError as error:
        said = str(error)
    assert said
    assert "\n" not in said
