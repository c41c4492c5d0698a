"""`hogwild evaluate` and `hogwild predict` with a tagger."""

from __future__ import annotations

import io
import json
import lzma
import subprocess
import sys
from itertools import pairwise

import pytest
from seqeval.metrics import f1_score

from cli.conftest import SERIAL
from cli.sentences import TAGS, write_sentences, write_words
from hogwild import convert_tags, load_model, save_model
from hogwild.cli.apply import lines, taggers
from hogwild.config import TaggingConfig
from hogwild.feeds.tagged.read import read_tagged
from hogwild.machine import check_memory


def sentences_of(text):
    """Sentences of lines of columns."""
    return [[line.split() for line in block.splitlines()] for block in text.strip().split("\n\n")]


def column_of(text, place):
    """One column over all sentences."""
    return [row[place] for sentence in sentences_of(text) for row in sentence]


def talk(model, *words):
    """A command that reads what is sent to it."""
    command = [sys.executable, "-m", "hogwild", "predict", str(model), "-", *words]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_sentences_are_answered_as_they_come(hogwild, tagged, tagger):
    """A sentence of columns with its empty line, before the next one is sent; then one without it at the end."""
    expected = hogwild("predict", tagger, tagged / "test.txt").out.split("\n\n")
    sentences = (tagged / "test.txt").read_text().split("\n\n")[:4]
    with talk(tagger, "--quiet") as run:
        for sentence, answer in zip(sentences[:3], expected, strict=False):
            run.stdin.write(sentence + "\n\n")
            run.stdin.flush()
            assert [run.stdout.readline() for _ in answer.split("\n")] == [f"{row}\n" for row in answer.split("\n")]
            assert run.stdout.readline() == "\n"
        run.stdin.write(sentences[3])
        run.stdin.close()
        assert run.stdout.read() == expected[3] + "\n\n"
        assert run.wait() == 0


@pytest.mark.parametrize("sent", [b"", b"\n\n", b"# only a comment\n\n"])
def test_standard_input_without_a_sentence(hogwild, tagger, monkeypatch, sent):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(sent)))
    said = hogwild("predict", tagger, "-")
    assert said.code == 2
    assert "no sentences" in said.err


def test_what_comes_in_parts_is_the_same_and_errors_have_their_lines(hogwild, tagged, tagger, monkeypatch):
    data = (tagged / "test.txt").read_bytes()
    expected = hogwild("predict", tagger, tagged / "test.txt").out
    monkeypatch.setattr(lines, "_MOST", 200)
    for sent in (data, data.replace(b"\n", b"\r\n"), lzma.compress(data)):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(sent)))
        said = hogwild("predict", tagger, "-")
        assert said.out == expected, said.err
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data.rstrip() + b"\n\nx\n\n")))
    said = hogwild("predict", tagger, "-")
    assert said.code == 2
    assert f"standard input:{data.rstrip().count(10) + 3}" in said.err, said.err


# -- evaluation ------------------------------------------------------------------------------------------------------


def test_the_table_of_an_evaluation(hogwild, tagged, tagger):
    said = hogwild("evaluate", tagger, tagged / "test.txt")
    lines = said.out.splitlines()
    assert lines[0].endswith("% with the right tag")
    assert lines[1].startswith("80 sentences, ")
    assert lines[3].split() == ["type", "precision", "recall", "f1", "support", "found"]
    assert [line.split()[0] for line in lines[4:7]] == ["NP", "VP", "all"]
    assert lines[-1].startswith("loss 0.")


def test_scores_are_those_of_seqeval(hogwild, tagged, tagger, tmp_path):
    hard = (tagged / "test.txt").read_text().replace("walk", "watch").replace(" MD ", " NN ").replace("every DT", "x y")
    (tmp_path / "hard.txt").write_text(hard)
    predicted = sentences_of(hogwild("predict", tagger, tmp_path / "hard.txt").out)
    gold, guess = ([[row[place] for row in sentence] for sentence in predicted] for place in (2, 3))
    found = hogwild("evaluate", tagger, tmp_path / "hard.txt", "--json").json
    assert 0.3 < found["metrics"]["f1"] < 0.99
    assert found["metrics"]["f1"] == pytest.approx(f1_score(gold, guess))
    rows = [row for sentence in predicted for row in sentence]
    assert found["metrics"]["accuracy"] == pytest.approx(sum(row[2] == row[3] for row in rows) / len(rows))
    assert {row["name"] for row in found["per_type"]} == {"NP", "VP"}
    assert sum(row["support"] for row in found["per_type"]) == found["counts"]["support"]


