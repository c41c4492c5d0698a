"""`hogwild warm`: what it compiles is there for the next process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hogwild.cli.main import main
from places import SOURCE

COUNT = """
import sys, time
from numba.core import event
def of(function): return f"{function.__module__}.{function.__name__}"
class Compiled(event.Listener):
    names = []
    def on_start(self, found): self.names.append(of(found.data["dispatcher"].py_func))
    def on_end(self, found): pass
event.register("numba:compile", Compiled())
from hogwild.cli.main import main
code = main(sys.argv[1:])
print([name for name in Compiled.names if "hogwild" in name], file=sys.stderr)
sys.exit(code)
"""


def _run(cache: Path, *words: str) -> tuple[str, list[str]]:
    """Standard output, and what was compiled."""
    environment = {**os.environ, "HOGWILD_CACHE": str(cache), "PYTHONPATH": str(SOURCE.parent)}
    environment.pop("NUMBA_CACHE_DIR", None)
    done = subprocess.run([sys.executable, "-c", COUNT, *words], env=environment, capture_output=True, check=True)
    return done.stdout.decode(), eval(done.stderr.decode().splitlines()[-1])


TABLE = "a,b,label\n" + "".join(f"{k % 7},{'red' if k % 3 else 'blue'},{'yes' if k % 2 else 'no'}\n" for k in range(60))
ROWS = "".join(f"{k % 2} {1 + k % 7}:0.{k} {9 + k % 5}:{k}e-1 {1000 + k}:1\n" for k in range(60))
RATINGS = "".join(f"{k % 9},{k % 13},{1 + k % 5}\n" for k in range(80))
WORDS = "".join(f"w{k % 11} {'N' if k % 2 else 'V'}\n" + "\n" * (k % 8 == 7) for k in range(80))
CASES = {
    "table": (["classifier"], "rows.csv", TABLE, ("find_records", "fill_rows", "order_by_count")),
    "svmlight": (["classifier"], "rows.svm", ROWS, ("parse_block", "read_number")),
    "ratings": (["recommender"], "ratings.csv", RATINGS, ("read_columns", "encode_strings")),
    "tagged": (["tagger"], "words.txt", WORDS, ("write_keys", "find_keys", "fill_cells")),
}


@pytest.mark.full
@pytest.mark.parametrize("name", CASES)
def test_a_cold_process_compiles_little_and_a_warm_one_nothing(name: str, tmp_path: Path) -> None:
    kind, file, text, readers = CASES[name]
    (tmp_path / file).write_text(text)
    model, data = str(tmp_path / "model"), str(tmp_path / file)
    assert main(["train", *kind, data, "--lr", "0.1", "--epochs", "1", "--output", model, "--quiet"]) == 0
    predict = ["predict", model, data, "--quiet"]
    cold, compiled = _run(tmp_path / "cold", *predict)
    assert compiled  # else nothing is looked at
    assert not [name for name in compiled if name.endswith(readers)]
    told, ahead = _run(tmp_path / "warm", "warm", model, "--json")
    assert json.loads(told)["bytes"] > 0
    assert json.loads(told)["notes"] == []
    assert [name for name in ahead if name.endswith(readers[:1])]
    warm, compiled = _run(tmp_path / "warm", *predict)
    assert compiled == []
    assert warm == cold


def test_what_cannot_be_warmed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["warm", str(tmp_path / "none")]) == 2
    assert "no such model" in capsys.readouterr().err
