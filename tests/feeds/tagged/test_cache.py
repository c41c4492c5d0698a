"""Tagged text from files: read, encoded, kept on disk, found again, and never trusted blindly."""

from __future__ import annotations

import io
import json
import lzma
import os
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hogwild.cli.main import main
from hogwild.config import TaggingConfig
from hogwild.errors import InputError, ModelError
from hogwild.feeds.storage import cache
from hogwild.feeds.tagged import open as taggingreader
from hogwild.feeds.tagged.feed import TaggingFeed
from hogwild.feeds.tagged.lists import tagging_of
from hogwild.feeds.tagged.open import open_tagging
from reference import tagging as twin

TEXT = "the D B\ncat N I\nsat V O\n\nthe D B\ndog N I\n\nÜber X O\n"
OTHER = "the D B\nbird N E\n"
CHUNKING = TaggingConfig()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "train.txt"
    path.write_text(TEXT)
    return path


@pytest.mark.parametrize(
    ("lines", "preset"),
    [(TEXT, "chunking"), ("cat N\nsat V\n\nthe D\n", "pos"), ("the cat sat\na dog\n", "segmentation")],
)
def test_features_go_by_the_columns_where_nobody_names_them(tmp_path: Path, lines: str, preset: str) -> None:
    path = tmp_path / "text"
    path.write_text(lines)
    named = TaggingConfig(features=preset, format="segmented" if preset == "segmentation" else "auto")
    feed, same = open_tagging(path, replace(named, features="")), open_tagging(path, named)
    assert (feed.names, feed.tags, feed.schema) == (same.names, same.tags, same.schema)
    assert feed.schema["preset"] == preset
    assert f"Features {preset}, by the columns (--features says otherwise)." in feed.notes
    assert open_tagging(path, replace(named, features="")).notes == feed.notes, "from the cache too"


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """One item for each time that files are read."""
    made: list[Any] = []
    read = taggingreader.read_sources

    def counted(paths: Any, *arguments: Any, **options: Any) -> Any:
        made.append(paths)
        return read(paths, *arguments, **options)

    monkeypatch.setattr(taggingreader, "read_sources", counted)
    return made


def parts(feed: TaggingFeed) -> dict[str, Any]:
    """All of a feed that can be compared, without the name of its file and of its entry."""
    found = {name: getattr(feed, name) for name in ("names", "tags", "schema", "strange", "unknown", "notes")}
    found["arrays"] = [array.tolist() for array in (*feed.samples, feed.counts)]
    if feed.text is not None:
        found["text"] = twin.rows_of(feed.text), feed.text.notes, feed.text.schema
        found["tagged"] = twin.tags_of(feed.text) if feed.text.tags else None
    return found


def test_found_again_as_it_was(file: Path, reads: list[Any]) -> None:
    fresh = open_tagging(file, replace(CHUNKING, cache=False))
    first, second = open_tagging(file), open_tagging(str(file))
    assert len(reads) == 2
    assert parts(fresh) == parts(first) == parts(second)
    assert second.fingerprint == first.fingerprint != ""
    assert second.source == str(file)
    assert isinstance(second.samples.ids, np.ndarray)
    rows = twin.rows_of(first.text)  # type: ignore[arg-type]
    assert [[row["w"] for row in sentence] for sentence in rows] == [["the", "cat", "sat"], ["the", "dog"], ["Über"]]
    lines = first.schema["templates"]
    named = twin.named_rows(second.samples, second.names)
    assert [set(row) for row in named] == [set(twin.features_at(lines, s, i)) for s in rows for i in range(len(s))]
    assert first.tags == ("B", "I", "O")
    (entry,) = cache.entries()
    assert (entry.rows, entry.unit, entry.sources) == (6, "tokens", (str(file),))


def test_whatever_matters_makes_another_entry(file: Path, tmp_path: Path, reads: list[Any]) -> None:
    own = tmp_path / "own.txt"
    own.write_text("w[0]\n")
    model = open_tagging(file)
    calls: list[Any] = [
        lambda: open_tagging(file, TaggingConfig(min_count=2)),
        lambda: open_tagging(file, TaggingConfig(features="pos")),
        lambda: open_tagging(file, TaggingConfig(features=str(own))),
        lambda: open_tagging(file, TaggingConfig(columns=("w", "tag", "pos"), features="pos")),
        lambda: open_tagging(file, names=model.names),
        lambda: open_tagging(file, names=model.names[1:]),
        lambda: open_tagging(file, names=model.names, tags=model.tags),
        lambda: open_tagging(file, names=model.names, tags=model.tags[::-1]),
        lambda: open_tagging([file, file]),
    ]
    made = [parts(call()) for call in calls]
    assert len(reads) == len(cache.entries()) == 10
    assert [parts(call()) for call in calls] == made
    assert len(reads) == 10
    own.write_text("w[1]\n")
    assert open_tagging(file, TaggingConfig(features=str(own))).schema["templates"] == ["w[1]"]
    own.write_text("# changed\n\nw[0]\n")  # the same templates
    open_tagging(file, TaggingConfig(features=str(own)))
    assert len(reads) == 11
    file.write_text(OTHER)
    assert len(open_tagging(file)) == 1
    assert len(reads) == 12