def test_a_tag_never_seen_is_scored_as_wrong_and_named(hogwild, tagged, tagger, tmp_path):
    (tmp_path / "t.txt").write_text((tagged / "test.txt").read_text().replace(" O\n", " B-END\n", 7))
    said = hogwild("evaluate", tagger, tmp_path / "t.txt", "--json")
    assert said.json["unseen"] == {"B-END": 7}
    (row,) = (row for row in said.json["per_type"] if row["name"] == "END")
    assert (row["support"], row["found"], row["f1"]) == (7, 0, 0)
    assert "note: 7 tokens of " in said.err
    assert "`B-END` (7)" in said.err


def test_constrained_tags_follow_their_scheme(hogwild, tmp_path):
    """A model that has seen I after O gives such tags, unless it is held to the scheme."""
    (tmp_path / "t.txt").write_text("a x O\nb y I-A\n\na x O\nc y B-A\nb y I-A\n\nc y B-A\nb y I-A\nb y I-A\n\n" * 20)
    (tmp_path / "own.txt").write_text("w[0]\n")
    words = ["train", "tagger", tmp_path / "t.txt", *SERIAL, "--features", tmp_path / "own.txt", "--lr", 0.1]
    assert hogwild(*words, "--output", tmp_path / "m").code == 0
    words = [tmp_path / "m", tmp_path / "t.txt"]
    free, held = (sentences_of(hogwild("predict", *words, *more).out)[0] for more in ((), ("--constrain",)))
    assert [row[3] for row in free] == ["O", "I-A"]
    assert [row[3] for row in held] in (["O", "O"], ["O", "B-A"], ["B-A", "I-A"])
    both = [hogwild("evaluate", *words, *more, "--json").json for more in ((), ("--constrain",))]
    assert [found["constrain"] for found in both] == [False, True]
    assert both[0]["metrics"]["accuracy"] == 1 > both[1]["metrics"]["accuracy"]
    assert both[0]["metrics"]["loss"] == both[1]["metrics"]["loss"]


# -- prediction ------------------------------------------------------------------------------------------------------


def test_columns_come_back_with_the_tag_appended(hogwild, tagged, tagger, tmp_path):
    words = ["predict", tagger, tagged / "test.txt"]
    out = hogwild(*words).out
    assert "".join(line.rpartition(" ")[0] + "\n" for line in out.splitlines()) == (tagged / "test.txt").read_text()
    assert set(column_of(out, 3)) == TAGS
    found = hogwild(*words, "--output", tmp_path / "out.xz", "--json").json
    assert (found["samples"], set(found["classes"])) == (80, TAGS)
    assert lzma.decompress((tmp_path / "out.xz").read_bytes()).decode() == out


def test_a_few_sentences_at_a_time_are_as_good(hogwild, tagged, tagger, monkeypatch):
    asked = [("predict", tagger, tagged / "test.txt", *more) for more in ((), ("--proba",), ("--nbest", 2))]
    whole = [hogwild(*words).out for words in asked]
    monkeypatch.setattr(taggers, "_AT_ONCE", 7)  # fewer tokens than some sentences have
    assert [hogwild(*words).out for words in asked] == whole


def test_files_without_tags_and_standard_input(hogwild, tagged, tagger, tmp_path, monkeypatch):
    expected = column_of(hogwild("predict", tagger, tagged / "test.txt").out, 3)
    bare = write_sentences(tmp_path / "bare.txt", 80, seed=1, columns=(0, 1))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(bare.read_bytes())))
    for name in (bare, "-"):
        assert column_of(hogwild("predict", tagger, name).out, 2) == expected


def test_probabilities(hogwild, tagged, tagger):
    chances = [float(value) for value in column_of(hogwild("predict", tagger, tagged / "test.txt", "--proba").out, 4)]
    assert all(0.2 < chance <= 1 for chance in chances)
    assert len(set(chances)) > 10


