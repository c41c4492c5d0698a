"""hogwild experiment asyngrad: what it prints, writes, and does when it is interrupted."""

from __future__ import annotations

import json
import os
import re
import signal

import pytest

from hogwild.feeds.synthetic.sentences import make_sentences, write_lines
from hogwild.feeds.tagged.templates import open_templates
from hogwild.observe.experiments.asyngrad import Experiment
from places import ROOT

TINY = ("experiment", "asyngrad", "--no-rich-edges", "--threads", 1, 2, "--epochs", 2, "--seeds", 2)
DOCUMENT = ROOT / "docs" / "experiments.md"


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """train.txt and test.txt for chunking; words.txt, of one column and tags, for parts of speech."""
    place = tmp_path_factory.mktemp("texts")
    for name, part in (("train", 0), ("test", 1)):
        (place / f"{name}.txt").write_text(write_lines("chunking", make_sentences(60, part=part)))
    (place / "words.txt").write_text(write_lines("pos", make_sentences(60)))
    return place


@pytest.mark.full
def test_out_of_the_box(hogwild, tmp_path):
    said = hogwild(*TINY, "--output", tmp_path / "found.json", "--json")
    assert said.code == 0
    found = said.json
    assert json.loads((tmp_path / "found.json").read_text()) == found
    assert found["complete"] is True
    assert found["options"]["threads"] == [1, 2]
    assert found["data"]["train"] == {**found["data"]["train"], "source": "made-up text", "sentences": 500}
    assert len(found["runs"]) == 2 * 6 + 3
    assert all(entry["final_score"]["mean"] > 0.8 for entry in found["methods"])
    assert "15/15  asyngrad+sr, 2 threads, seed 2: f1 " in said.err
    assert "note: made-up text: 500 sentences" in said.err


def test_files_and_a_table(hogwild, texts, tmp_path):
    text = ("--train", texts / "train.txt", "--test", texts / "test.txt")
    said = hogwild(*TINY[:-1], 1, *text, "--output", tmp_path / "x.json")
    assert said.code == 0
    rows = [line.split() for line in said.out.splitlines()]
    titles = next(row for row in rows if row[:1] == ["method"])
    assert titles == ["method", "threads", "test", "F", "s/iteration", "speed-up", "errors"]
    named = {tuple(row[:2]): row[2:] for row in rows if len(row) > 3 and row[1].isdigit() and row[2] != "data:"}
    assert list(named) == [
        ("sgd", "1"), ("synchronous", "1"), ("synchronous", "2"), ("asyngrad", "1"), ("asyngrad", "2"),
        ("asyngrad+sr", "2"),
    ]  # fmt: skip
    assert named["sgd", "1"][2] == "1.00x"
    papers = [" ".join(row) for row in rows if row[2:3] == ["data:"]]
    assert [row.partition(" data: ")[0] for row in papers] == ["sgd, 1", "asyngrad, 2", "asyngrad+sr, 2"]
    assert all("60 + 60 sentences (paper: CoNLL-2000" in row for row in papers)
    assert "94.59" in papers[1]
    assert named["asyngrad", "1"][3] == "0.00%"
    assert re.fullmatch(r"\d+\.\d\d%", named["asyngrad", "2"][3])
    assert f"saved to {tmp_path / 'x.json'}" in said.out
    found = json.loads((tmp_path / "x.json").read_text())
    assert found["data"]["test"]["source"] == str(texts / "test.txt")
    assert found["options"]["seeds"] == [1]


def test_the_task_chooses_features_rate_and_score(hogwild, texts):
    words = texts / "words.txt"
    text = ("--task", "pos", "--train", words, "--test", words)
    found = hogwild(*TINY[:3], *text, "--threads", 1, "--epochs", 1, "--seeds", 1, "--json").json
    assert found["score"] == "accuracy"
    assert (found["options"]["lr"], found["options"]["l2"]) == (0.02, 1.0)
    assert found["data"]["templates"] == open_templates("pos").lines()


