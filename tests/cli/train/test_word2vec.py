"""`hogwild train word2vec`, then `neighbors`, `evaluate` and `export` with what it saved."""

from __future__ import annotations

import gzip
import io
import json
import signal

import numpy as np
import pytest

from cli.test_interrupt import read_until, start
from cli.topics import COMMON, TOPICS, write_topics
from hogwild import Vectors, load_model, open_feed, save_model, train
from hogwild.programs.sparse.linear import Linear
from problems.word_models import gensim_vectors

DIM = ("--dim", 16)  # everywhere: each layout of rows is compiled for itself
SERIAL = (*DIM, "--mode", "serial", "--sample", 0, "--lr", 0.02, "--epochs", 3)


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    return write_topics(tmp_path_factory.mktemp("text") / "text.txt", 2000)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return tmp_path_factory.mktemp("models") / "model"


@pytest.fixture
def trained(hogwild, text, model):
    """A model of the text, made once."""
    if not model.exists():
        assert hogwild("train", "word2vec", text, *SERIAL, "--output", model).code == 0
    return model


def of_topic(vectors, topic):
    """Share of the five nearest neighbours of the words of a topic that are of the topic too."""
    found = vectors.neighbors(TOPICS[topic], topn=5)
    return np.mean([word in TOPICS[topic] for similar in found for word, _ in similar])


def test_the_json_object(hogwild, text, tmp_path):
    said = hogwild("train", "word2vec", text, *SERIAL, "--json", "--output", tmp_path / "model")
    found = said.json
    assert said.code == 0
    assert found["program"] == "word2vec"
    assert (found["mode"], found["threads"], found["epochs"], found["reason"]) == ("serial", 1, 3, "done")
    assert (found["words"], found["vocabulary"], found["dim"]) == (20_000, 28, 16)
    assert {"load", "compile", "prepare", "train", "evaluate"} == set(found["seconds"])
    assert found["throughput"]["unit"] == "words"
    assert found["throughput"]["units_per_second"] == pytest.approx(60_000 / found["seconds"]["train"])
    assert found["metrics"] == {"loss": found["loss"]}
    assert found["evaluated_on"] == "train"
    assert found["output"] == str(tmp_path / "model")
    assert "60k words to visit, learning rate 0.02" in said.err
    assert "words/s" in said.err
    assert "samples" not in said.err
    assert "evaluating" not in said.err


def test_words_of_a_topic_become_neighbours(hogwild, trained, tmp_path):
    vectors = Vectors.load(trained, verify=True)
    assert len(vectors) == 28
    assert all(of_topic(vectors, topic) > 0.9 for topic in TOPICS)
    shown = hogwild("neighbors", trained, "apple", "iron", "--topn", 3, "--json").json["queries"]
    assert {entry["word"] for entry in shown[0]["neighbors"]} <= set(TOPICS["fruit"])
    assert {entry["word"] for entry in shown[1]["neighbors"]} <= set(TOPICS["metal"])
    (tmp_path / "pairs.tsv").write_text("apple\tpear\t9\niron\tzinc\t8\napple\tzinc\t2\nmoon\tpear\t1\n")
    assert hogwild("evaluate", trained, tmp_path / "pairs.tsv", "--json").json["spearman"] > 0.7


def test_gensim_opens_what_is_exported(hogwild, trained, tmp_path):
    assert hogwild("export", trained, tmp_path / "v.bin").code == 0
    theirs = gensim_vectors().load_word2vec_format(tmp_path / "v.bin", binary=True)
    ours = Vectors.load(trained)
    assert theirs.index_to_key == list(ours.words)
    assert np.array_equal(theirs.vectors, ours.matrix)


def test_the_saved_model_loads_with_its_counts(text, trained):
    program = load_model(trained).program
    words = text.read_text().split()
    assert program.counts.tolist() == [words.count(word) for word in program.words]
    assert program.counts.tolist() == sorted(program.counts, reverse=True)
    assert program.config.sample == 0


