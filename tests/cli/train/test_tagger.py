"""`hogwild train tagger`. What its models are good for is in test_taggers.py."""

from __future__ import annotations

import gzip
import io
import json
import signal

import pytest

from cli.conftest import SERIAL
from cli.sentences import write_sentences
from cli.test_interrupt import read_until, start
from hogwild import CRF, load_model
from places import DATA


def test_the_json_object(hogwild, tagged, tmp_path):
    words = ["train", "tagger", tagged / "train.txt", *SERIAL, "--valid", tagged / "test.txt", "--json"]
    said = hogwild(*words, "--model", "crf", "--features", "chunking", "--output", tmp_path / "model")
    found = said.json
    assert said.code == 0
    assert found["program"] == "crf"
    assert (found["mode"], found["threads"], found["epochs"], found["reason"]) == ("serial", 1, 3, "done")
    tokens = sum(line != "" for line in (tagged / "train.txt").read_text().splitlines())
    assert (found["sentences"], found["tokens"], found["tags"]) == (300, tokens, 5)
    assert found["features"] > found["rich_features"] > 100
    assert found["rich_pairs"] > found["rich_features"]
    assert (found["lr"], found["l2"]) == (0.05, 0.5)  # of the preset
    assert found["throughput"]["unit"] == "tokens"
    assert found["throughput"]["units_per_second"] == pytest.approx(3 * tokens / found["seconds"]["train"])
    assert found["evaluated_on"] == "valid"
    assert set(found["metrics"]) == {"loss", "accuracy", "precision", "recall", "f1", "sentence_accuracy"}
    assert found["metrics"]["f1"] > 0.98
    assert load_model(tmp_path / "model").metrics == pytest.approx(found["metrics"])


def test_what_is_said(hogwild, tagged, tmp_path):
    said = hogwild("train", "tagger", tagged / "train.txt", *SERIAL, "--valid", tagged / "test.txt")
    assert "note: 300 sentences, 1,6" in said.err
    assert " tokens, " in said.err
    assert ", 5 tags.\nnote: Rich edges: " in said.err
    assert max(map(len, said.err.splitlines())) <= 115
    assert "note: The tags mark chunks, in IOB2.\n" in said.err
    assert "tokens to visit, learning rate 0.05" in said.err
    assert "tokens/s" in said.err
    assert said.err.count("  valid loss ") == said.err.count("  accuracy ") == said.err.count("  f1 ") == 3
    assert said.out.startswith("on the validation data: loss 0.0")
    quiet = hogwild("train", "tagger", tagged / "train.txt", *SERIAL, "--quiet", "--output", tmp_path / "m")
    assert (quiet.code, quiet.out, quiet.err) == (0, "", "")


@pytest.mark.parametrize("mode", ["hogwild", "round-robin"])
def test_two_workers_learn_the_grammar(hogwild, tagged, mode):
    words = ["train", "tagger", tagged / "train.txt", "--valid", tagged / "test.txt", "--epochs", 4, "--threads", 2]
    found = hogwild(*words, "--mode", mode, "--sharing", "all", "--json").json
    assert (found["mode"], found["threads"], found["sharing"]) == (mode, 2, "all")
    assert found["metrics"]["f1"] > 0.97


def test_serial_repeats_bit_for_bit(hogwild, tagged, tagger, tmp_path):
    hogwild("train", "tagger", tagged / "train.txt", *SERIAL, "--output", tmp_path / "again")
    one, other = ((path / "weights.safetensors").read_bytes() for path in (tagger, tmp_path / "again"))
    assert one == other


@pytest.mark.parametrize("features", ["pos", "segmentation", "own"])
def test_defaults_go_by_the_features(hogwild, tagged, tmp_path, features):
    (tmp_path / "own").write_text("w[0]\nw[-1]\n")
    text = tagged / ("words.txt" if features == "segmentation" else "pos.txt")
    given = tmp_path / "own" if features == "own" else features
    found = hogwild("train", "tagger", text, *SERIAL, "--features", given, "--json").json
    assert found["l2"] == 1
    calibrated = any("the best of" in note and "tried on a sample" in note for note in found["notes"])
    assert calibrated == (features == "own")
    assert calibrated or found["lr"] == CRF(preset=features).rate
    assert found["metrics"]["accuracy"] > 0.9
    assert ("f1" if features == "segmentation" else "macro_f1") in found["metrics"]


