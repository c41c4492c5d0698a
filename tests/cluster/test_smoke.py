"""One run on two nodes, from the command line: what `make test` sees of a cluster. The rest is in `make test-full`."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import hogwild
from places import SOURCE

EPOCHS, WORDS = 2, 30_000


def test_two_nodes_train_word_vectors(tmp_path: Path) -> None:
    chosen, text = random.Random(3), tmp_path / "text.txt"
    lines = (" ".join(f"w{chosen.randrange(200)}" for _ in range(10)) for _ in range(WORDS // 10))
    text.write_text("\n".join(lines) + "\n")
    command = [
        sys.executable, "-m", "hogwild", "train", "word2vec", str(text), "--cluster", "local", "--nodes", "2",
        "--workers-per-node", "1", "--epochs", str(EPOCHS), "--dim", "16", "--output", str(tmp_path / "vectors"),
        "--log-dir", str(tmp_path / "log"), "--json",
    ]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)  # and nothing else is there
    assert told["cluster"]["words"] == EPOCHS * WORDS
    assert [node["node"] for node in told["cluster"]["nodes"]] == [0, 1]
    assert all(node["sent"] > 0 and node["messages_sent"] > 0 for node in told["cluster"]["nodes"])
    kinds = [json.loads(line)["event"] for line in (tmp_path / "log" / "events.jsonl").read_text().splitlines()]
    assert kinds[:2] == ["run", "started"]
    assert "nodes" in kinds
    assert kinds[-2:] == ["finished", "summary"]
    model = hogwild.load_model(tmp_path / "vectors").program
    assert len(model.words) == 200  # type: ignore[attr-defined]