def test_the_best_paths_with_their_probabilities(hogwild, tagged, tagger):
    best = hogwild("predict", tagger, tagged / "test.txt").out
    blocks = hogwild("predict", tagger, tagged / "test.txt", "--nbest", 3).out.strip().split("\n\n")
    assert len(blocks) == 3 * 80
    heads = [block.partition("\n")[0].split() for block in blocks]
    assert [head[:2] for head in heads] == [["#", str(rank)] for _ in range(80) for rank in (1, 2, 3)]
    chances = [[float(head[2]) for head in heads[k : k + 3]] for k in range(0, len(heads), 3)]
    assert all(found == sorted(found, reverse=True) and sum(found) < 1.00001 for found in chances)
    assert "\n\n".join(block.partition("\n")[2] for block in blocks[::3]) + "\n\n" == best
    both = hogwild("predict", tagger, tagged / "test.txt", "--nbest", 2, "--proba").out.splitlines()
    assert len(both[1].split()) == 5


def test_words_of_segmented_text(hogwild, refused, tagged, tmp_path):
    words = ["train", "tagger", tagged / "words.txt", "--features", "segmentation", "--mode", "serial"]
    assert hogwild(*words, "--epochs", 5, "--output", tmp_path / "m").code == 0
    other = write_words(tmp_path / "test.txt", 50, seed=7)
    found = hogwild("evaluate", tmp_path / "m", other, "--json").json
    assert found["kind"] == "words"
    assert found["metrics"]["f1"] > 0.95
    (tmp_path / "raw.txt").write_text(other.read_text().replace(" ", "") + "\n")
    lines = hogwild("predict", tmp_path / "m", tmp_path / "raw.txt").out.splitlines()
    assert sum(one == two for one, two in zip(lines, other.read_text().splitlines(), strict=False)) >= 40
    assert lines[50:] == [""]  # a line without words stays one
    best = hogwild("predict", tmp_path / "m", tmp_path / "raw.txt", "--nbest", 1).out.splitlines()
    assert best[0].startswith("# 1 0.")
    assert best[1::2] == lines[:50]
    assert "--proba has no place in segmented text" in refused("predict", tmp_path / "m", other, "--proba")


def test_json_lines(hogwild, tagged, tmp_path):
    text = read_tagged(tagged / "train.txt", TaggingConfig(columns=("w", "pos", "tag")))
    columns = (*text.columns, text.tags)
    rows = [[column.strings(start, end) for column in columns] for start, end in pairwise(text.offsets.tolist())]
    lines = [json.dumps({"tokens": words, "pos": pos, "tags": tags}) for words, pos, tags in rows]
    (tmp_path / "t.jsonl").write_text("\n".join(lines) + "\n")
    words = ["train", "tagger", tmp_path / "t.jsonl", "--columns", "w=tokens,pos", *SERIAL, "--output", tmp_path / "m"]
    assert hogwild(*words).code == 0
    said = hogwild("predict", tmp_path / "m", tmp_path / "t.jsonl", "--nbest", 2, "--proba")
    objects = [json.loads(line) for line in said.out.splitlines()]
    assert [entry["rank"] for entry in objects[:4]] == [1, 2, 1, 2]
    assert objects[0]["predicted"] == rows[0][2]
    assert objects[0]["probability"] > objects[1]["probability"]
    assert len(objects[0]["probabilities"]) == len(rows[0][0])


def test_probabilities_of_every_tag(hogwild, tagged, tagger):
    said = hogwild("predict", tagger, tagged / "test.txt", "--marginals", "--proba")
    rows = [row for sentence in sentences_of(said.out) for row in sentence]
    program = load_model(tagger).program
    expected = program.marginals(program.open(tagged / "test.txt"))
    for row, chances in zip(rows, expected.tolist(), strict=True):
        found = dict(cell.rsplit(":", 1) for cell in row[5:])
        assert list(found) == list(program.tags)
        assert [float(chance) for chance in found.values()] == pytest.approx(chances, rel=1e-5)
        assert found[row[3]] == row[4]
    several = hogwild("predict", tagger, tagged / "test.txt", "--marginals", "--nbest", 2)
    assert sentences_of(several.out)[0][0][:2] == ["#", "1"]
    assert len(sentences_of(several.out)[0][1]) == 4 + 5