def test_averaging_and_structure_regularization_change_the_weights(hogwild, tagged, tagger, tmp_path):
    words = ["train", "tagger", tagged / "train.txt", *SERIAL]
    plain = (tagger / "weights.safetensors").read_bytes()
    for name, more in (("average", ()), ("structure-regularization", (2,))):
        assert hogwild(*words, f"--{name}", *more, "--output", tmp_path / name).code == 0
        assert (tmp_path / name / "weights.safetensors").read_bytes() != plain
        found = hogwild("evaluate", tmp_path / name, tagged / "test.txt", "--json").json
        assert found["metrics"]["f1"] > 0.97


def test_the_best_epoch_is_the_one_that_the_user_asks_for(hogwild, refused, tagged, tmp_path):
    hard = (tagged / "test.txt").read_text().replace("walk", "watch").replace(" MD ", " NN ").replace("every DT", "x y")
    (tmp_path / "hard.txt").write_text(hard)
    words = ["train", "tagger", tagged / "train.txt", "--mode", "serial", "--lr", 0.1, "--schedule", "constant"]
    words += ["--epochs", 6, "--valid", tmp_path / "hard.txt", "--l2", 0, "--log-dir", tmp_path / "log"]
    said = hogwild(*words, "--best-by", "f1", "--json", "--output", tmp_path / "m")
    lines = [json.loads(line) for line in next((tmp_path / "log").glob("*.jsonl")).read_text().splitlines()]
    epochs = [line["metrics"] for line in lines if "epoch_seconds" in line]
    scores, losses = [each["f1"] for each in epochs], [each["loss"] for each in epochs]
    best = min(range(6), key=lambda epoch: (-scores[epoch], losses[epoch]))  # of equal ones that of the lower loss
    assert said.json["best_epoch"] == best + 1
    assert said.json["metrics"]["f1"] == pytest.approx(max(scores))
    assert min(losses) < losses[said.json["best_epoch"] - 1]  # by the loss it would be another
    assert load_model(tmp_path / "m").metrics["f1"] == pytest.approx(max(scores))
    assert hogwild(*words, "--json").json["best_epoch"] == best + 1  # nobody has to ask for it
    assert hogwild(*words, "--best-by", "loss", "--json").json["best_epoch"] == losses.index(min(losses)) + 1
    needs = refused("train", "tagger", tagged / "train.txt", "--best-by", "f1")
    assert "--best-by f1 needs data to measure it on; add --valid FILE" in needs


def test_early_stopping_keeps_the_best_epoch(hogwild, tagged, tmp_path):
    other = write_sentences(tmp_path / "other.txt", 60, seed=3)
    other.write_text(other.read_text().replace(" B-VP", " I-NP"))  # the more is learnt the worse it fits
    words = ["train", "tagger", tagged / "train.txt", "--mode", "serial", "--epochs", 30, "--patience", 2]
    found = hogwild(*words, "--valid", other, "--output", tmp_path / "m", "--json").json
    assert found["reason"] == "early"
    assert found["best_epoch"] == found["epochs"] - 2
    assert load_model(tmp_path / "m").metrics["loss"] == pytest.approx(found["metrics"]["loss"])


def test_options_from_a_file_watching_and_logs(hogwild, tagged, tmp_path):
    (tmp_path / "run.toml").write_text('mode = "serial"\nepochs = 2\nmin-count = 3\ncolumns = "w,pos,tag"\n')
    words = ["train", "tagger", tagged / "train.txt", "--config", tmp_path / "run.toml"]
    said = hogwild(*words, "--watch", "norm(nodes)", "--watch", "edges[0,:2]", "--log-dir", tmp_path / "log", "--json")
    found = said.json
    assert found["epochs"] == 2
    assert any("fewer than 3 times" in note for note in found["notes"])
    assert "tokens: norm(nodes) = " in said.err
    lines = [json.loads(line) for line in (tmp_path / "log" / "events.jsonl").read_text().splitlines()]
    started = lines[1]  # after what the command is
    assert started["unit"] == "tokens"
    assert started["each"] * started["total"] == pytest.approx(2 * found["tokens"])


