"""The frame of the command line: help, unknown words, exit codes, start-up time."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time

import pytest

from hogwild.cli import main as frame
from hogwild.cli.commands import COMMANDS
from hogwild.config.options import choices_of, chosen_of, flags_of

HOGWILD = [sys.executable, "-m", "hogwild"]


def test_help_names_every_command(hogwild):
    said = hogwild("--help")
    assert said.code == 0
    for entry in COMMANDS:
        assert entry.name in said.out
    assert "hogwild train classifier train.svm" in said.out     # an example to copy


def test_no_command_is_wrong_usage(hogwild):
    assert hogwild().code == 2
    assert hogwild("train").code == 2
    assert "classifier" in hogwild("train", "--help").out


def test_version(hogwild):
    assert hogwild("--version").out.startswith("hogwild 0.")


@pytest.mark.parametrize("entry", COMMANDS, ids=lambda entry: entry.name)
def test_help_of_a_command_shows_all_flags_with_an_example(entry, hogwild):
    said = hogwild(*entry.words, "--help")
    assert said.code == 0
    assert f"hogwild {entry.name} " in said.out.split("Examples:")[-1] or entry.name == "completion"
    command = entry.load().Options
    for choice in choices_of(command):
        said = hogwild(*entry.words, *((f"--{chosen_of(command).by}", choice) if choice else ()), "--help")
        for option in flags_of(command, choice).values():
            assert option.flag in said.out
            assert option.help.split()[0] in said.out
        assert "None" not in said.out.replace("null,None,?", "")  # a word for missing values
        assert "--unlabelled" not in said.out      # hidden: evaluate and predict know what they need


def test_help_shows_the_options_of_the_chosen_model_in_groups(hogwild, tmp_path):
    said = hogwild("train", "classifier", "--model", "fm", "--help").out
    assert "--l2-factors" in said
    assert "--hidden" not in said
    assert "--model linear|mlp|text --help" in said
    titles = ("Options of factorization machines:", "How training runs:", "What is written, and when:")
    assert sorted(map(said.index, titles)) == [said.index(title) for title in titles]
    assert "--hidden" not in hogwild("train", "classifier", "--help").out  # those of the default
    assert hogwild("train", "classifier", "x.svm", "--hidden", "3", "--help").code == 0
    (tmp_path / "o.toml").write_text("model = 'mlp'\nhidden = '7,3'\nlr = 0.25")
    said = hogwild("train", "classifier", "--config", tmp_path / "o.toml", "--help").out
    assert "(default: 7,3)" in said
    assert "(default: 0.25)" in said


@pytest.mark.parametrize(
    ("words", "toml", "said"),
    [
        (["--model", "fm", "--hidden", "3"], "", "--hidden is for --model mlp, not fm; leave it out."),
        (["--hidden=3"], "", "--hidden is for --model mlp, not linear; leave it out."),
        (["--model", "text", "--no-bias"], "", "--no-bias is for --model linear or fm, not text; leave it out."),
        ([], "model = 'fm'\nhidden = '3'", "o.toml: hidden is for --model mlp, not fm; leave it out."),
        (["--model", "text"], "model = 'fm'\nl2_factors = 3", "o.toml: l2_factors is for --model fm, not text"),
        (["--l2-factors", "3"], "model = 'text'", "--l2-factors is for --model fm, not text; leave it out."),
        (["--model", "fms"], "", "--model is 'fms' (did you mean fm?); choose one of linear, fm, mlp, text."),
        ([], "model = 'fms'", "o.toml: model is 'fms' (did you mean fm?)"),
        (["--model"], "", "--model is there without a value."),
        (["--hiden", "3"], "", "unknown flag --hiden."),
    ],
)
def test_options_of_another_model_are_refused_by_its_name(words, toml, said, refused, tmp_path):
    (tmp_path / "o.toml").write_text(toml)
    assert said in refused("train", "classifier", "x.svm", "--config", tmp_path / "o.toml", *words)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["trian"], "unknown command trian (did you mean train?)"),
        (["mak"], "did you mean make-dataset"),
        (["--verison"], "unknown flag --verison"),
        (["train", "clasifier"], "did you mean classifier"),
        (["train", "classifier"], "TRAIN is missing"),
        (["train", "classifier", "x.svm", "--epoch", "3"], "unknown flag --epoch (did you mean --epochs?)"),
        (["train", "classifier", "x.svm", "--no-bais"], "did you mean --no-bias"),
        (["train", "classifier", "x.svm", "--epochs"], "--epochs is there without a value. See: "),
        (["train", "classifier", "x.svm", "--epochs", "many"], "--epochs is 'many'; it must be a whole number"),
        (["train", "classifier", "x.svm", "--mode", "hog"], "did you mean hogwild"),
        (["train", "classifier", "x.svm", "--trace=yes"], "--trace takes no value"),
        (["train", "classifier", "x.svm", "--epochs", "0"], "epochs is 0"),
        (["train", "classifier", "x.svm", "--threads", "0"], "threads is 0; it must be at least 1"),
        (["train", "classifier", "x.svm", "--lr", "0"], "lr is 0.0; it must be positive"),
        (["train", "classifier", "x.svm", "--lr", "-0.5"], "lr is -0.5; it must be positive"),
        (["train", "classifier", "x.svm", "--lr", "nan"], "lr is nan; it must be finite"),
        (["train", "classifier", "x.svm", "--lr", "inf"], "lr is inf; it must be finite"),
        (["train", "classifier", "x.svm", "--threads", "5000"], "threads is 5000; it must be at most 4096"),
        (["train", "classifier", "x.svm", "--resume"], "output"),
        (["train", "classifier", "x.svm", "--watch", "norm("], "watch 'norm('"),
        (["train", "classifier", "x.svm", "--every", "often"], "every is 'often'"),
        (["train", "classifier", "x.svm", "--output", "m", "--checkpoint-every", "soon"], "checkpoint_every is 'soon'"),
        (["train", "classifier", "x.svm", "--class-weight", "spam"], "NAME=WEIGHT"),
        (["train", "classifier", "x.svm", "--valid", ""], "--valid is there without a name"),
        (["train", "classifier", "missing.svm"], "missing.svm"),
        (["train", "classifier", "."], "directory"),
        (["train", "classifier", "x.svm", "--config", "no.toml"], "no.toml"),
        (["evaluate", "model"], "FILE is missing"),
        (["evaluate", "no-model", "x.svm"], "no-model"),
        (["predict", "no-model", "x.svm"], "no-model"),
        (["completion", "tcsh"], "bash, zsh, fish"),
        (["cache", "lst"], "did you mean list"),
        (["cache", "list", "more"], "one word too many"),
        (["make-dataset", "sparse", "--rows", "0"], "rows is 0"),
        (["make-dataset", "sparse", "--json"], "--output FILE"),
        (["demo", "--threads", "1"], "threads is 1"),
    ],
)
def test_wrong_usage_is_one_line_with_a_remedy(words, said, refused, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert said in refused(*words)


@pytest.mark.parametrize(
    ("elsewhere", "here"),
    [
        ("--learning-rate", "--lr"), ("--rate", "--lr"), ("--workers", "--threads"), ("--jobs", "--threads"),
        ("--num-threads", "--threads"), ("--iterations", "--epochs"), ("--passes", "--epochs"),
        ("--num-epochs", "--epochs"), ("--out", "--output"), ("--regularization", "--l2"),
        ("--lerning-rate=0.1", ""), ("--verbose", ""),
    ],
)  # fmt: skip
def test_names_that_other_tools_use_are_understood(elsewhere, here, refused):
    said = refused("train", "classifier", "x.svm", elsewhere, "1")
    hint = f" (did you mean {here}?)" if here else ""
    assert f"unknown flag {elsewhere.partition('=')[0]}{hint}. See: " in said


@pytest.mark.parametrize(
    "words",
    [
        ["a.svm", "--valid", "b.svm", "c.svm"],
        ["--epochs", "3", "a.svm", "--no-bias", "--valid", "b.svm", "c.svm", "d.svm"],
        ["a.svm", "--valid", "-", "c.svm"],
    ],
)
def test_files_after_a_validation_file_are_not_trained_on(words, refused):
    said = refused("train", "classifier", *words)
    assert "--valid takes one file, and 'c.svm' is a second one" in said


@pytest.mark.parametrize(
    "words", [["--valid", "b.svm", "a.svm"], ["a.svm", "--valid", "b.svm", "--epochs", "3", "c.svm"]]
)
def test_training_files_may_follow_flags(words, refused):
    assert "svm does not exist" in refused("train", "classifier", *words)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--text", "title", "--text", "body"), "--text title and --text body cannot both hold"),
        (("--text=title", "--text", "body"), "--text title and --text body cannot both hold"),
        (("--scale", "--no-scale"), "--scale and --no-scale cannot both hold"),
        (("--epochs", "3", "--seed", "1", "--epochs", "4"), "--epochs 3 and --epochs 4 cannot both hold"),
        (("--model", "fm", "--model", "linear"), "--model fm and --model linear cannot both hold"),
        (("--class-weight", "a=1", "--class-weight", "a=2"), "--class-weight names 'a' twice"),
    ],
)
def test_what_may_be_given_once_is_not_overridden(words, said, refused):
    assert said in refused("train", "classifier", "a.csv", *words)


@pytest.mark.parametrize("entry", COMMANDS, ids=lambda entry: entry.name)
def test_every_flag_that_may_be_given_once(entry, refused):
    for option in flags_of(entry.load().Options).values():
        if option.positional or option.kind in (tuple, dict) or option.name == "debug":
            continue
        twice = [f"{option.flag}=a.json", f"{option.flag}=b.json"]
        if option.kind is bool:
            twice = [option.flag, "--no-" + option.flag[2:]]
        first, second = (word.replace("=", " ") for word in twice)
        assert f"{first} and {second} cannot both hold" in refused(*entry.words, *twice)


def test_columns_after_a_file(hogwild, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("label,id,name,n,b\n" + "1,x,u,3,9\n0,y,v,4,8\n" * 4)
    run = ("--lr", 0.1, "--mode", "serial", "--epochs", 1)
    for words in (("--ignore", "id", "name", "b"), ("--ignore", "id,name", "b"), ("--ignore=id", "name,b")):
        assert "note: Columns: 1 numeric (n).\n" in hogwild("train", "classifier", "t.csv", *words, *run).err
    said = hogwild("train", "classifier", "t.csv", "--ignore", "id", "nmae")
    assert "there is no column `nmae` (--ignore)" in said.err
    shutil.copy("t.csv", "u.csv")
    assert "16 samples" in hogwild("train", "classifier", "t.csv", "--ignore", "id", "u.csv", *run).err
    assert "nmae" in hogwild("train", "classifier", "--ignore", "id", "nmae").err, "a file, as there is no other"


def test_words_after_two_dashes_are_no_flags(refused):
    assert "-a.svm does not exist" in refused("train", "classifier", "--epochs", "1", "--", "-a.svm")


def test_nothing_is_left_behind_by_wrong_usage(refused, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refused("train", "classifier", "missing.svm", "--output", "model")
    assert list(tmp_path.iterdir()) == []


def test_debug_shows_the_traceback(hogwild):
    said = hogwild("train", "classifier", "missing.svm", "--debug")
    assert said.code == 2
    assert "Traceback" in said.err
    assert "hogwild: error: " in said.err


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (RuntimeError("two\nlines"), 1, "unexpected RuntimeError: two lines (run with --debug for the traceback)"),
        (MemoryError(), 1, "not enough memory"),
    ],
)
def test_what_nobody_foresaw_is_still_one_line(error, code, said, refused, monkeypatch):
    def fail(argv):
        raise error

    monkeypatch.setattr(frame, "_dispatch", fail)
    assert said in refused("demo", code=code)


def test_an_interrupt_is_no_error(hogwild, monkeypatch):
    def interrupt(argv):
        raise KeyboardInterrupt

    monkeypatch.setattr(frame, "_dispatch", interrupt)
    assert hogwild("demo") == (130, "", "hogwild: interrupted.\n")


def test_help_is_quick_and_imports_nothing_heavy():
    script = (
        "import sys; from hogwild.cli.main import main; code = main(sys.argv[1:]);"
        "heavy = {'numba', 'pyarrow', 'numpy', 'scipy', 'rich', 'sklearn'} & set(sys.modules);"
        "assert not heavy, heavy; sys.exit(code)"
    )
    for words in (["--help"], ["train", "classifier", "--help"], ["completion", "bash"]):
        done = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    times = []
    for _ in range(5):
        began = time.perf_counter()
        subprocess.run([*HOGWILD, "--help"], capture_output=True, check=True)
        times.append(time.perf_counter() - began)
    assert min(times) < 0.5


def test_a_closed_pipe_is_no_drama():
    made = subprocess.Popen(
        [*HOGWILD, "make-dataset", "sparse", "--rows", "20000"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert made.stdout.readline().startswith((b"+1 ", b"-1 "))
    made.stdout.close()
    assert made.stderr.read() == b""
    assert made.wait(30) == 1
    made.stderr.close()


def test_help_fits_a_narrow_terminal():
    done = subprocess.run(
        [*HOGWILD, "train", "classifier", "--help"], capture_output=True, text=True, check=True,
        env={**os.environ, "COLUMNS": "60"},
    )  # fmt: skip
    lines = [line for line in done.stdout.splitlines() if not line.startswith("  hogwild ")]  # examples, to be copied
    assert len(lines) > 100
    assert [line for line in lines if len(line) > 60 and "{" not in line] == []  # choices are one word


def test_no_command_waits_for_pandas_and_own_programs_may_import_it() -> None:
    code = (
        "import sys, types\n"
        "from hogwild.cli.imports import leave_out\n"
        "leave_out('pandas')\n"
        "import pyarrow\n"
        "assert pyarrow.array(['x']).fill_null('').to_pylist() == ['x']\n"
        "assert 'pandas' not in sys.modules\n"
        "from hogwild.cli.own import program_from\n"
        "from hogwild.errors import ConfigError\n"
        "try:\n"
        "    program_from('json:no_such')\n"
        "except ConfigError:\n"
        "    import importlib.util\n"
        "    assert importlib.util.find_spec('pandas')\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
