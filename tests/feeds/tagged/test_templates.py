"""Feature templates: what is read from their text, what their transforms make, what is said of mistakes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hogwild.config import TaggingConfig
from hogwild.errors import InputError
from hogwild.feeds.tagged.open import open_tagging
from hogwild.feeds.tagged.templates import PRESETS, TRANSFORMS, open_templates, parse_templates, preset_of


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("w[0]", "w[0]"),
        ("  w [ -1 ] |\tw[+2]  # a pair", "w[-1]|w[2]"),
        ("suffix( lower(w) , 3 )[0]", "suffix(lower(w),3)[0]"),
        ("same(w)[0,-2]|class(w)[0]", "same(w)[0,-2]|class(w)[0]"),
        ("same(lower(w))[1,-1]", "same(lower(w))[1,-1]"),
        ("same[0]", "same[0]"),
        ("bias", "bias"),
        ("bias[0]", "bias[0]"),
        ("x.y-z:1[0]|Größe[1]", "x.y-z:1[0]|Größe[1]"),
        ("w[-0]", "w[0]"),
        ("a#@b[0] #a comment", "a#@b[0]"),
    ],
)
def test_a_line_and_its_plain_form(line: str, expected: str) -> None:
    templates = parse_templates(line)
    assert templates.lines() == [expected]
    assert parse_templates(templates.lines()).items[0].atoms == templates.items[0].atoms


@pytest.mark.parametrize(
    ("line", "column", "said"),
    [
        ("w", 2, "expected `[`; the line ends"),
        ("w[0", 4, "expected `]`; the line ends"),
        ("w[x]", 3, "expected an offset between -100 and 100; found `x]`"),
        ("w[101]", 3, "expected an offset"),
        ("w[99999999999999999999]", 3, "expected an offset"),
        ("w[0]w[1]", 5, "expected `|` or the end of the line; found `w[1]`"),
        ("w[0]|", 6, "expected a column, such as w[0]"),
        ("|w[0]", 1, "expected a column"),
        ("w[0,1]", 4, "expected `]`"),
        ("pos[0]|lowr(w)[0]", 8, "unknown transform `lowr` (did you mean lower?)"),
        ("prefix(w)[0]", 9, "expected `,`"),
        ("prefix(w,0)[0]", 10, "expected a number of characters between 1 and 100"),
        ("lower(w,3)[0]", 8, "expected `)`"),
        ("lower(same(w))[0]", 7, "cannot stand inside a transform"),
        ("same(w)[0]", 10, "expected `,`"),
        ("same(w)[1,1]", 12, "two different offsets"),
        ("w[0]|bias", 6, "stands alone"),
        ("w=x[0]", 2, "expected `[`"),
    ],
)
def test_mistakes_are_placed(line: str, column: int, said: str) -> None:
    with pytest.raises(InputError) as error:
        parse_templates(f"# mine\nw[5]\n{line}\n", "own.txt")
    assert str(error.value).startswith(f"own.txt:3:{column}: ")
    assert said in str(error.value)
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "own.txt: no templates"),
        ("# nothing\n\n", "own.txt: no templates"),
        ("w[0]\nw[ 0 ]\n", "own.txt:2: the template `w[0]` stands at own.txt:1 too"),
        ("@include chunking\nw[0]\n", "own.txt:2: the template `w[0]` stands at chunking:4 too"),
        ("@include chonking\n", "own.txt:1: @include needs one preset, not `chonking` (did you mean chunking?)"),
        ("@include\n", "own.txt:1: @include needs one preset"),
        ("@use chunking\n", "own.txt:1: unknown command `@use`"),
    ],
)
def test_mistakes_in_files(text: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own.txt").write_text(text)
    with pytest.raises(InputError) as error:
        open_templates("own.txt")
    assert str(error.value).startswith(said)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"neither a preset \(chunking, chunking-more, pos, .*did you mean chunking"):
        open_templates("chunkin")
    with pytest.raises(InputError, match="needs a readable file"):
        open_templates(str(tmp_path))
    path = tmp_path / "latin"
    path.write_bytes("w[0] # größer".encode("latin-1"))
    with pytest.raises(InputError, match="byte 9 is not UTF-8"):
        open_templates(str(path))


def test_a_file_with_a_preset(tmp_path: Path) -> None:
    path = tmp_path / "own.txt"
    path.write_bytes("\ufeff@include chunking  # all of it\r\n\r\nlower(w)[0]\r\n".encode())
    assert open_templates(str(path)).lines() == [*open_templates("chunking").lines(), "lower(w)[0]"]


def test_presets() -> None:
    counts = {name: len(open_templates(name)) for name in PRESETS}
    assert counts["chunking"] == 19
    assert counts["chunking-more"] == 33
    single = {"words": 1, "words-shapes": 6, "words-pos": 7, "characters": 3}
    assert {name: counts[name] for name in single} == single
    assert set(counts) == {"chunking", "chunking-more", "pos", "segmentation", *single}
    assert open_templates("words-pos").lines() == [*open_templates("words-shapes").lines(), "pos[0]"]
    for name in ("pos", "segmentation", "words", "words-shapes", "characters"):
        assert {atom.column for template in open_templates(name).items for atom in template.atoms} == {"w"}


def test_each_preset_is_told_by_its_templates() -> None:
    assert [preset_of(open_templates(name)) for name in PRESETS] == list(PRESETS)


def test_without_a_name_it_is_what_the_caller_says() -> None:
    assert TaggingConfig().with_features("words").features == "words"
    assert TaggingConfig(features="pos").with_features("words").features == "pos"


def test_text_without_gaps_has_the_features_of_characters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its format goes by its content, whatever the features."""
    monkeypatch.setenv("HOGWILD_CACHE", str(tmp_path / "cache"))
    (tmp_path / "words.txt").write_text("to be or not to be\nthat is the question\nto die to sleep no\nno more and\n")
    for features in ("segmentation", "characters"):
        feed = open_tagging(tmp_path / "words.txt", TaggingConfig(features=features))
        assert (feed.schema["format"], feed.schema["preset"]) == ("segmented", features)
    assert {"w[0]=q", "w[-1]|w[0]=q|u", "class(w)[0]=letter"} <= set(feed.names)


