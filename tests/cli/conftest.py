"""Small files to train on, and the command line called in this process."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import NamedTuple

import pytest

from cli.sentences import write_sentences, write_words
from hogwild.cli.main import main
from hogwild.config import SparseConfig
from hogwild.feeds.synthetic.lines import svmlight
from hogwild.feeds.synthetic.sparse import make_rows
from hogwild.feeds.synthetic.truth import Truth
from places import SOURCE

# Everywhere up to eight tags, sgd and rich edges: each combination is compiled for itself.
SERIAL = ("--mode", "serial", "--epochs", 3)


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """train.svm and test.svm of one problem; few.svm with three rows."""
    place = tmp_path_factory.mktemp("files")
    config = SparseConfig(rows=2000, features=500, nonzeros="5:15", noise=0.05)
    for name, changed in {
        "train": config,
        "test": replace(config, rows=500, part=1),
        "few": replace(config, rows=3, seed=3),
    }.items():
        (place / f"{name}.svm").write_bytes(b"".join(svmlight(rows) for rows in make_rows(changed, Truth())))
    return place


@pytest.fixture(autouse=True)
def _cache(tmp_path_factory, monkeypatch):
    """Encoded data of a test goes nowhere near the user's; compiled code stays where it is, for children too."""
    monkeypatch.setenv("HOGWILD_CACHE", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.setenv("PYTHONPATH", str(SOURCE))


class Said(NamedTuple):
    """What a command line did."""

    code: int
    out: str
    err: str

    @property
    def json(self):
        """Standard output, which must be exactly one JSON object on one line."""
        assert self.out.count("\n") == 1, self.out

        def refuse(name):
            raise AssertionError(f"{name} is not JSON")

        return json.loads(self.out, parse_constant=refuse)


@pytest.fixture
def hogwild(capfd):
    """Call the command line in this process."""

    def call(*words):
        capfd.readouterr()
        code = main([str(word) for word in words])
        return Said(code, *capfd.readouterr())

    return call


@pytest.fixture
def refused(hogwild):
    """Call the command line with something wrong: exit code 2 and one or two lines, no traceback."""

    def call(*words, code=2):
        said = hogwild(*words)
        assert said.code == code, said
        assert said.out == ""
        lines = said.err.strip().splitlines()
        errors = [line for line in lines if line.startswith("hogwild: error: ")]
        assert len(errors) == 1, said.err
        assert "Traceback" not in said.err
        assert len(lines) - lines.index(errors[0]) <= 2
        return errors[0]

    return call


@pytest.fixture(scope="session")
def tagged(tmp_path_factory):
    """train.txt and test.txt, phrases of one small grammar; pos.txt, its parts of speech; words.txt, its words."""
    place = tmp_path_factory.mktemp("text")
    write_sentences(place / "train.txt", 300)
    write_sentences(place / "test.txt", 80, seed=1)
    write_sentences(place / "pos.txt", 300, columns=(0, 1))
    write_words(place / "words.txt", 400)
    return place


@pytest.fixture(scope="session")
def _tagger(tmp_path_factory):
    return tmp_path_factory.mktemp("models") / "tagger"


@pytest.fixture
def tagger(hogwild, tagged, _tagger):
    """A model of train.txt, made once."""
    if not _tagger.exists():
        assert hogwild("train", "tagger", tagged / "train.txt", *SERIAL, "--output", _tagger).code == 0
    return _tagger