def test_without_json_the_loss_of_the_last_epoch_goes_to_standard_output(hogwild, text, tmp_path):
    said = hogwild("train", "word2vec", text, *SERIAL, "--output", tmp_path / "model")
    last = next(line for line in said.err.splitlines() if line.startswith("epoch 3/3")).split()[3]
    assert said.out == f"on the training data: loss {last}\nsaved to {tmp_path / 'model'}\n"
    quiet = hogwild("train", "word2vec", text, *SERIAL, "--quiet")
    assert (quiet.code, quiet.out, quiet.err) == (0, "", "")


def test_serial_repeats_bit_for_bit(hogwild, text, trained, tmp_path):
    hogwild("train", "word2vec", text, *SERIAL, "--output", tmp_path / "again")
    one, other = ((path / "weights.safetensors").read_bytes() for path in (trained, tmp_path / "again"))
    assert one == other


@pytest.mark.parametrize("more", [(), ("--cbow",), ("--pair-negatives",)])
def test_two_workers_learn_the_same_topics(hogwild, text, tmp_path, more):
    words = ["train", "word2vec", text, *DIM, "--sample", 0, "--epochs", 4, "--threads", 2]
    said = hogwild(*words, "--sharing", "all", *more, "--output", tmp_path / "m", "--json")
    assert said.json["threads"] == 2
    vectors = Vectors.load(tmp_path / "m")
    assert all(of_topic(vectors, topic) > 0.8 for topic in TOPICS)


@pytest.mark.parametrize(("more", "rate"), [((), 0.025), (("--cbow",), 0.15), (("--cbow", "--lr", 0.01), 0.01)])
def test_the_learning_rate_by_default(hogwild, text, more, rate):
    found = hogwild("train", "word2vec", text, *DIM, "--mode", "serial", "--epochs", 1, *more, "--json").json
    assert found["lr"] == pytest.approx(rate)


def test_compressed_text_and_standard_input(hogwild, text, trained, tmp_path, monkeypatch):
    (tmp_path / "text.gz").write_bytes(gzip.compress(text.read_bytes()))
    hogwild("train", "word2vec", tmp_path / "text.gz", *SERIAL, "--output", tmp_path / "a")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.read_bytes())))
    assert hogwild("train", "word2vec", "-", *SERIAL, "--output", tmp_path / "b").code == 0
    expected = Vectors.load(trained).matrix
    assert np.array_equal(Vectors.load(tmp_path / "a").matrix, expected)
    assert np.array_equal(Vectors.load(tmp_path / "b").matrix, expected)


def test_options_of_the_text(hogwild, tmp_path):
    (tmp_path / "t.txt").write_text("New York is Large\nNew York is new\n" * 20 + "once\n")
    words = ["train", "word2vec", tmp_path / "t.txt", *SERIAL, "--json", "--lowercase", "--phrases", 1]
    found = hogwild(*words, "--phrase-threshold", 0.1, "--output", tmp_path / "m").json
    assert "new_york" in Vectors.load(tmp_path / "m")
    assert any("1 word left out that occur" in note or "--min-count" in note for note in found["notes"])
    assert load_model(tmp_path / "m").schema["lowercase"] is True
    fewer = hogwild("train", "word2vec", tmp_path / "t.txt", *SERIAL, "--json", "--max-vocab", 3).json
    assert fewer["vocabulary"] == 3


def test_the_best_epoch_on_validation_text_is_kept(hogwild, text, tmp_path):
    other = write_topics(tmp_path / "valid.txt", 200, seed=9)
    other.write_text(other.read_text() + "never seen before\n")
    said = hogwild("train", "word2vec", text, *SERIAL, "--valid", other, "--json", "--output", tmp_path / "m")
    found = said.json
    assert found["evaluated_on"] == "valid"
    assert 1 <= found["best_epoch"] <= 3
    assert said.err.count("valid loss") == 3
    assert load_model(tmp_path / "m").metrics == pytest.approx(found["metrics"])
    assert len(Vectors.load(tmp_path / "m")) == 28