def test_compressed_text_and_standard_input(hogwild, tagged, tagger, tmp_path, monkeypatch):
    content = (tagged / "train.txt").read_bytes()
    (tmp_path / "train.gz").write_bytes(gzip.compress(content))
    hogwild("train", "tagger", tmp_path / "train.gz", *SERIAL, "--output", tmp_path / "a")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert hogwild("train", "tagger", "-", *SERIAL, "--output", tmp_path / "b").code == 0
    expected = (tagger / "weights.safetensors").read_bytes()
    assert all((tmp_path / name / "weights.safetensors").read_bytes() == expected for name in "ab")


def test_no_shell_command_travels_in_a_model(hogwild, tagged, tmp_path):
    words = ["train", "tagger", tagged / "train.txt", *SERIAL, "--pipe", "cat # secret", "--output", tmp_path / "m"]
    assert hogwild(*words).code == 0
    assert not any(b"secret" in path.read_bytes() for path in (tmp_path / "m").iterdir())
    assert load_model(tmp_path / "m").schema["templates"][0] == "w[-2]"


# -- bidirectional LSTMs ---------------------------------------------------------------------------------------------

LSTM = ("--model", "bilstm", "--hidden", 16, "--word-dim", 12, "--feature-dim", 4, "--batch-size", 4)


@pytest.mark.full
def test_the_json_object_of_a_bilstm(hogwild, tagged, tmp_path):
    words = ["train", "tagger", tagged / "train.txt", *LSTM, *SERIAL, "--valid", tagged / "test.txt"]
    said = hogwild(*words, "--output", tmp_path / "m", "--json")
    found = said.json
    assert (found["program"], found["hidden"], found["layers"], found["l2"]) == ("bilstm", 16, 1, 0)
    assert not {"rich_features", "rich_pairs"} & set(found)
    assert found["throughput"]["unit"] == "tokens"
    assert "note: 1 layer of 16 units each way, " in said.err
    assert "Rich edges" not in said.err
    model = load_model(tmp_path / "m")
    assert model.schema["preset"] == "words-shapes"  # unless others are named
    assert found["numbers"] == sum(array.size for array in model.program.arrays().values())
    assert model.metrics == pytest.approx(found["metrics"])
    scored = hogwild("evaluate", tmp_path / "m", tagged / "test.txt", "--json").json
    assert scored["metrics"]["f1"] == pytest.approx(found["metrics"]["f1"])
    assert hogwild("predict", tmp_path / "m", tagged / "test.txt").out.count("\n\n") == 80


@pytest.mark.full
@pytest.mark.parametrize(("features", "text"), [("words-pos", "train.txt"), ("characters", "words.txt")])
def test_other_features_of_a_bilstm(hogwild, tagged, tmp_path, features, text):
    words = ["train", "tagger", tagged / text, *LSTM, *SERIAL, "--features", features, "--output", tmp_path / "m"]
    assert hogwild(*words).code == 0
    assert load_model(tmp_path / "m").schema["preset"] == features


