"""What nodes count as sent and received, against what the kernel counts on their interfaces."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cluster.namespaces import Carried, Machine, network, ray_on, why_not
from places import SOURCE

pytest.importorskip("ray")
LIMIT = 300.0  # seconds of a training, on busy cores
LONGEST = 1.1  # times what is counted: headers of Ray, gRPC, TCP and Ethernet, and what was sent again
BESIDE = 3 << 20  # bytes for which no node counts: versions, the program, vocabulary and counts of words, questions
WORDS, VOCABULARY, EPOCHS, CELLS = 400_000, 5_000, 2, 112  # cells of a row: 100 and what fills it up

LENGTH = "--epochs", str(EPOCHS), "--sync-every", "100"


@pytest.fixture(scope="module")
def machines() -> Iterator[list[Machine]]:
    """Two of them."""
    reason = why_not()
    if reason:
        pytest.skip(reason)
    with network(2) as made:
        yield made


@pytest.fixture(scope="module")
def address(machines: list[Machine]) -> Iterator[str]:
    """Of a Ray on both."""
    with ray_on(machines) as started:
        yield started


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Words of a few letters, some more frequent than others."""
    random = np.random.default_rng(5)
    chance = 1 / (np.arange(VOCABULARY) + 3)
    path = tmp_path_factory.mktemp("text") / "text.txt"
    words = random.choice(VOCABULARY, WORDS, p=chance / chance.sum())
    lines = [" ".join(f"w{word}" for word in line) for line in np.array_split(words, 400)]
    path.write_text("\n".join(lines))
    return path


def _train(machines: list[Machine], address: str, text: Path, *options: str) -> tuple[dict[str, Any], list[set[int]]]:
    """The JSON object of a run whose driver is on the first machine, and the processes of nodes on each."""
    command = [
        sys.executable, "-m", "hogwild", "train", "word2vec", str(text), "--cluster", address, "--nodes", "2",
        "--workers-per-node", "1", "--min-count", "1", "--json", *options,
    ]  # fmt: skip
    log = text.parent / "driver"
    driver = machines[0].popen(command, log, PYTHONPATH=str(SOURCE))
    until = time.monotonic() + LIMIT
    homes: list[set[int]] = [set() for _ in machines]
    while driver.poll() is None:
        if time.monotonic() > until:
            raise TimeoutError(log.read_text())  # the namespaces end it
        for home, machine in zip(homes, machines, strict=True):
            home |= {pid for pid, title in machine.titles().items() if title.startswith("ray::Node")}
        time.sleep(0.2)
    assert driver.returncode == 0, log.read_text()
    found: dict[str, Any] = json.loads(Path(f"{log}.out").read_text())
    return found, homes


def _check(counted: int, carried: int, background: float) -> None:
    assert counted <= carried <= LONGEST * counted + BESIDE + background, (counted, carried, background)


@pytest.mark.full
@pytest.mark.parametrize("strategy", ["average", "gossip"])
def test_counts_are_those_of_the_kernel(machines: list[Machine], address: str, text: Path, strategy: str) -> None:
    """Of the second node, all of whose traffic crosses: the other node and the driver are on the first machine."""
    quiet, began = machines[1].carried(), time.monotonic()
    time.sleep(5)
    idle = [each / (time.monotonic() - began) for each in machines[1].carried().since(quiet)]
    before, began = [machine.carried() for machine in machines], time.monotonic()
    run, homes = _train(machines, address, text, *LENGTH, "--strategy", strategy)
    after, seconds = [machine.carried() for machine in machines], time.monotonic() - began
    assert [len(home) for home in homes] == [1, 1]
    first, second = (now.since(then) for now, then in zip(after, before, strict=True))
    assert abs(first.sent - second.received) + abs(first.received - second.sent) < 10_000  # nothing else is there
    node = run["cluster"]["nodes"][1]
    counted = Carried(node["sent"], node["received"])
    weights = 2 * run["vocabulary"] * CELLS * 4
    assert node["kinds"]["weights"]["received"] == weights
    taken, rest = divmod(node["kinds"]["weights"]["sent"], weights)  # once an epoch, unless all nodes have the same
    assert (taken >= EPOCHS if strategy == "gossip" else taken == 0, rest) == (True, 0)
    assert min(counted) > 4 * BESIDE  # else the room for what is not counted would hide a count that is wrong
    _check(counted.sent, second.sent, idle[0] * seconds)
    _check(counted.received, second.received, idle[1] * seconds)


@pytest.mark.full
def test_counts_with_parameter_actors(machines: list[Machine], address: str, text: Path) -> None:
    """One on each machine: a half of what a node sends, and of what it receives, stays on its machine."""
    before, began = machines[1].carried(), time.monotonic()
    run, homes = _train(machines, address, text, *LENGTH, "--strategy", "parameter-actor", "--shards", "2")
    carried, seconds = machines[1].carried().since(before), time.monotonic() - began
    assert [len(home) for home in homes] == [1, 1]
    changes = [node["kinds"]["changes"] for node in run["cluster"]["nodes"]]
    weights = run["cluster"]["nodes"][1]["kinds"]["weights"]["received"]
    # Rows go by their numbers, even ones to one actor and odd ones to the other: about a half.
    sent = (changes[1]["sent"] + changes[0]["received"]) // 2
    received = (changes[0]["sent"] + changes[1]["received"]) // 2 + weights
    _check(round(0.97 * sent), carried.sent, 1000 * seconds)
    _check(round(0.97 * received), carried.received, 1000 * seconds)


@pytest.mark.full
def test_the_interval_follows_the_link(machines: list[Machine], address: str, text: Path) -> None:
    """Of 50 Mbit/s, less than the changes of two nodes would fill."""
    log = text.parent / "log"
    for machine in machines:
        machine.throttle("50mbit")
    try:
        run, _ = _train(machines, address, text, "--epochs", "8", "--log-dir", str(log))
    finally:
        for machine in machines:
            machine.unthrottle()
    carries = next(re.search(r"slowest link carries ([\d,]+) MB/s", note) for note in run["notes"] if "link" in note)
    assert carries is not None
    assert 2 <= int(carries.group(1)) <= 7  # 6.25 MB/s
    told = [json.loads(line) for line in (log / "events.jsonl").read_text().splitlines()]
    every = [event["every"] for event in told if event["event"] == "nodes"]
    assert every[-1] >= 2 * every[0]
    assert run["cluster"]["words"] == 8 * WORDS