def test_noun_phrases_alone(hogwild, texts):
    text = ("--task", "noun-phrases", "--train", texts / "train.txt", "--test", texts / "test.txt")
    said = hogwild(*TINY[:3], *text, "--threads", 1, 2, "--epochs", 1, "--seeds", 1, "--json")
    found = said.json
    assert sorted(found["data"]["tags"]) == ["B-NP", "I-NP", "O"]
    assert found["data"]["templates"] == open_templates("chunking").lines()
    assert (found["options"]["lr"], found["options"]["l2"], found["score"]) == (0.05, 0.5, "f1")
    papers = {(entry["method"], entry["threads"]): entry["published"] for entry in found["methods"]}
    assert papers["sgd", 1]["score"] == 0.9455
    assert papers["asyngrad", 2]["score"] == 0.9459
    assert "threads: 2 (paper: 10)" in papers["asyngrad", 2]["differs"]
    assert (papers["asyngrad", 1], papers["synchronous", 2]) == (None, None)


def test_own_templates(hogwild, texts, tmp_path):
    (tmp_path / "mine.txt").write_text("w[0]\npos[0]\n")
    text = ("--train", texts / "train.txt", "--test", texts / "test.txt", "--features", tmp_path / "mine.txt")
    found = hogwild(*TINY[:3], *text, "--threads", 1, "--epochs", 1, "--seeds", 1, "--json").json
    assert found["data"]["templates"] == ["w[0]", "pos[0]"]
    assert found["options"]["lr"] == 0.05  # the task's, though the features are others


@pytest.mark.full
def test_a_bilstm(hogwild, texts, tmp_path):
    text = ("--train", texts / "train.txt", "--test", texts / "test.txt")
    small = ("--hidden", 8, "--word-dim", 8, "--feature-dim", 4, "--threads", 1, 2, "--epochs", 2, "--seeds", 1)
    said = hogwild("experiment", "asyngrad", "--model", "bilstm", *text, *small, "--json")
    found = said.json
    assert (found["model"], found["complete"]) == ("bilstm", True)
    assert {run["method"] for run in found["runs"]} == {"sgd", "synchronous", "asyngrad"}
    options = found["options"]
    assert (options["hidden"], options["batch_size"], options["lr"], options["l2"]) == (8, 1, 0.002, 0)
    assert (options["optimizer"], options["recurrence"]) == ("adam", "full")
    assert "rich_edges" not in options
    assert found["data"]["templates"] == open_templates("words-pos").lines()
    last = next(run for run in found["runs"] if run["traced"] and run["threads"] == 2)["iterations"][-1]["errors"]
    assert 0 < last["looked_at"] <= last["gradients"] == 60
    alone = next(entry for entry in found["methods"] if (entry["method"], entry["threads"]) == ("asyngrad", 1))
    assert alone["score_difference"] == 0  # one thread is one thread, whatever it is called


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted(number, hogwild, tmp_path, monkeypatch):
    whole = Experiment.run

    def interrupted(self):
        for run, event in whole(self):
            if run.method == "asyngrad" and event.kind == "epoch":
                os.kill(os.getpid(), number)
            yield run, event

    monkeypatch.setattr(Experiment, "run", interrupted)
    said = hogwild(*TINY, "--output", tmp_path / "part.json")
    assert said.code == 130
    assert "hogwild: interrupted after 2 of " in said.err.splitlines()[-1]
    assert "part.json" in said.err.splitlines()[-1]
    found = json.loads((tmp_path / "part.json").read_text())
    assert found["complete"] is False
    assert [run["complete"] for run in found["runs"]] == [True, True, False]
    assert len(found["runs"][2]["iterations"]) == 1


def stop_after(monkeypatch, runs):
    """Ctrl-C in the first epoch after so many runs."""
    whole = Experiment.run

    def interrupted(self):
        for run, event in whole(self):
            if len(self.records) == runs + 1 and event.kind == "epoch":
                os.kill(os.getpid(), signal.SIGINT)
            yield run, event

    monkeypatch.setattr(Experiment, "run", interrupted)


