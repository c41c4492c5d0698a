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


@pytest.mark.full
def test_a_cold_process_compiles_little_and_a_warm_one_nothing(tmp_path: Path) -> None:
    rows = "".join(f"{k % 7},{'red' if k % 3 else 'blue'},{'yes' if k % 2 else 'no'}\n" for k in range(60))
    (tmp_path / "rows.csv").write_text("a,b,label\n" + rows)
    model = str(tmp_path / "model")
    assert main(["train", "classifier", str(tmp_path / "rows.csv"), "--lr", "0.1", "--output", model, "--quiet"]) == 0
    predict = ["predict", model, str(tmp_path / "rows.csv"), "--proba", "--quiet"]
    cold, compiled = _run(tmp_path / "cold", *predict)
    assert compiled  # else nothing is looked at
    assert not [name for name in compiled if "find_records" in name or "fill_rows" in name or "order_by_count" in name]
    told, ahead = _run(tmp_path / "warm", "warm", model, "--json")
    assert json.loads(told)["bytes"] > 0
    assert json.loads(told)["notes"] == []
    assert [name for name in ahead if "find_records" in name]
    warm, compiled = _run(tmp_path / "warm", *predict)
    assert compiled == []
    assert warm == cold


def test_what_cannot_be_warmed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["warm", str(tmp_path / "none")]) == 2
    assert "no such model" in capsys.readouterr().err