@pytest.mark.full
def test_vectors_to_start_from(hogwild, refused, tagged, tmp_path):
    plain = [line.split()[0] if line else "\n" for line in (tagged / "train.txt").read_text().splitlines()]
    (tmp_path / "text.txt").write_text(" ".join([*plain, "zzz"]).lower())
    vectors = tmp_path / "vectors"
    made = ["train", "word2vec", tmp_path / "text.txt", "--dim", 12, "--min-count", 1, "--output", vectors]
    assert hogwild(*made, "--quiet", "--mode", "serial").code == 0
    words = ["train", "tagger", tagged / "train.txt", *LSTM, *SERIAL, "--start-vectors", vectors]
    said = hogwild(*words, "--output", tmp_path / "m", "--checkpoint-every", "1epoch")
    assert f"note: {vectors}: vectors for " in said.err
    assert "words (100 %), and for 1 other." in said.err
    assert "lower(w)[0]=zzz" in load_model(tmp_path / "m").program.names
    assert not any(bytes(vectors) in path.read_bytes() for path in (tmp_path / "m").iterdir())
    assert load_model(tmp_path / "m").program.config.start_vectors == ""
    assert f"the model {vectors} is read; choose another output" in refused(*words, "--output", vectors)
    assert "nowhere: there is no such model" in refused(*words[:-1], tmp_path / "nowhere")
    assert "12 numbers, embeddings 9; give --word-dim 12" in refused(*[9 if word == 12 else word for word in words])
    others = [word for word in words if word not in ("--start-vectors", vectors)]
    assert "start_vectors was " in refused(*others, "--output", tmp_path / "m", "--resume")


def test_the_help_has_the_flags_of_the_model_that_is_meant(hogwild):
    crf, lstm = (hogwild("train", "tagger", "--model", model, "--help").out for model in ("crf", "bilstm"))
    assert "--rich-edges" in crf
    assert "--hidden" not in crf
    assert all(flag in lstm for flag in ("--hidden N", "--output-layer {softmax,crf}", "--start-vectors MODEL|FILE"))
    assert "--rich-edges" not in lstm
    assert "Of --model bilstm. Others have their own: --model crf --help" in lstm


# -- going on --------------------------------------------------------------------------------------------------------


def test_resume_after_a_signal_equals_a_run_without(hogwild, tagged, tmp_path):
    words = ["train", "tagger", tagged / "train.txt", "--mode", "serial", "--epochs", 400, "--average"]
    run = start(*words, "--output", tmp_path / "stopped")
    read_until(run, "epoch 2/")
    run.send_signal(signal.SIGINT)
    _, err = run.communicate(timeout=60)
    if run.returncode == 0:
        pytest.skip("the run was over before the signal came")
    assert run.returncode == 130
    assert "tokens; run the same command again with --resume" in err.splitlines()[-1]
    said = hogwild(*words, "--output", tmp_path / "stopped", "--resume", "--json")
    assert said.code == 0
    assert said.json["epochs"] == 400
    note = next(note for note in said.json["notes"] if note.startswith("goes on after "))
    assert note.endswith(" tokens of the next.")
    assert hogwild(*words, "--output", tmp_path / "whole", "--quiet").code == 0
    one, other = ((tmp_path / name / "weights.safetensors").read_bytes() for name in ("stopped", "whole"))
    assert one == other


def test_resume_of_another_run_is_refused(hogwild, refused, tagged, tmp_path):
    words = ["train", "tagger", tagged / "train.txt", *SERIAL, "--output", tmp_path / "m"]
    assert hogwild(*words, "--checkpoint-every", "1epoch").code == 0
    assert "nothing is left to do" in hogwild(*words, "--resume").err
    assert "structure_regularization was 0, is 2" in refused(*words, "--structure-regularization", 2, "--resume")
    assert "the training data is not the same" in refused(*words, "--features", "pos", "--resume")


# -- notes -----------------------------------------------------------------------------------------------------------


def test_tags_that_break_their_scheme_are_counted(hogwild, tagged, tmp_path):
    (tmp_path / "t.txt").write_text((tagged / "train.txt").read_text().replace("B-VP", "I-VP", 3))
    notes = hogwild("train", "tagger", tmp_path / "t.txt", *SERIAL, "--json").json["notes"]
    assert any("3 tags break the IOB2 rules (first: `I-VP` after `I-NP`, sentence" in note for note in notes)