def test_probabilities_of_every_tag_in_json_lines(hogwild, tagged, tagger, tmp_path):
    (tmp_path / "t.jsonl").write_text(json.dumps({"w": ["the", "dog"], "pos": ["DT", "NN"]}) + "\n")
    words = ["predict", tagger, tmp_path / "t.jsonl", "--format", "jsonl", "--marginals"]
    found = json.loads(hogwild(*words).out)
    assert found["predicted"] == ["B-NP", "I-NP"]
    assert [max(each, key=each.get) for each in found["marginals"]] == ["B-NP", "I-NP"]
    assert sum(found["marginals"][0].values()) == pytest.approx(1, abs=1e-4)


def test_lines_of_tokens(hogwild, refused, tagged, tagger, tmp_path):
    words = ["train", "tagger", tagged / "pos.txt", "--features", "pos", *SERIAL, "--output", tmp_path / "pos"]
    assert hogwild(*words).code == 0
    (tmp_path / "raw.txt").write_text("the old dog .\n\na bird may find some stone .\n")
    said = hogwild("predict", tmp_path / "pos", tmp_path / "raw.txt", "--format", "tokens")
    assert said.out.startswith("the DT\nold JJ\ndog NN\n. .\n\na DT\n")
    assert len(sentences_of(said.out)) == 2
    with talk(tmp_path / "pos", "--quiet", "--format", "tokens") as run:
        sent = ["the old dog .", "a bird may find some stone ."]
        for line, answer in zip(sent, said.out.split("\n\n"), strict=False):
            run.stdin.write(line + "\n")
            run.stdin.flush()
            assert "".join(run.stdout.readline() for _ in line.split()).strip() == answer.strip()  # before the next
            assert run.stdout.readline() == "\n"
        run.stdin.close()
        assert run.wait() == 0
    assert "(tokens: a sentence a line)" in refused("predict", tmp_path / "pos", tmp_path / "raw.txt")
    words = [tmp_path / "raw.txt", "--format", "tokens"]
    assert "needs a column `pos`" in refused("predict", tagger, *words)
    assert "have no tags" in refused("evaluate", tmp_path / "pos", *words)


def test_tags_in_another_scheme(hogwild, tagged, tagger, tmp_path):
    plain = hogwild("predict", tagger, tagged / "test.txt").out
    said = hogwild("predict", tagger, tagged / "test.txt", "--scheme", "iobes", "--nbest", 1)
    expected = convert_tags([[row[3] for row in sentence] for sentence in sentences_of(plain)], "iobes")
    assert [[row[3] for row in sentence[1:]] for sentence in sentences_of(said.out)] == expected
    words = ["train", "tagger", tagged / "train.txt", *SERIAL, "--scheme", "iobes", "--output", tmp_path / "m"]
    trained = hogwild(*words, "--valid", tagged / "test.txt")
    assert "in IOBES." in trained.err
    assert set(load_model(tmp_path / "m").program.tags) == {"B-NP", "I-NP", "E-NP", "B-VP", "E-VP", "S-VP", "O"}
    found = hogwild("evaluate", tmp_path / "m", tagged / "test.txt", "--json").json
    assert found["metrics"]["f1"] > 0.9
    assert found["unseen"] == {}
    back = hogwild("predict", tmp_path / "m", tagged / "test.txt", "--scheme", "bio")
    assert {row[3] for sentence in sentences_of(back.out) for row in sentence} == TAGS


# -- bad input -------------------------------------------------------------------------------------------------------


def test_bytes_that_are_not_utf8(hogwild, refused, tagged, tagger, tmp_path):
    (tmp_path / "latin.txt").write_bytes((tagged / "train.txt").read_bytes() + b"caf\xe9 NN O\n\n")
    for words in (["train", "tagger", tmp_path / "latin.txt", *SERIAL], ["predict", tagger, tmp_path / "latin.txt"]):
        assert "latin.txt:" in refused(*words)
        assert "1 byte not UTF-8" in hogwild(*words, "--invalid-utf8", "replace").err