def test_watching_and_logs(hogwild, text, tmp_path):
    words = ["train", "word2vec", text, *SERIAL, "--watch", "norm(vectors)", "--log-dir", tmp_path / "log"]
    said = hogwild(*words)
    assert "60k words: norm(vectors) = " in said.err
    lines = [json.loads(line) for line in (tmp_path / "log" / "events.jsonl").read_text().splitlines()]
    assert (lines[1]["unit"], lines[1]["each"] * lines[1]["total"]) == ("words", pytest.approx(60_000))


# -- going on --------------------------------------------------------------------------------------------------------


def test_resume_after_a_signal_equals_a_run_without(hogwild, text, tmp_path):
    words = ["train", "word2vec", text, *SERIAL[:-1], 150]
    run = start(*words, "--output", tmp_path / "stopped")
    read_until(run, "epoch 2/")
    run.send_signal(signal.SIGINT)
    _, err = run.communicate(timeout=60)
    if run.returncode == 0:
        pytest.skip("the run was over before the signal came")
    assert run.returncode == 130
    assert "words; run the same command again with --resume" in err.splitlines()[-1]
    said = hogwild(*words, "--output", tmp_path / "stopped", "--resume", "--json")
    assert said.code == 0
    note = next(note for note in said.json["notes"] if note.startswith("goes on after "))
    assert note.endswith(" words of the next.")
    assert hogwild(*words, "--output", tmp_path / "whole", "--quiet").code == 0
    one, other = ((tmp_path / name / "weights.safetensors").read_bytes() for name in ("stopped", "whole"))
    assert one == other


def test_resume_of_another_run_is_refused(hogwild, refused, text, trained, tmp_path):
    words = ["train", "word2vec", text, *SERIAL, "--output", tmp_path / "m", "--checkpoint-every", "1epoch"]
    assert hogwild(*words).code == 0
    assert "nothing is left to do" in hogwild(*words, "--resume").err
    assert "window was 5, is 3" in refused(*words, "--window", 3, "--resume")
    assert "the start data is not the same" in refused(*words, "--start", trained, "--resume")
    (tmp_path / "other.txt").write_text(text.read_text() * 2)
    words[2] = tmp_path / "other.txt"
    assert "the training data is not the same" in refused(*words, "--resume")


def test_new_words_join_those_of_a_model(hogwild, trained, tmp_path):
    more = tmp_path / "more.txt"
    write_topics(more, 1000, seed=5, topics=["fruit", "sky"])
    more.write_text(more.read_text().replace("lemon", "quince"))
    words = ["train", "word2vec", more, *SERIAL, "--start", trained, "--output", tmp_path / "grown"]
    said = hogwild(*words, "--json")
    assert said.json["vocabulary"] == 29
    assert any("28 words have their vectors from" in note and "1 words are new" in note for note in said.json["notes"])
    before, after = Vectors.load(trained), Vectors.load(tmp_path / "grown")
    assert set(after.words) == {*before.words, "quince"}
    assert np.array_equal(after["iron"], before["iron"])  # this text does not touch it
    assert not np.array_equal(after["apple"], before["apple"])
    assert sum(word in TOPICS["fruit"] for word, _ in after.most_similar("quince", topn=5)) >= 4
    assert sum(word in TOPICS["fruit"] for word, _ in after.most_similar("lemon", topn=5)) >= 4  # still