def test_with_a_model(file: Path, tmp_path: Path, reads: list[Any]) -> None:
    model = open_tagging(file, TaggingConfig(features="chunking", min_count=2))
    valid = tmp_path / "valid.txt.xz"
    valid.write_bytes(lzma.compress(OTHER.encode()))
    # The model says which features there are, not the options of this run.
    given = TaggingConfig(features="segmentation")
    feeds = [open_tagging(valid, given, schema=model.schema, names=model.names, tags=model.tags) for _ in range(2)]
    assert len(reads) == 2
    assert parts(feeds[0]) == parts(feeds[1])
    rows = twin.rows_of(feeds[0].text)  # type: ignore[arg-type]
    all_names = [name for i in range(2) for name in twin.features_at(model.schema["templates"], rows[0], i)]
    assert feeds[0].unknown == sum(name not in model.names for name in all_names) > 0
    assert feeds[0].strange == {"E": 1}
    assert feeds[0].samples.tags.tolist() == [0, -1]
    assert any("`E` (1)" in note for note in feeds[0].notes)
    assert feeds[0].schema == model.schema


@pytest.mark.parametrize("damage", ["ids", "words", "letters", "codes", "columns", "tags", "header", "text", "cut"])
def test_a_damaged_entry_is_made_again(file: Path, reads: list[Any], damage: str) -> None:
    good = parts(open_tagging(file))
    directory = Path(cache.feeds_home() / cache.entries()[0].key)
    if damage == "header":
        (directory / "feed.json").write_text("{}")
    elif damage == "text":
        header = json.loads((directory / "feed.json").read_text())
        header["text"]["columns"][0][1] += 1
        (directory / "feed.json").write_text(json.dumps(header))
    elif damage == "cut":
        (directory / "starts").write_bytes(b"")
    else:
        data = bytearray((directory / damage).read_bytes())
        data[3] = 0xC1  # a large or negative number, a byte that is not UTF-8
        (directory / damage).write_bytes(data)
    assert parts(open_tagging(file)) == good
    assert len(reads) == 2


def test_text_for_prediction_is_read_whole(file: Path) -> None:
    model = open_tagging(file)
    plain = file.with_name("plain.txt")
    plain.write_text("the D\ncat N\n")
    feed = open_tagging(plain, schema=model.schema, names=model.names, tags=model.tags, with_tags=False)
    assert feed.text is not None
    assert feed.text.origin is not None
    assert feed.samples.tags.tolist() == [-1, -1]
    assert (feed.tags, feed.strange) == (model.tags, {})
    assert len(cache.entries()) == 1


def test_what_can_be_read_only_once_is_kept_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reads: list[Any]
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(TEXT,))
    writer.start()
    feed = open_tagging(pipe)
    writer.join()
    assert feed.tokens == 6
    assert (len(reads), len(cache.entries())) == (1, 1)
    for _ in range(2):  # found by what it holds
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode())))
        assert parts(open_tagging("-")) == parts(feed)
        assert (len(reads), len(cache.entries())) == (1, 1)


def test_templates_and_columns_must_fit(file: Path) -> None:
    with pytest.raises(InputError, match=r"chunking:7: .* `pos`.*the columns are `w`, `x`"):
        open_tagging(file, TaggingConfig(columns=("w", "x", "tag"), features="chunking"))
    with pytest.raises(InputError, match="neither a preset"):
        open_tagging(file, TaggingConfig(features="chunky"))
    with pytest.raises(InputError, match="does not exist"):
        open_tagging(file.with_name("none.txt"))


def test_a_function_of_features(file: Path, reads: list[Any]) -> None:
    def words(sentence: list[dict[str, str]], i: int) -> dict[str, Any]:
        return {"w": sentence[i]["w"], "first": i == 0, "length": len(sentence[i]["w"])}

    feed = open_tagging(file, features=words)
    assert feed.names[0] == "length"
    assert {"w:the", "w:Über", "first"} < set(feed.names)
    assert feed.schema["columns"] == ["w", "pos", "tag"]
    assert cache.entries() == []
    again = open_tagging(file, schema=feed.schema, names=feed.names, tags=feed.tags, features=words)
    assert parts(again)["arrays"] == parts(feed)["arrays"]
    for schema in (feed.schema, tagging_of([[["a"]]], [["X"]]).schema):
        with pytest.raises(InputError, match="features that Python made"):
            open_tagging(file, schema=schema, names=feed.names, tags=feed.tags)


def test_damaged_schemas(file: Path) -> None:
    schema = open_tagging(file).schema
    for templates in ("w[0]", [3], None, ["w[0"], []):
        with pytest.raises(ModelError, match="the model is damaged"):
            open_tagging(file, schema={**schema, "templates": templates})
    for least in ("2", 0, None, True):
        with pytest.raises(ModelError, match="min_count is"):
            open_tagging(file, schema={**schema, "min_count": least})
    with pytest.raises(InputError, match="looks at the column `nope`"):
        open_tagging(file, schema={**schema, "templates": ["nope[0]"]})


def test_the_cache_lists_tokens(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    open_tagging(file)
    capsys.readouterr()
    assert main(["cache", "list"]) == 0
    assert "6 tokens" in capsys.readouterr().out
