"""`hogwild predict MODEL -` with a recommender: pairs are answered as they come, as those of a file are."""

from __future__ import annotations

import gzip
import io
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import hogwild as package
from hogwild.cli.apply import lines

COLUMNS = ["user", "item", "rating"]


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """pairs.csv, and a model of ratings of users `u 0`, …, and items a, …, l."""
    place = tmp_path_factory.mktemp("served")
    random = np.random.default_rng(1)
    users, items = random.integers(0, 20, 900), random.integers(0, 12, 900)
    ratings = (users % 4 + items % 3 + random.integers(0, 2, 900)).tolist()
    names = [f"u {k}" for k in users], [chr(97 + k) for k in items]
    feed = package.ratings_of(*names, ratings)
    program = package.train(package.MatrixFactorization(dim=4), feed, epochs=5, mode="serial", quiet=True)
    package.save_model(place / "model", program)
    rows = list(zip(*names, ratings, strict=True))[:40]
    rows[3], rows[7] = ("nobody", "a", 1), ("u 1", "nothing", 1)
    pd.DataFrame(rows, columns=COLUMNS).to_csv(place / "pairs.csv", index=False)
    return place


def talk(model, *words):
    """A command that reads what is sent to it."""
    command = [sys.executable, "-m", "hogwild", "predict", str(model), "-", *words]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("header", [True, False])
def test_pairs_are_answered_as_they_come(hogwild, served, header):
    of_file = hogwild("predict", served / "model", served / "pairs.csv")
    sent = (served / "pairs.csv").read_text().splitlines(keepends=True)
    with talk(served / "model") as run:
        if header:
            run.stdin.write(sent[0])
            run.stdin.flush()
        for line, answer in zip(sent[1:], of_file.out.splitlines(keepends=True), strict=True):
            run.stdin.write(line)
            run.stdin.flush()
            assert run.stdout.readline() == answer  # before the next one is sent
        run.stdin.close()
        assert run.stdout.read() == ""
        assert run.wait() == 0
        assert run.stderr.read() == of_file.err
    assert "1 rating of users that the model does not know." in of_file.err
    assert "1 rating of items that the model does not know." in of_file.err


def test_lists_are_answered_as_they_come(served):
    program = package.load_model(served / "model").program
    with talk(served / "model", "--quiet", "--format", "lists") as run:
        for user, items in (("u", "abc"), ("v", "b"), ("w", "")):
            run.stdin.write(" ".join([user, *items]) + "\n")
            run.stdin.flush()
            for item in items:
                assert float(run.stdout.readline()) == pytest.approx(program.predict_one(user, item), rel=1e-5)
        run.stdin.close()
        assert run.wait() == 0


def piped(hogwild, monkeypatch, model, data, *words):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    return hogwild("predict", model, "-", *words)


def test_what_comes_in_parts_is_the_same(hogwild, served, monkeypatch, tmp_path):
    data = (served / "pairs.csv").read_bytes()
    expected = hogwild("predict", served / "model", served / "pairs.csv")
    pd.read_csv(served / "pairs.csv").to_parquet(tmp_path / "p.parquet")
    monkeypatch.setattr(lines, "_MOST", 30)
    for sent in (data, data.rstrip(b"\n"), b"\n\n" + data, gzip.compress(data), (tmp_path / "p.parquet").read_bytes()):
        said = piped(hogwild, monkeypatch, served / "model", sent)
        assert said.out == expected.out, said.err
    assert piped(hogwild, monkeypatch, served / "model", data).err == expected.err


@pytest.mark.parametrize("header", ["who,what,when\n", ""])
def test_a_header_of_strange_names_waits_for_the_next_line(hogwild, served, monkeypatch, tmp_path, header):
    """Three columns of words: only another line tells a header, or a user or item that the model knows."""
    rows = "u 1,a,7\nu 2,b,8\n" if header else "u 1,a,monday\nu 2,b,friday\n"
    (tmp_path / "pairs.csv").write_text(header + rows)
    expected = hogwild("predict", served / "model", tmp_path / "pairs.csv").out
    monkeypatch.setattr(lines, "_MOST", 1)
    assert piped(hogwild, monkeypatch, served / "model", (header + rows).encode()).out == expected
    assert expected.count("\n") == 2
    with talk(served / "model", "--quiet") as run:
        run.stdin.write(header + rows.splitlines(keepends=True)[0])
        run.stdin.flush()
        assert run.stdout.readline() == expected.splitlines(keepends=True)[0]
        run.stdin.close()
        assert run.wait() == 0


def test_a_wrong_line_is_told_as_of_a_file(hogwild, served, monkeypatch, tmp_path):
    rows = (served / "pairs.csv").read_text().splitlines()
    rows[20], rows[30] = "u 1", ",a,3"
    data = ("\n".join(rows) + "\n").encode()
    (tmp_path / "pairs.csv").write_bytes(data)
    monkeypatch.setattr(lines, "_MOST", 30)
    for words in ((), ("--bad-lines", "skip"), ("--bad-lines", "skip", "--bad-share", 0.1)):
        of_file = hogwild("predict", served / "model", tmp_path / "pairs.csv", *words)
        said = piped(hogwild, monkeypatch, served / "model", data, *words)
        assert (said.code, said.err) == (of_file.code, of_file.err.replace(f"{tmp_path}/pairs.csv", "standard input"))
    assert said.out == of_file.out != ""
    said = piped(hogwild, monkeypatch, served / "model", data)
    assert "standard input:21: 1 column, not 3 as most lines have: `u 1`. Correct the line" in said.err


def test_lists_that_begin_as_columns_name_the_format(hogwild, served, monkeypatch):
    monkeypatch.setattr(lines, "_MOST", 6)
    said = piped(hogwild, monkeypatch, served / "model", b"3 17 5\n4 1 2 3 9\n")
    assert said.code == 2
    assert "standard input:2: 5 columns, not 3" in said.err
    assert "--format lists" in said.err


@pytest.mark.parametrize("sent", [b"", b"\n\n", b"ann\n", b"user,item\n"])
def test_standard_input_without_a_pair(hogwild, served, monkeypatch, sent):
    said = piped(hogwild, monkeypatch, served / "model", sent)
    assert said.code == 2
    assert "standard input: no ratings" in said.err