def test_counts_of_both_texts_add_up_and_resuming_adds_none_twice(hogwild, text, trained, tmp_path):
    more = write_topics(tmp_path / "more.txt", 500, seed=5, topics=["fruit"])
    words = ["train", "word2vec", more, *SERIAL, "--start", trained, "--output", tmp_path / "grown"]
    assert hogwild(*words, "--checkpoint-every", "1epoch").code == 0
    both = (text.read_text() + more.read_text()).split()
    expected = {word: both.count(word) for word in set(both)}
    program = load_model(tmp_path / "grown").program
    assert dict(zip(program.words, program.counts.tolist(), strict=True)) == expected
    assert program.counts.tolist() == sorted(program.counts, reverse=True)
    assert "nothing is left to do" in hogwild(*words, "--resume").err
    program = load_model(tmp_path / "grown").program
    assert dict(zip(program.words, program.counts.tolist(), strict=True)) == expected


def test_a_grown_run_goes_on_bit_for_bit(hogwild, trained, tmp_path):
    more = write_topics(tmp_path / "more.txt", 500, seed=5, topics=["fruit", "sky"])
    words = ["train", "word2vec", more, *SERIAL[:-1], 400, "--start", trained]
    run = start(*words, "--output", tmp_path / "stopped")
    read_until(run, "epoch 2/")
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=60)
    if run.returncode == 0:
        pytest.skip("the run was over before the signal came")
    assert hogwild(*words, "--output", tmp_path / "stopped", "--resume").code == 0
    assert hogwild(*words, "--output", tmp_path / "whole", "--quiet").code == 0
    one, other = (load_model(tmp_path / name).program for name in ("stopped", "whole"))
    assert one.words == other.words
    assert one.counts.tolist() == other.counts.tolist()
    assert np.array_equal(one.vectors.matrix, other.vectors.matrix)


def test_starting_from_the_same_words(hogwild, text, trained, tmp_path):
    assert hogwild("export", trained, tmp_path / "v.vec").code == 0
    for name, start_from, times in (("a", trained, 2), ("b", tmp_path / "v.vec", 1)):
        words = ["train", "word2vec", text, *SERIAL, "--start", start_from, "--output", tmp_path / name]
        assert hogwild(*words).code == 0
        program = load_model(tmp_path / name).program
        assert program.counts.tolist() == (times * load_model(trained).program.counts).tolist()


@pytest.mark.parametrize("name", ["v.vec", "v.bin", "v.txt.gz"])
def test_starting_from_a_file_of_vectors(hogwild, text, tmp_path, name):
    given = np.random.default_rng(1).normal(size=(3, 16)).astype(np.float32)
    Vectors(["apple", "iron", "unheard"], given).save(tmp_path / name)
    words = ["train", "word2vec", text, *SERIAL, "--start", tmp_path / name, "--output", tmp_path / "m", "--json"]
    found = hogwild(*words).json
    (note,) = (note for note in found["notes"] if "3 words have their vectors from" in note)
    assert note.endswith("; this text has 2 of them. 26 words are new.")
    after = Vectors.load(tmp_path / "m")
    assert np.array_equal(after["unheard"], given[2])
    assert after.words[-1] == "unheard"
    assert set(after.words) == {"unheard", *COMMON, *(word for topic in TOPICS.values() for word in topic)}


def test_known_words_are_trained_however_rare_they_are(hogwild, trained, tmp_path):
    """Words below --min-count of the new text stayed as they were, without a word."""
    common = "the of and a " * 60
    (tmp_path / "more.txt").write_text(f"{common}apple iron quince\n{common}apple moon quince\n")
    words = ["train", "word2vec", tmp_path / "more.txt", "--mode", "serial", "--start", trained, "--json"]
    found = hogwild(*words, "--min-count", 50, "--output", tmp_path / "grown").json
    before, after = Vectors.load(trained), Vectors.load(tmp_path / "grown")
    assert set(after) == set(before), "quince is new, and too rare"
    moved = {word for word in before if not np.array_equal(before[word], after[word])}
    assert moved == {"the", "of", "and", "a", "apple", "iron", "moon"}
    (note,) = (note for note in found["notes"] if "have their vectors from" in note)
    assert "this text has 7 of them. 0 words are new." in note
    assert "1 word left out that occurs fewer than 50 times (--min-count): 2 occurrences." in found["notes"]
    assert after.get_vecattr("apple", "count") == before.get_vecattr("apple", "count") + 2