def test_columns_are_checked() -> None:
    templates = parse_templates("w[0]\nw[0]|tga[1]\n", "own.txt")
    templates.check_columns(["w", "tga"])
    with pytest.raises(InputError) as error:
        templates.check_columns(["w", "tag"])
    assert "own.txt:2: the template `w[0]|tga[1]` looks at the column `tga` (did you mean tag?)" in str(error.value)
    assert "the columns are `w`, `tag`" in str(error.value)


@pytest.mark.parametrize(
    ("name", "number", "value", "expected"),
    [
        ("lower", 0, "ÄB", "äb"),
        ("prefix", 3, "große", "gro"),
        ("prefix", 3, "ab", None),
        ("suffix", 2, "große", "ße"),
        ("suffix", 2, "a", None),
        ("suffix", 2, "ab", "ab"),
        ("shape", 0, "McDonald-90,5", "XxXx-d,d"),
        ("fullshape", 0, "McDon-90", "XxXxx-dd"),
        ("shape", 0, "东京Tower", "aXx"),
        ("shape", 0, "...", "."),
        ("shape", 0, "", ""),
        ("digits", 0, "3,14 km", "0,00 km"),
        ("class", 0, "2004", "digit"),
        ("class", 0, "5", "digit"),
        ("class", 0, "abc", "letter"),
        ("class", 0, "京", "cjk"),
        ("class", 0, "三", "numeral"),
        ("class", 0, "か", "hiragana"),
        ("class", 0, "カ", "katakana"),
        ("class", 0, "ー", "katakana"),
        ("class", 0, "한", "hangul"),
        ("class", 0, "。", "punctuation"),
        ("class", 0, "€", "symbol"),
        ("class", 0, "a1", "mixed"),
        ("class", 0, "", None),
        ("hasdigit", 0, "a1", "1"),
        ("hasdigit", 0, "ab", None),
        ("hashyphen", 0, "well-known", "1"),
        ("hashyphen", 0, "a–b", "1"),
        ("hashyphen", 0, "ab", None),
        ("hasupper", 0, "aB", "1"),
        ("hasupper", 0, "ab", None),
    ],
)
def test_transforms(name: str, number: int, value: str, expected: str | None) -> None:
    assert TRANSFORMS[name].make(value, number) == expected


