"""Options that nobody means: numbers without end, files without end, texts of a hundred kilobytes. One line, code 2."""

from __future__ import annotations

import math
import os
import threading

import pytest

from hogwild.cli.commands import COMMANDS
from hogwild.config import TrainConfig
from hogwild.config.options import choices_of, convert, flags_of, read_toml, values_of
from hogwild.errors import ConfigError

LONG = "x" * 100_000
WHOLE = ("1" + "0" * 21, "-1" + "0" * 21, "9" * 5000, "1e3", LONG, 10**21, -(10**21), 16**4000, 1.5, [1])
NUMBERS = ("nan", "inf", "-inf", "1e308", "-1e308", "9" * 5000, LONG, math.nan, math.inf, 1e308, 16**4000, [1])
SHORT = 400  # characters of an error


def _options(entry):
    """The options of a command, whichever model is chosen."""
    command = entry.load().Options
    found = {}
    for choice in choices_of(command):
        found |= flags_of(command, choice)
    return found.values()


NUMERIC = [
    pytest.param(option, id=f"{entry.name} {option.flag}")
    for entry in COMMANDS for option in _options(entry) if option.kind in (int, float)
]  # fmt: skip


@pytest.mark.parametrize("option", NUMERIC)
def test_numbers_that_no_option_takes(option):
    """Texts as a command line has them, and values as TOML has them."""
    for value in WHOLE if option.kind is int else NUMBERS:
        with pytest.raises(ConfigError, match=f"^{option.flag} is ") as caught:
            convert(option, value, option.flag)
        assert len(str(caught.value)) < SHORT
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("command", "flag"),
    [
        (("train", "classifier", "a.svm"), "--epochs"), (("train", "word2vec", "a.txt"), "--min-count"),
        (("demo",), "--words"), (("neighbors", "m", "king"), "--topn"), (("train", "ctr", "a.csv"), "--l2"),
        (("predict", "m", "a.svm"), "--bad-share"), (("experiment", "asyngrad"), "--seeds"),
    ],
)  # fmt: skip
def test_a_number_without_end_on_a_command_line_and_in_toml(command, flag, refused, tmp_path):
    value = "1" + "0" * 400
    assert f"{flag} is " in refused(*command, flag, value)
    (tmp_path / "o.toml").write_text(f"{flag[2:]} = {value}\n")
    assert f"o.toml: {flag[2:]} is " in refused(*command, "--config", tmp_path / "o.toml")


@pytest.mark.parametrize(
    "words",
    [
        [LONG],
        ["train", LONG],
        ["cache", LONG],
        ["completion", LONG],
        ["predict", LONG, "a.svm"],
        ["evaluate", "model", "a/" + "b" * 300],
        ["train", "classifier", LONG],
        ["train", "classifier", "a.svm", "--output", LONG],
        ["train", "classifier", "a.svm", "--valid", "a/" + "b" * 300],
        ["train", "classifier", "a.svm", "--config", LONG],
        ["train", "classifier", "a.svm", "--mode", LONG],
        ["train", "classifier", "a.svm", "--class-weight", LONG],
        ["train", "classifier", "a.svm", "--class-weight", "a=1e308"],
        ["train", "classifier", "a.svm", "--model", "mlp", "--hidden", "9" * 5000],
        ["train", "classifier", "a.svm", "--checkpoint-every", LONG, "--output", "m"],
        ["train", "classifier", "a.svm", "--every", LONG],
        ["train", "classifier", "a.svm", "--watch", f"weights[{'9' * 5000}]"],
        ["train", "classifier", "a.svm", "--watch", f"weights[{LONG}]"],
        ["train", "classifier", "a.svm", f"--{LONG}"],
        ["train", "classifier", "a.svm", f"--quiet={LONG}"],
        ["experiment", "asyngrad", "--threads", LONG],
        ["make-dataset", "sparse", "--nonzeros", LONG],
    ],
)
def test_a_long_value_is_shown_in_part(words, refused):
    assert len(refused(*words)) < SHORT


def test_batches_and_layers_that_no_memory_holds(files, refused):
    small = ("train", "classifier", files / "few.svm", "--lr", 0.1, "--quiet")
    assert "batch is" in refused(*small, "--mode", "minibatch", "--batch", 2**62)
    assert "dense layers" in refused(*small, "--model", "mlp", "--hidden", "1048576,1048576")


TOML = {
    "deep lists": ("epochs = " + "[" * 200_000, "nested too deeply"),
    "deep tables": ("epochs = " + "{a=" * 100_000, "nested too deeply"),
    "key of many parts": ("# one\nepochs" + ".a" * 50_000 + " = 1", "a key of that many parts .at line 2"),
    "table of many parts": ("[a" + ". b" * 50_000 + "]", "a key of that many parts .at line 1"),
    "quoted parts": ("'a'" + ' . "b"' * 50_000 + " = 1", "a key of that many parts .at line 1"),
    "digits": ("epochs = " + "9" * 5000, "thousands of digits"),
    "more than 64 bits": ("epochs = 1" + "0" * 21, "at most 64 bits"),
    "hexadecimal": ("epochs = 0x" + "f" * 100_000, "at most 64 bits"),
    "long text": (f"epochs = '{LONG}'", "must be a whole number"),
    "long key": (f"{LONG} = 1", "unknown key"),
    "twice": ("epochs = 1\nepochs = 2\nlr = 1", "line 2"),
    "NUL": ('mode = "hog\\u0000wild"', "choose one of"),
    "date": ("epochs = 1979-05-27", "must be a whole number"),
    "not UTF-8": (b"epochs = 1 # \xff", "not valid TOML"),
}


@pytest.mark.parametrize("name", TOML)
def test_hostile_toml(name, tmp_path):
    text, said = TOML[name]
    file = tmp_path / "o.toml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigError, match=said) as caught:
        values_of(read_toml(str(file)), str(file), flags_of(TrainConfig))
    assert len(str(caught.value)) < SHORT + len(str(file))
    assert "\n" not in str(caught.value)


def test_a_text_with_nul_is_no_name(refused, tmp_path):
    (tmp_path / "o.toml").write_text('output = "a\\u0000b"')
    assert "NUL" in refused("train", "classifier", "a.svm", "--config", tmp_path / "o.toml")


def test_a_file_without_end_is_no_file_of_options():
    with pytest.raises(ConfigError, match="1,048,576 bytes"):
        read_toml("/dev/zero")


def test_options_may_come_through_a_pipe():
    reader, writer = os.pipe()
    thread = threading.Thread(target=lambda: (os.write(writer, b"epochs = 7\n"), os.close(writer)))
    thread.start()
    try:
        assert read_toml(f"/dev/fd/{reader}") == {"epochs": 7}
    finally:
        thread.join()
        os.close(reader)


@pytest.mark.parametrize(
    "values", [{"epochs": 10**21}, {"epochs": 2**30}, {"epochs": "5"}, {"epochs": True}, {"lr": 1e308}, {"lr": "0.1"}]
)
def test_the_same_holds_in_python(values):
    with pytest.raises(ConfigError, match=next(iter(values))):
        TrainConfig(**values)