def test_the_options_of_the_vectors_are_the_default(hogwild, trained, tmp_path):
    """--dim had to be repeated, and what was not repeated was another model: another window, another sample."""
    write_topics(tmp_path / "first.txt", 300)
    first = ["train", "word2vec", tmp_path / "first.txt", "--dim", 12, "--window", 3, "--lowercase", "--negatives", 2]
    assert hogwild(*first, "--mode", "serial", "--output", tmp_path / "first").code == 0
    (tmp_path / "more.txt").write_text((tmp_path / "first.txt").read_text().upper())
    words = ["train", "word2vec", tmp_path / "more.txt", "--start", tmp_path / "first", "--mode", "serial", "--json"]
    said = hogwild(*words, "--output", tmp_path / "second")
    assert f"As in {tmp_path / 'first'}: --dim 12 --window 3 --negatives 2 --lowercase." in said.json["notes"]
    one, other = (load_model(tmp_path / name) for name in ("first", "second"))
    assert other.program.config == one.program.config
    assert other.program.words == one.program.words, "the text was lower-cased too"
    assert other.schema == one.schema
    (tmp_path / "options.toml").write_text("window = 7\n")
    said = hogwild(*words, "--negatives", 5, "--config", tmp_path / "options.toml", "--no-lowercase")
    assert f"As in {tmp_path / 'first'}: --dim 12." in said.json["notes"]
    assert said.json["vocabulary"] == 2 * len(one.program.words)


def test_a_file_of_vectors_says_its_dimension(hogwild, text, trained, tmp_path):
    assert hogwild("export", trained, tmp_path / "v.vec").code == 0
    words = ["train", "word2vec", text, "--start", tmp_path / "v.vec", "--epochs", 1, "--mode", "serial", "--json"]
    found = hogwild(*words, "--output", tmp_path / "m").json
    assert found["dim"] == 16
    assert load_model(tmp_path / "m").program.config.sample == 1e-4, "a file tells no more"


# -- bad input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "more", "said"),
    [
        ("", (), "no words"),
        ("\n \n", (), "no words"),
        ("a b c d\n", (), "--min-count"),
        ("word " * 50, (), "at least two different words are needed"),
        ("a b " * 9, ("--dim", 0), "dim is 0"),
        ("a b " * 9, ("--dim", "many"), "--dim is 'many'"),
        ("a b " * 9, ("--window", 0), "window is 0"),
        ("a b " * 9, ("--negatives", 0), "negatives is 0"),
        ("a b " * 9, ("--sample", 2), "sample is 2.0"),
        ("a b " * 9, ("--min-count", 0), "min_count is 0"),
        ("a b " * 9, ("--epochs", 0), "epochs is 0"),
        ("a b " * 9, ("--lr", 0), "Try 0.025"),
        ("a b " * 9, ("--optimizer", "adam"), "unknown flag --optimizer"),
        ("a b " * 9, ("--vector-size", 5), "did you mean --dim?"),
        ("a b " * 9, ("--watch", "norm(vectrs)"), "did you mean vectors"),
        ("a b " * 9, ("--patience", 2), "--valid"),
    ],
)
def test_wrong_input(refused, tmp_path, content, more, said):
    (tmp_path / "t.txt").write_text(content)
    words = more if "--dim" in more else (*DIM, *more)
    assert said in refused("train", "word2vec", tmp_path / "t.txt", "--output", tmp_path / "m", *words)
    assert not (tmp_path / "m").exists()


