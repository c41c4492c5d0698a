"""Completion scripts: bash and fish source them and complete, zsh takes them, and all name all there is."""

from __future__ import annotations

import shlex
import shutil
import subprocess

import pytest

from hogwild.cli.commands import COMMANDS
from hogwild.cli.completion import SHELLS, script

needs_bash = pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")


def complete(line, where="/"):
    """What bash offers at the end of a line, after sourcing the script."""
    code = f"""{script("bash")}
COMP_WORDS=({line.rstrip()}{' ""' if line.endswith(" ") else ""})
COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
function=$(complete -p hogwild | sed 's/.*-F //; s/ .*//')
$function hogwild "${{COMP_WORDS[$COMP_CWORD]}}" ""
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=True, cwd=where)
    assert done.stderr == ""
    return done.stdout.split()


@needs_bash
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("hogwild tr", ["train"]),
        (
            "hogwild train ",
            ["classifier", "ctr", "doc2vec", "module", "recommender", "regressor", "tagger", "word2vec"],
        ),
        ("hogwild train word2vec --sta", ["--start"]),
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
    ],
)
def test_bash_completes(line, offered):
    assert complete(line) == offered


@needs_bash
def test_bash_offers_all_commands():
    assert set(complete("hogwild ")) == {entry.words[0] for entry in COMMANDS}
    assert {"--help", "--version"} <= set(complete("hogwild --"))


@needs_bash
def test_bash_offers_files(tmp_path):
    (tmp_path / "clicks.svm").touch()
    for line in ("hogwild train classifier cli", "hogwild train classifier --valid cli", "hogwild predict cli"):
        assert complete(line, tmp_path) == ["clicks.svm"]


@pytest.mark.parametrize("shell", SHELLS)
def test_every_script_knows_the_same(shell):
    text = script(shell)
    for word in ("train", "classifier", "make-dataset", "sparse", "checkpoint-every", "round-robin", "no-bias", "zipf"):
        assert word in text


@pytest.mark.peers
@pytest.mark.skipif(shutil.which("fish") is None, reason="there is no fish here")
def test_fish_completes(tmp_path):
    path = tmp_path / "script.fish"
    path.write_text(script("fish"))

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
    (tmp_path / "_hogwild").write_text(script("zsh"))
    load = f"fpath+=({tmp_path}); autoload -Uz compinit; compinit -D -u"
    code = f"{load}; print -- $_comps[hogwild]; zsh -n {tmp_path}/_hogwild"
    said = subprocess.run(["zsh", "-f", "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert said.stdout.strip() == "_hogwild"
    assert said.stderr == ""


def test_the_command_prints_the_script(hogwild):
    said = hogwild("completion", "bash")
    assert said.code == 0
    assert said.out == script("bash")