def test_tags_of_no_scheme_among_those_of_one_are_named(hogwild, tagged, tmp_path):
    (tmp_path / "t.txt").write_text((tagged / "train.txt").read_text().replace(" O\n", " X-NP\n", 3))
    notes = hogwild("train", "tagger", tmp_path / "t.txt", *SERIAL, "--json").json["notes"]
    assert "1 tag of no scheme (`X-NP`): I with a type, else O." in notes


def test_tags_of_the_validation_text_that_training_has_not(hogwild, tagged, tmp_path):
    (tmp_path / "valid.txt").write_text((tagged / "test.txt").read_text().replace(" O\n", " B-END\n", 7))
    found = hogwild("train", "tagger", tagged / "train.txt", *SERIAL, "--valid", tmp_path / "valid.txt", "--json").json
    (note,) = (note for note in found["notes"] if "B-END" in note)
    assert note.startswith("validation: 7 tokens of ")
    assert found["metrics"]["recall"] < 1


def test_templates_that_match_nothing_are_named(hogwild, tagged, tmp_path):
    (tmp_path / "own.txt").write_text("w[0]\nw[-1]\nhasdigit(w)[0]\n")
    words = ["train", "tagger", tagged / "train.txt", *SERIAL, "--features", tmp_path / "own.txt", "--lr", 0.1]
    notes = hogwild(*words, "--json").json["notes"]
    assert "The template `hasdigit(w)[0]` matches nothing in this text." in notes


def test_one_tag_is_nothing_to_learn(hogwild, tmp_path):
    (tmp_path / "t.txt").write_text("to X\nbe X\n\nor X\n\n" * 20)
    said = hogwild("train", "tagger", tmp_path / "t.txt", "--features", "pos", *SERIAL, "--output", tmp_path / "m")
    assert said.code == 0
    assert "note: Every token has the tag `X`: there is nothing to learn." in said.err
    assert hogwild("predict", tmp_path / "m", tmp_path / "t.txt").out == "to X X\nbe X X\n\nor X X\n\n" * 20


def test_one_sentence_of_many_tokens(hogwild, tagged, tmp_path):
    (tmp_path / "long.txt").write_text((tagged / "train.txt").read_text().replace("\n\n", "\n") * 5)
    words = ["train", "tagger", tmp_path / "long.txt", "--mode", "serial", "--epochs", 2, "--lr", 0.001]
    found = hogwild(*words, "--output", tmp_path / "m", "--json").json
    assert found["sentences"] == 1
    assert found["tokens"] > 8000
    assert hogwild("predict", tmp_path / "m", tmp_path / "long.txt").out.count("\n") == found["tokens"] + 1