def test_an_interrupted_experiment_goes_on(hogwild, tmp_path, monkeypatch):
    words = (*TINY[:-1], 1, "--output", tmp_path / "part.json")
    with monkeypatch.context() as patch:
        stop_after(patch, 4)
        said = hogwild(*words)
    assert said.code == 130
    assert "--resume goes on" in said.err.splitlines()[-1]
    assert re.search(r"^2/9  .*, \d+:\d\d left$", said.err, re.MULTILINE)
    first = json.loads((tmp_path / "part.json").read_text())
    said = hogwild(*words, "--resume", "--report", tmp_path / "page.html")
    assert said.code == 0
    assert "note: 4 of 9 runs are kept" in said.err
    assert "5/9  " in said.err
    assert "4/9  " not in said.err
    found = json.loads((tmp_path / "part.json").read_text())
    assert found["complete"] is True
    assert found["runs"][:4] == first["runs"][:4]
    assert [run["complete"] for run in found["runs"]] == [True] * 9
    assert len({(r["method"], r["threads"], r["traced"]) for r in found["runs"]}) == 9
    assert [session["runs"] for session in found["sessions"]] == [5, 5]  # the interrupted one is made again
    assert "part: asyngrad, 2 threads" in (tmp_path / "page.html").read_text()
    again = hogwild(*words, "--resume")
    assert again.code == 0
    assert "9 of 9 runs are kept" in again.err
    assert json.loads((tmp_path / "part.json").read_text())["runs"] == found["runs"]


@pytest.fixture
def stopped(hogwild, texts, tmp_path, monkeypatch):
    """The words of a command whose experiment was stopped after a run, and its file."""
    words = (*TINY[:-1], 1, "--train", texts / "train.txt", "--test", texts / "test.txt", "--quiet")
    with monkeypatch.context() as patch:
        stop_after(patch, 1)
        assert hogwild(*words, "--output", tmp_path / "part.json").code == 130
    return (*words, "--output", tmp_path / "part.json"), tmp_path / "part.json"


def test_another_experiment_is_not_gone_on_with(refused, stopped, texts, tmp_path):
    words, file = stopped
    before = file.read_bytes()
    error = refused(*words, "--lr", 0.5, "--l2", 3, "--resume")
    assert "options.lr was 0.05, is 0.5; options.l2 was 0.5, is 3.0" in error
    assert "leave --resume out" in error
    with open(texts / "train.txt", encoding="utf-8") as text:
        (tmp_path / "shorter.txt").write_text(text.read().partition("\n\n")[2])
    own = [tmp_path / "shorter.txt" if word == texts / "train.txt" else word for word in words]
    assert "data.train.sentences was 60, is 59" in refused(*own, "--resume")
    assert "add --resume to go on" in refused(*words)
    assert file.read_bytes() == before


def test_the_same_text_under_another_name_is_the_same_data(hogwild, stopped, texts, tmp_path):
    words, file = stopped
    (tmp_path / "copy.txt").write_bytes((texts / "train.txt").read_bytes())
    own = [tmp_path / "copy.txt" if word == texts / "train.txt" else word for word in words]
    assert hogwild(*own, "--resume").code == 0
    assert json.loads(file.read_text())["complete"] is True


@pytest.mark.parametrize(
    "change",
    [
        lambda found: found["runs"][0].pop("wall_seconds"),
        lambda found: found["runs"][0].update(iterations=[]),
        lambda found: found["runs"][0].update(iterations=[{"iteration": 1}]),
        lambda found: found.update(runs=7),
        lambda found: found.pop("sessions"),
    ],
    ids=["wall", "none", "hollow", "runs", "sessions"],
)
def test_damaged_results_are_not_gone_on_with(change, refused, stopped):
    words, file = stopped
    found = json.loads(file.read_text())
    change(found)
    file.write_text(json.dumps(found))
    assert "damaged" in refused(*words, "--resume")


def test_only_experiments_are_replaced(refused, hogwild, tmp_path):
    (tmp_path / "mine.json").write_text('{"a": 1}')
    error = refused(*TINY, "--output", tmp_path / "mine.json", "--quiet")
    assert "no file of `hogwild experiment`, so it is not replaced" in error
    assert (tmp_path / "mine.json").read_text() == '{"a": 1}'
    assert "its schema is not" in refused(*TINY, "--output", tmp_path / "mine.json", "--quiet", "--resume")
    (tmp_path / "page.html").write_text("<p>mine</p>")
    assert "no report of hogwild" in refused(*TINY, "--report", tmp_path / "page.html", "--quiet")
    for output in ((), ("--output", "-"), ("--output", tmp_path / "x.json.gz")):
        assert "read from a plain file" in refused(*TINY, *output, "--resume", "--quiet")