def test_files_that_cannot_be_read(refused, text, tmp_path):
    words = ["train", "word2vec"]
    assert "TEXT is missing" in refused(*words)
    assert "nowhere.txt" in refused(*words, tmp_path / "nowhere.txt")
    assert "nowhere.txt" in refused(*words, text, "--valid", tmp_path / "nowhere.txt")
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9 " * 20)
    assert "latin.txt:1" in refused(*words, tmp_path / "latin.txt")
    (tmp_path / "cut.gz").write_bytes(gzip.compress(text.read_bytes())[:-200])
    assert "cut.gz" in refused(*words, tmp_path / "cut.gz")
    (tmp_path / "other.txt").write_text("нет слов " * 10)
    assert "no word of the text is in the vocabulary" in refused(*words, text, "--valid", tmp_path / "other.txt")


def test_starting_from_what_does_not_fit(refused, text, trained, tmp_path):
    words = ["train", "word2vec", text, "--output", tmp_path / "m", "--start"]
    assert "vectors of 16 numbers, and --dim is 100; leave --dim out." in refused(*words, trained, "--dim", 100)
    assert "nowhere" in refused(*words, tmp_path / "nowhere")
    assert "text.txt" in refused(*words, text)
    (tmp_path / "t.svm").write_text("+1 1:1\n-1 2:1\n" * 5)
    feed = open_feed(tmp_path / "t.svm")
    save_model(tmp_path / "linear", train(Linear(), feed, epochs=1, lr=0.1, threads=1, quiet=True))
    assert "has no word vectors" in refused(*words, tmp_path / "linear")
    (tmp_path / "nan.vec").write_text("2 2\na nan 1\nb 1 1\n")
    assert "finite" in refused(*words, tmp_path / "nan.vec", "--dim", 2)
    assert not (tmp_path / "m").exists()


def test_words_and_classes_do_not_mix(refused, trained, files):
    assert "a word2vec model predicts nothing; see hogwild neighbors" in refused("predict", trained, files / "test.svm")
    assert refused("evaluate", trained, files / "test.svm")


def test_a_text_of_which_little_is_left_is_said_to_be(hogwild, text):
    words = ["train", "word2vec", text, *SERIAL, "--json"]
    sampled = [1e-4 if before == "--sample" else word for before, word in zip(["", *words], words, strict=False)]
    (note,) = (note for note in hogwild(*sampled).json["notes"] if "--sample" in note)
    assert "passes over 94% of this text" in note
    assert not hogwild(*words).json["notes"]


def test_text_in_the_cache_is_listed(hogwild, text):
    hogwild("train", "word2vec", text, *SERIAL, "--quiet")
    (entry,) = hogwild("cache", "list", "--json").json["entries"]
    assert entry["bytes"] > 0
    assert hogwild("cache", "list").code == 0


def test_memory_is_told_before_it_is_taken(hogwild, text, tmp_path, monkeypatch):
    monkeypatch.setattr("hogwild.cli.train.word2vec._MUCH", 1000)
    said = hogwild("train", "word2vec", text, *SERIAL, "--output", tmp_path / "model")
    assert "note: 28 words of 16 numbers will take 0.0 GB of memory." in said.err
    monkeypatch.setattr("hogwild.machine.memory", lambda: 1000)
    monkeypatch.setattr("hogwild.programs.words.word2vec.aligned_floats", None)  # nothing is allocated
    said = hogwild("train", "word2vec", text, *SERIAL, "--output", tmp_path / "model")
    assert said.code != 0
    assert "28 words of 16 numbers need 0.0 GB, and this machine has 0.0 GB; raise --min-count" in said.err


def test_words_that_are_held_while_they_are_counted(hogwild, text, tmp_path):
    said = hogwild("train", "word2vec", text, *SERIAL, "--max-vocabulary", 16, "--json", "--output", tmp_path / "model")
    assert said.code == 0
    assert said.json["vocabulary"] <= 16
    assert any("More than 16 different words (--max-vocabulary)" in note for note in said.json["notes"])
    assert hogwild("train", "word2vec", text, "--max-vocabulary", 1, "--output", tmp_path / "m").code == 2