# -- bad input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "more", "said"),
    [
        ("", (), "no sentences"),
        ("a b O\n", ("--features", "chunkin"), "nor a file of templates (did you mean chunking?)"),
        ("a b O\n", ("--features", "no.tpl"), "`no.tpl` is neither a preset (chunking, "),
        ("a b O\n", ("--features", "own.tpl"), "own.tpl:2: the template `lemma[0]` looks at the column `lemma`"),
        ("a b O\n", ("--features", "bad.tpl"), "bad.tpl:1:"),
        ("a O\n" * 9, ("--features", "chunking"), "looks at the column `pos`"),
        ("a b O\nc d O\n\ne f\n", (), "t.txt:4: expected 3 columns, found 2"),
        ("a b O\n" * 9, ("--tag-column", "7"), "there is no column `7` (--tag-column)"),
        ("a b O\n" * 9, ("--tag-column", "tagg"), "Did you mean `tag`?"),
        ("a b O\n" * 9, ("--columns", "w,tag"), "3 columns found, 2 expected (w, tag)"),
        ("a b O\n" * 9, ("--model", "lstm"), "--model is 'lstm' (did you mean bilstm?); choose one of crf, bilstm."),
        ("a b O\n" * 9, ("--hidden", "9"), "--hidden is for --model bilstm, not crf; leave it out."),
        ("a b O\n" * 9, ("--model", "bilstm", "--rich-edges"), "--rich-edges is for --model crf, not bilstm"),
        ("a b O\n" * 9, ("--model", "bilstm", "--structure-regularization", "2"), "is for --model crf, not bilstm"),
        ("a b O\n" * 9, ("--model", "bilstm", "--hidden", "0"), "hidden is 0; it must lie between 1 and 4096. Try 200"),
        ("a b O\n" * 9, ("--model", "bilstm", "--output-layer", "cfr"), "did you mean crf?"),
        ("a b O\n" * 9, ("--model", "bilstm", "--hidden-size", "9"), "did you mean --hidden?"),
        ("a b O\n" * 9, ("--model", "bilstm", "--pretrained", "v"), "did you mean --start-vectors?"),
        ("a b O\n" * 9, ("--model", "bilstm", "--start-vectors", ""), "--start-vectors is there without a name"),
        ("a b O\n" * 9, ("--model", "bilstm", "--best-by", "f1"), "--best-by f1 needs data to measure it on"),
        ("a b O\n" * 9, ("--model", "bilstm", "--features", "wrods"), "nor a file of templates (did you mean words?)"),
        ("a b O\n" * 9, ("--min-count", "0"), "min_count is 0"),
        ("a b O\n" * 9, ("--min-count", "99"), "no feature occurs 99 times"),
        ("a b O\n" * 9, ("--l2", "-1"), "l2 is -1.0"),
        ("a b O\n" * 9, ("--lr", "0"), "Try 0.05 with sgd"),
        ("a b O\n" * 9, ("--structure-regularization", "-2"), "structure_regularization is -2"),
        ("a b O\n" * 9, ("--rich-edge-min-count", "0"), "rich_edge_min_count is 0"),
        ("a b O\n" * 9, ("--rich-edge-pairs", "sen"), "did you mean seen?"),
        ("a b O\n" * 9, ("--patience", "2"), "--valid"),
        ("a b O\n" * 9, ("--format", "conllu"), "CoNLL-U has 10"),
        ("a b O\n" * 9, ("--format", "csv"), "choose one of auto, conll"),
        ("a b O\n" * 9, ("--feature", "pos"), "did you mean --features?"),
        ("a b O\nc d P\n\n" * 9, ("--watch", "norm(nods)"), "did you mean nodes?"),
    ],
)
def test_wrong_input(refused, tmp_path, monkeypatch, content, more, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.txt").write_text(content)
    (tmp_path / "own.tpl").write_text("w[0]\nlemma[0]\n")
    (tmp_path / "bad.tpl").write_text("w[0\n")
    assert said in refused("train", "tagger", "t.txt", "--output", "m", *SERIAL, *more)
    assert not (tmp_path / "m").exists()


def test_files_that_cannot_be_read(refused, tagged, tmp_path):
    words = ["train", "tagger"]
    assert "TRAIN is missing" in refused(*words)
    assert "nowhere.txt" in refused(*words, tmp_path / "nowhere.txt")
    assert "nowhere.txt" in refused(*words, tagged / "train.txt", "--valid", tmp_path / "nowhere.txt")
    other = write_sentences(tmp_path / "two.txt", 5, columns=(0, 2))
    assert "2 columns found, 3 expected" in refused(*words, tagged / "train.txt", "--valid", other)
    assert "two.txt" in refused(*words, tagged / "train.txt", other)


# -- real text -------------------------------------------------------------------------------------------------------


@pytest.mark.full
@pytest.mark.data
@pytest.mark.skipif(not DATA.exists(), reason="needs ../shared/data/conll2000")
def test_chunks_of_conll_2000(hogwild, tmp_path):
    train, test = (DATA / "conll2000" / f"{part}.txt.xz" for part in ("train", "test"))
    words = ["train", "tagger", train, "--features", "chunking", "--threads", 2, "--epochs", 3]
    found = hogwild(*words, "--valid", test, "--output", tmp_path / "m", "--json").json
    assert found["metrics"]["f1"] > 0.93
    assert any("`I-LST` (2)" in note for note in found["notes"])
    scored = hogwild("evaluate", tmp_path / "m", test, "--json").json
    assert scored["metrics"]["f1"] == pytest.approx(found["metrics"]["f1"])
