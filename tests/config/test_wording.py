"""Messages name flags on the command line, and arguments in Python."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from hogwild.config.wording import as_arguments
from hogwild.errors import InputError, speaking_flags, worded
from places import SOURCE

FLAG = re.compile(r"--[a-z][a-z0-9]*(?:-[a-z0-9]+)*")
# The beginning of many; what only commands have; and one of TensorBoard's.
COMMANDS = {"--no", "--train", "--tag", "--logdir", "--head", "--address", "--object-store-memory", "--shm-size"}


@pytest.mark.parametrize(
    ("flags", "arguments"),
    [
        ("Correct the line, or skip such lines with --bad-lines skip.", 'or skip such lines with `bad_lines="skip"`.'),
        ("The label is column `a` (--label chooses another).", "The label is column `a` (`label` chooses another)."),
        ("lower --dim, or use --optimizer sgd.", 'lower `dim`, or use `optimizer="sgd"`.'),
        ("set --features 10 or leave it out", "set `features=10` or leave it out"),
        ("(not with --no-scale)", "(not with `scale=False`)"),
        ("say --zero-based yes.", 'say `zero_based="yes"`.'),
        ("give it with --slots FILE.", 'give it with `slots="FILE"`.'),
        ("leave --resume out", "leave `resume=True` out"),
        ("named by both --numeric and --categorical", "named by both `numeric` and `categorical`"),
        ("see --no-such-flag and --dist loadgroup", "see --no-such-flag and --dist loadgroup"),
        ("a -- b", "a -- b"),
    ],
)
def test_flags_become_arguments(flags: str, arguments: str) -> None:
    assert as_arguments(flags).endswith(arguments)


def test_every_flag_in_the_library_is_an_argument() -> None:
    """All that messages outside of the command line name can be given in Python."""
    for path in sorted((SOURCE / "hogwild").rglob("*.py")):
        if "cli" in path.parts:
            continue
        for flag in set(FLAG.findall(path.read_text())) - COMMANDS:
            if flag.startswith("--no-"):
                flag = f"--{flag[5:]}"
            assert as_arguments(flag) != flag, f"{path}: {flag}"


def test_the_command_line_keeps_its_flags() -> None:
    error = InputError("use --label")
    with speaking_flags():
        assert str(error) == worded("use --label") == "use --label"


def test_python_speaks_of_arguments(tmp_path) -> None:
    (tmp_path / "a.csv").write_text("name,age\nann,7\nbob,8\n")
    code = """
import hogwild
feed = hogwild.open_feed("a.csv")
print(feed.notes[0])
for ask in (lambda: hogwild.open_feed("a.csv", hogwild.FeedConfig(label="agee")),
            lambda: hogwild.train(hogwild.Linear(), feed, lr="0.1"),
            lambda: hogwild.train(hogwild.Linear(), feed, epoch=3)):
    try:
        ask()
    except hogwild.HogwildError as error:
        print(error)
"""
    place = {"PYTHONPATH": str(SOURCE), "HOGWILD_CACHE": str(tmp_path / "cache"), "PATH": ""}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, check=False, cwd=tmp_path, capture_output=True, text=True, timeout=300, env=place)
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    assert said[0] == "The label is column `name` (`label` chooses another)."
    assert "there is no column `agee` (`label`); the columns are name, age. Did you mean `age`?" in said[1]
    assert said[2] == "lr is '0.1'; it must be a number."
    assert "there is no option 'epoch' (did you mean epochs?)" in said[3]
    assert "--" not in done.stdout
