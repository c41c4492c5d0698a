"""hogwild experiment embeddings: one machine and two nodes, from the command line; then gone on with."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hogwild.cluster.experiment import plan_runs
from hogwild.config.experiments import EmbeddingsConfig
from hogwild.errors import ConfigError
from places import SOURCE

WORDS = 20_000


def test_the_plan() -> None:
    plan = plan_runs(EmbeddingsConfig(nodes=(2,), strategies=("average", "parameter-actor-asynchronous"), seeds=2))
    told = [(run.method, run.threads, run.seed) for run in plan]
    once = [("one machine", 1), ("one machine", 2), ("parameter-actor, asynchronous", 2), ("average", 2)]
    assert told == [(*each, seed) for seed in (1, 2) for each in once]
    assert str(plan[0]) == "one machine, 1 worker, seed 1"
    assert str(plan[3]) == "average, 2 nodes, seed 1"
    small = EmbeddingsConfig(small=True)
    assert (small.node_counts, small.methods, small.iterations) == ((1, 2), ("parameter-actor", "average"), 2)


@pytest.mark.parametrize(
    "wrong",
    [{"nodes": (0,)}, {"nodes": (2, 2)}, {"strategies": ("mean",)}, {"dim": 0}, {"epochs": 0}, {"lr": 0.0}],
    ids=str,
)
def test_values_that_cannot_work(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        EmbeddingsConfig(**wrong)


@pytest.mark.full
def test_two_nodes_beside_one_machine(tmp_path: Path) -> None:
    chosen = random.Random(5)
    lines = (" ".join(f"{t}{chosen.randrange(40)}" for _ in range(10)) for t in chosen.choices("ab", k=WORDS // 10))
    (tmp_path / "text.txt").write_text("\n".join(lines) + "\n")
    pairs = [(f"a{k}", f"a{k + 1}", 9) for k in range(20)] + [(f"a{k}", f"b{k}", 1) for k in range(20)]
    (tmp_path / "pairs.tsv").write_text("".join("\t".join(map(str, pair)) + "\n" for pair in pairs))
    command = [
        sys.executable, "-m", "hogwild", "experiment", "embeddings", "--train", "text.txt", "--tests", "pairs.tsv",
        "--nodes", "2", "--strategies", "average", "--epochs", "2", "--seeds", "1", "--dim", "16",
        "--output", "found.json",
    ]  # fmt: skip

    def call(*more: str) -> str:
        environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
        done = subprocess.run(
            [*command, *more], env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=500, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    table = call()
    assert "bytes/word" in table
    found = json.loads((tmp_path / "found.json").read_text())
    assert (found["schema"], found["complete"]) == ("hogwild.embeddings", True)
    methods = {(entry["method"], entry["threads"]): entry for entry in found["methods"]}
    assert list(methods) == [("one machine", 1), ("one machine", 2), ("average", 2)]
    assert found["data"]["words"] == WORDS
    for (method, _), entry in methods.items():
        assert entry["duration"]["mean"] > 0
        assert -1 <= entry["final_score"]["mean"] <= 1  # so little text says nothing of how good
        assert (entry["traffic"] is None) == (method == "one machine")
    traffic = methods["average", 2]["traffic"]
    assert traffic["bytes"] > 0
    assert traffic["messages"] > 0
    assert traffic["memory_a_node"] > 1e6
    assert traffic["bytes_a_word"] == pytest.approx(traffic["bytes"] / (2 * WORDS))
    assert all(list(run["iterations"][-1]["tests"]) == ["pairs.tsv"] for run in found["runs"])
    del found["runs"][2:]
    found["complete"] = False
    (tmp_path / "found.json").write_text(json.dumps(found))
    call("--resume", "--report", "page.html")
    again = json.loads((tmp_path / "found.json").read_text())
    assert again["runs"][:2] == found["runs"]
    assert again["complete"] is True
    assert "found: average, 2 threads" in (tmp_path / "page.html").read_text()