def test_a_run_that_fails_is_one_line_and_the_rest_is_kept(refused, tmp_path):
    error = refused(*TINY, "--lr", "1e30", "--output", tmp_path / "part.json", "--quiet", code=1)
    assert "nan" in error
    found = json.loads((tmp_path / "part.json").read_text())
    assert found["complete"] is False
    assert len(found["runs"]) == 1


def test_quiet_says_nothing(hogwild, tmp_path):
    said = hogwild(*TINY[:-1], 1, "--quiet", "--output", tmp_path / "x.json")
    assert said == (0, "", "")
    assert json.loads((tmp_path / "x.json").read_text())["complete"] is True


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--train", "a.txt"), "--test"),
        (("--test", "a.txt"), "--train"),
        (("--threads", "two"), "threads is 'two'"),
        (("--threads", 2, 2), "twice"),
        (("--threads",), "--threads is there without a value"),
        (("--seeds", 0), "seeds is 0"),
        (("--min-count", 0), "min_count is 0"),
        (("--task", "parsing"), "--task is 'parsing'"),
        (("--features", "nowhere.txt"), "nowhere.txt"),
        (("--train", "nowhere.txt", "--test", "nowhere.txt"), "nowhere.txt"),
        (("--structure-regularization", 1), "structure_regularization is 1"),
        (("--epoch", 3), "--epochs"),
        (("--model", "bilstm", "--structure-regularization", 4), "is for --model crf, not bilstm"),
        (("--hidden", 4), "--hidden is for --model bilstm, not crf"),
        (("--model", "bilstm", "--hidden", -4), "hidden is -4"),
        (("--model", "bilstm", "--best-by", "f1"), "unknown flag --best-by"),
    ],
    ids=str,
)
def test_mistakes(words, message, refused):
    assert message in refused("experiment", "asyngrad", *words, "--quiet")


def test_a_place_that_cannot_be_written_is_found_before_the_work(refused, tmp_path):
    error = refused("experiment", "asyngrad", "--output", tmp_path / "none" / "x.json", "--quiet", code=1)
    assert "choose another place" in error


def test_a_list_of_words_after_a_flag_ends_at_the_next_flag(hogwild, tmp_path):
    options = tmp_path / "run.toml"
    options.write_text('threads = [1, 2]\nepochs = 1\nseeds = 1\nrich-edges = false\n')
    found = hogwild("experiment", "asyngrad", "--config", options, "--json").json
    assert found["options"]["threads"] == [1, 2]
    found = hogwild("experiment", "asyngrad", "--config", options, "--threads", 1, "--threads", "2,3", "--json").json
    assert found["options"]["threads"] == [1, 2, 3]


# -- the document ----------------------------------------------------------------------------------------------------


def same_keys(shown, real, where="") -> None:
    """Objects have the same keys in the same order; of a list, its first entries are compared."""
    if isinstance(shown, dict) and isinstance(real, dict) and not where.endswith(".counts"):
        assert list(shown) == list(real), where
        for key in shown:
            same_keys(shown[key], real[key], f"{where}.{key}")
    elif isinstance(shown, list) and isinstance(real, list) and shown and real:
        same_keys(shown[0], real[0], f"{where}[0]")


def test_the_document_shows_the_object_as_it_is(hogwild):
    found = hogwild(*TINY, "--json").json
    (text,) = re.findall(r"```json\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    shown = json.loads(text)
    same_keys(shown, found)
    assert [run["traced"] for run in shown["runs"]] == [False, True]
    same_keys(shown["runs"][1], next(run for run in found["runs"] if run["traced"]))
    same_keys(shown["methods"][1], found["methods"][-1])
    assert shown["version"] == found["version"]


def test_the_document_names_every_key():
    text = DOCUMENT.read_text(encoding="utf-8")
    (example,) = re.findall(r"```json\n(.*?)```", text, re.DOTALL)
    prose = text.replace(example, "")
    keys = set(re.findall(r'"([a-z_0-9]+)":', example)) - {"0", "1", "2"}
    assert [key for key in sorted(keys) if f"`{key}`" not in prose] == []
