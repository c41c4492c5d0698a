"""Completion scripts: bash can source ours and completes; the others name all there is."""

from __future__ import annotations

import shlex
import shutil
import subprocess

import pytest

from hogwild.cli.commands import COMMANDS
from hogwild.cli.completion import bash, fish, zsh

needs_bash = pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")


def complete(line):
    """What bash offers at the end of a line, after sourcing the script."""
    script = f"""{bash()}
COMP_WORDS=({line.rstrip()}{' ""' if line.endswith(" ") else ""})
COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
_hogwild
printf '%s\\n' "${{COMPREPLY[@]}}"
complete -p hogwild >&2
"""
    done = subprocess.run(["bash", "-eu", "-c", script], capture_output=True, text=True, check=True)
    assert "-F _hogwild" in done.stderr
    return done.stdout.split()


@needs_bash
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("hogwild tr", ["train"]),
        ("hogwild train ", ["classifier", "ctr", "recommender", "tagger", "word2vec"]),
        ("hogwild train word2vec --st", ["--start"]),
        ("hogwild train word2vec --no-cb", ["--no-cbow"]),
        ("hogwild train cl", ["classifier"]),
        ("hogwild make-dataset ", ["sparse", "clicks", "ratings"]),
        ("hogwild train classifier --chec", ["--checkpoint-every"]),
        ("hogwild train classifier x.svm --no-bia", ["--no-bias"]),
        ("hogwild train classifier --mode ", ["hogwild", "serial", "locked", "round-robin", "minibatch"]),
        ("hogwild train classifier --mode r", ["round-robin"]),
        ("hogwild train classifier x.svm --optimizer ad", ["adagrad", "adam"]),
        ("hogwild make-dataset sparse --dist", ["--distribution"]),
        ("hogwild make-dataset sparse --dense", ["--dense-size"]),
        ("hogwild make-dataset sparse --distribution ", ["zipf", "uniform"]),
        ("hogwild train tagger --rich-edge-pairs ", ["seen", "all"]),
        ("hogwild completion ", ["bash", "zsh", "fish"]),
        ("hogwild cache c", ["clear"]),
        ("hogwild evaluate model --js", ["--json"]),
        ("hogwild train classifier ", []),      # files: the shell's own
        ("hogwild predict mod", []),
    ],
)
def test_bash_completes(line, offered):
    assert complete(line) == offered


@needs_bash
def test_bash_offers_all_commands():
    assert set(complete("hogwild ")) == {entry.words[0] for entry in COMMANDS} | {"--help", "--version"}


@pytest.mark.parametrize("script", [zsh, fish])
def test_the_other_shells_know_the_same(script):
    text = script()
    for word in ("train", "classifier", "make-dataset", "sparse", "checkpoint-every", "round-robin", "no-bias", "zipf"):
        assert word in text
    for opening, closing in ("()", "{}"):
        assert script is fish or text.count(opening) <= text.count(closing)     # case branches close alone


@pytest.mark.peers
@pytest.mark.skipif(shutil.which("fish") is None, reason="there is no fish here")
def test_fish_completes(tmp_path):
    path = tmp_path / "script.fish"
    path.write_text(fish())

    def offered(line):
        command = ["fish", "--no-config", "-c", f"source {path}; complete -C {shlex.quote(line)}"]
        said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60, cwd=tmp_path)
        assert said.stderr == ""
        return {text.partition("\t")[0] for text in said.stdout.splitlines()}

    assert {"train", "evaluate", "make-dataset"} <= offered("hogwild ")
    assert offered("hogwild train ") == {entry.words[1] for entry in COMMANDS if entry.words[0] == "train"}
    assert {"--epochs", "--loss"} <= offered("hogwild train classifier --")
    assert {"hogwild", "round-robin"} <= offered("hogwild train classifier --mode ")


@pytest.mark.peers
@pytest.mark.skipif(shutil.which("zsh") is None, reason="there is no zsh here")
def test_zsh_takes_it_for_our_command(tmp_path):
    path = tmp_path / "script"
    path.write_text(zsh())
    code = f"autoload -Uz compinit; compinit -D -d {tmp_path}/dump; source {path}; print -- $_comps[hogwild]"
    said = subprocess.run(["zsh", "-f", "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert said.stdout.strip() == "_hogwild"
    assert said.stderr == ""


def test_the_command_prints_the_script(hogwild):
    said = hogwild("completion", "bash")
    assert said.code == 0
    assert said.out == bash()