def test_malformed_sentences_are_skipped_and_counted(hogwild, refused, tagged, tagger, tmp_path):
    (tmp_path / "t.txt").write_text((tagged / "test.txt").read_text() + "only two\n\n")
    words = ["evaluate", tagger, tmp_path / "t.txt"]
    assert "expected 3 columns, found 2" in refused(*words)
    assert "--bad-share" in refused(*words, "--bad-lines", "skip")
    said = hogwild(*words, "--bad-lines", "skip", "--bad-share", 0.1)
    assert said.out.splitlines()[1].startswith("80 sentences")
    assert "1 of 81 sentences" in said.err


def test_files_that_are_not_like_the_training_files(hogwild, refused, tagged, tagger, tmp_path):
    write_sentences(tmp_path / "two.txt", 5, columns=(0, 2))
    assert "2 columns found, 3 expected (w, pos, tag)" in refused("evaluate", tagger, tmp_path / "two.txt")
    write_sentences(tmp_path / "turned.txt", 20, columns=(2, 1, 0))
    words = ["evaluate", tagger, tmp_path / "turned.txt", "--json"]
    assert hogwild(*words).json["metrics"]["accuracy"] == 0
    assert hogwild(*words, "--columns", "tag,pos,w").json["metrics"]["accuracy"] > 0.9
    assert hogwild(*words, "--columns", "x,pos,w", "--tag-column", 0).json["metrics"]["accuracy"] > 0.9
    assert "columns found" in refused("predict", tagger, tagged / "words.txt")


def test_flags_of_other_models(refused, tagged, tagger):
    words = ["evaluate", tagger, tagged / "test.txt"]
    assert "--label is not for taggers; --tag-column" in refused(*words, "--label", "tag")
    assert "--format auto is not for taggers" in refused(*words, "--format", "auto")
    assert "svmlight" in refused(*words, "--format", "svmlight")
    assert "--restrict-vocab is for word vectors" in refused(*words, "--restrict-vocab", 5)
    assert "nbest is 2000" in refused("predict", tagger, tagged / "test.txt", "--nbest", 2000)


def test_flags_of_taggers_with_other_models(hogwild, refused, files, tmp_path):
    words = ["train", "classifier", files / "train.svm", "--mode", "serial", "--lr", 0.2, "--epochs", 1]
    assert hogwild(*words, "--output", tmp_path / "m").code == 0
    words = [tmp_path / "m", files / "test.svm"]
    for more in (("--constrain",), ("--columns", "w,tag"), ("--tag-column", "1")):
        for command in ("evaluate", "predict"):
            assert f"{more[0]} is for taggers, and this model is none" in refused(command, *words, *more)
    assert "--nbest is for taggers" in refused("predict", *words, "--nbest", 2)
    assert "--marginals is for taggers" in refused("predict", *words, "--marginals")
    assert "--scheme is for taggers" in refused("predict", *words, "--scheme", "bio")
    assert "conll" in refused("predict", *words, "--format", "conll")


def test_more_paths_than_memory_are_refused(refused, tagged, tagger, monkeypatch):
    def with_little(*given):
        with monkeypatch.context() as little:
            little.setattr("hogwild.machine.memory", lambda: 1000)
            check_memory(*given)

    monkeypatch.setattr("hogwild.programs.taggers.decoding.check_memory", with_little)
    said = refused("predict", tagger, tagged / "test.txt", "--nbest", 50)
    assert "the 50 best paths of a sentence of " in said
    assert "ask for fewer" in said


def test_tags_of_no_scheme_cannot_be_constrained(hogwild, refused, tagged, tmp_path):
    words = ["train", "tagger", tagged / "pos.txt", "--features", "pos", *SERIAL, "--output", tmp_path / "m"]
    assert hogwild(*words).code == 0
    assert "follow no scheme" in refused("predict", tmp_path / "m", tagged / "pos.txt", "--constrain")


def test_a_model_that_does_not_say_its_features(refused, tagged, tagger, tmp_path):
    program = load_model(tagger).program
    program.schema = None  # as of a program that was trained on sentences in memory
    save_model(tmp_path / "bare", program)
    assert "feed_schema=feed.schema" in refused("predict", tmp_path / "bare", tagged / "test.txt")