# -- files of CRF++ -------------------------------------------------------------------------------------------------

CHUNKING = """# Unigram
U00:%x[-2,0]
U01:%x[-1,0]
U02:%x[0,0]
U03:%x[1,0]
U04:%x[2,0]
U05:%x[-1,0]/%x[0,0]
U06:%x[0,0]/%x[1,0]

U10:%x[-2,1]
U11:%x[-1,1]
U12:%x[0,1]
U13:%x[1,1]
U14:%x[2,1]
U15:%x[-2,1]/%x[-1,1]
U16:%x[-1,1]/%x[0,1]
U17:%x[0,1]/%x[1,1]
U18:%x[1,1]/%x[2,1]

U20:%x[-2,1]/%x[-1,1]/%x[0,1]
U21:%x[-1,1]/%x[0,1]/%x[1,1]
U22:%x[0,1]/%x[1,1]/%x[2,1]

# Bigram
B
"""  # the template of CRF++ for CoNLL-2000, as it comes with it


def test_a_file_of_crfpp_is_read_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOGWILD_CACHE", str(tmp_path / "cache"))
    (tmp_path / "template").write_text(CHUNKING)
    (tmp_path / "train.txt").write_text("to TO B-VP\nbe VB I-VP\n\nor CC O\nnot RB O\n")
    config = TaggingConfig(features=str(tmp_path / "template"))
    feed = open_tagging(tmp_path / "train.txt", config)
    assert sorted(feed.schema["templates"]) == sorted(open_templates("chunking").lines())
    usual = open_tagging(tmp_path / "train.txt")
    assert sorted(feed.names) == sorted(usual.names)
    named = open_tagging(tmp_path / "train.txt", replace(config, columns=("form", "tag", "chunk"), tag_column="chunk"))
    assert "form[-1]|form[0]=to|be" in named.names
    again = open_tagging(tmp_path / "train.txt", schema=feed.schema, names=feed.names, tags=feed.tags)
    assert again.samples.ids.tolist() == feed.samples.ids.tolist()


def test_odd_lines_of_crfpp() -> None:
    templates = parse_templates("U:%x[ +1 , 0 ]\nU99\nB\nB01:%x[0,1]\nU1:%x[1,0]\nlower(w)[0]\n", "t")
    assert templates.lines() == ["%0[1]", "bias", "%1[0]", "lower(w)[0]"]
    assert len(templates.notes) == 1
    assert "t:4: features of `B01:%x[0,1]` weigh pairs of tags where they have rich edges" in templates.notes[0]
    assert templates.named(["form", "pos", "tag"], 2).lines() == ["form[1]", "bias", "pos[0]", "lower(w)[0]"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("B", "t: no templates"),
        ("U00:%x[0]", "t:1: expected %x[ROW,COLUMN], such as %x[-1,0]; found `U00:%x[0]`"),
        ("U00:%x[0,0]/%m[1,2]", "t:1: expected %x[ROW,COLUMN]"),
        ("U00:%x[200,0]", "t:1: expected a row between -100 and 100"),
        ("U:%x[-1,0]\nU:%x[1,0]", "t:2: `U:%x[1,0]` has the name of `U:%x[-1,0]` at t:1, which in CRF++ makes one"),
    ],
)
def test_mistakes_in_lines_of_crfpp(text: str, said: str) -> None:
    with pytest.raises(InputError) as error:
        parse_templates(text, "t")
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("place", "said"),
    [(2, "but holds the tags"), (3, "but there are 3, from 0 on"), (1, "but it is not for features")],
)
def test_columns_of_crfpp_are_checked(place: int, said: str) -> None:
    with pytest.raises(InputError) as error:
        parse_templates(f"U1:%x[0,{place}]", "t").named(["w", "-", "tag"], 2)
    assert f"t:1: looks at column {place} of the text, {said}; see --columns" in str(error.value)
