"""Word vectors of which no node has all rows: they learn as those of whole tables, in less memory. With a real Ray."""

from __future__ import annotations

import resource
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

import hogwild
from cluster.killing import Killer
from cluster.test_run import executor, made_text
from hogwild.cluster import Texts
from hogwild.cluster.fleet import Fleet
from hogwild.cluster.session import Session
from hogwild.errors import ConfigError
from problems.tasks import count_program, touches

pytestmark = pytest.mark.full

ACTOR = {"strategy": "parameter-actor", "sync_every": 30}
PAGED = {**ACTOR, "paged": True, "noise_pool": 200}


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    path = tmp_path_factory.mktemp("text") / "text.txt"
    return path, made_text(path)


def vectors_of(text: Path, options: dict[str, Any], **train: Any) -> hogwild.Word2Vec:
    program = hogwild.Word2Vec(dim=12)
    with executor(options, **train) as runs:
        list(runs.run(program, Texts(text)))
    return program


def test_rows_at_hand_learn_what_the_whole_table_does(nodes: Session, text: tuple[Path, int]) -> None:
    """One node, which draws the same negatives: what it borrows and brings back is all that differs."""
    whole = vectors_of(text[0], {"nodes": 1, "sync_every": 30, "noise_pool": 200}, epochs=2)
    for options in ({"max_delay": 0}, {"max_delay": 1, "shards": 3}, {"asynchronous": True}):
        paged = vectors_of(text[0], {**PAGED, "nodes": 1, "deltas": "float32", **options}, epochs=2)
        assert paged.words == whole.words
        for name, array in whole.arrays().items():
            np.testing.assert_allclose(paged.arrays()[name], array, rtol=1e-4, atol=2e-5, err_msg=f"{options} {name}")


@pytest.mark.parametrize("options", [{"shards": 2}, {"asynchronous": True, "workers_per_node": 2}], ids=str)
def test_two_nodes_borrow_and_bring_back(nodes: Session, text: tuple[Path, int], options: dict[str, Any]) -> None:
    path, words = text
    program = hogwild.Word2Vec(dim=16, sample=0)
    with executor({**PAGED, **options}, epochs=5) as runs:
        events = list(runs.run(program, Texts(path)))
    assert events[-1].units == 5 * words
    assert not [event for event in events if event.kind == "lost"]
    *_, told = [event for event in events if event.kind == "nodes"]
    assert all(node["kinds"]["rows"]["received"] and node["kinds"]["changes"]["sent"] for node in told.nodes)
    near = [name for name, _ in program.vectors.most_similar("t0w1", topn=20)]
    assert sum(name.startswith("t0") for name in near) >= 18


def test_a_killed_parameter_actor_costs_no_word(nodes: Session, tmp_path: Path) -> None:
    path, words = tmp_path / "text.txt", 200_000
    path.write_text("".join(f"w{k % 97} w{k % 89}{' ' if k % 10 else chr(10)}" for k in range(words // 2)))
    program = hogwild.Word2Vec(dim=16, sample=0)
    with executor({**PAGED, "shards": 2}, epochs=6) as runs:
        killer = Killer(runs, "parameter actor", 1.0)
        killer.start()
        events = list(runs.run(program, Texts(path)))
        killer.over = True
        killer.join()
    assert events[-1].units == 6 * words
    assert np.isfinite(program.vectors.matrix).all()
    if [event for event in events if event.kind == "lost"]:
        assert killer.killed


def test_a_stopped_run_goes_on(nodes: Session, text: tuple[Path, int]) -> None:
    path, words = text
    program = hogwild.Word2Vec(dim=16, sample=0)
    with executor({**PAGED, "shards": 2}, epochs=20) as runs:
        for event in runs.run(program, Texts(path)):
            if event.kind == "progress" and event.samples:
                runs.stop()
        state = runs.state()
    assert event.reason == "stopped"
    before = program.arrays()["vectors"]
    with executor({**PAGED, "shards": 2}, epochs=20) as runs:
        for event in runs.run(program, Texts(path), start=state):
            if event.kind == "started":
                np.testing.assert_array_equal(program.arrays()["vectors"], before)
    assert event.units == 20 * words


def test_no_process_needs_the_memory_of_the_tables(
    nodes: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None may take as much, untouched memory included; none has two thirds of it. The driver has them in files."""
    words, dim = 120_000, 768
    whole = 2 * 4 * words * dim
    limit = whole * 19 // 20
    random, path = np.random.default_rng(1), tmp_path / "text.txt"
    order = np.concatenate([np.arange(words), random.integers(0, words, words // 2)])
    path.write_text("".join(f"w{k}{chr(10) if n % 20 == 0 else ' '}" for n, k in enumerate(order.tolist())))
    limited: dict[int, int] = {}
    begin = Fleet.start_nodes

    def begin_small(fleet: Fleet) -> None:
        begin(fleet)
        for pid in set(fleet.pids().values()) - set(limited):
            limited[pid] = psutil.Process(pid).memory_info().data + limit
            resource.prlimit(pid, resource.RLIMIT_DATA, (limited[pid], limited[pid]))

    monkeypatch.setattr(Fleet, "start_nodes", begin_small)
    program = hogwild.Word2Vec(dim=dim)
    options = {**PAGED, "shards": 4, "noise_pool": 500}
    corpus = hogwild.CorpusConfig(min_count=1)
    before, most, all_most = _anonymous(), 0, 0
    with executor(options, epochs=1) as runs:
        for event in runs.run(program, Texts(path, corpus)):
            assert event.kind != "lost", event
            units, most = getattr(event, "units", 0), max(most, _anonymous())
            all_most = max([all_most, *map(_anonymous, limited)])
        place = tmp_path / "model"
        hogwild.save_model(place, program)
        most = max(most, _anonymous())
    assert len(limited) == 2 + 4 + 2  # nodes, parameter actors, fetchers
    assert units == len(order)
    assert most - before < whole // 2
    assert all_most < whole * 2 // 3
    assert hogwild.load_model(place).program.words == program.words


def _anonymous(pid: int | str = "self") -> int:
    """Bytes of a process that are in memory and in no file."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return 1024 * int(line.split()[1])
    raise AssertionError


def test_what_cannot_be_paged_is_refused(nodes: Session, text: tuple[Path, int]) -> None:
    with pytest.raises(ConfigError, match="paged is for word vectors"), executor({**ACTOR, "paged": True}) as runs:
        list(runs.run(count_program(50), touches(100, 50), lr=1.0))
    with pytest.raises(ConfigError, match="noise_pool is for word vectors"), executor({"noise_pool": 9}) as runs:
        list(runs.run(count_program(50), touches(100, 50), lr=1.0))
    with pytest.raises(ConfigError, match="in its order"), executor(PAGED) as runs:
        list(runs.run(hogwild.Word2Vec(), Texts(text[0]), shuffle=True))
    for wrong in ({"strategy": "average", "sync_every": 0}, {"max_delay": 2}, {"tier_rows": 5}):
        with pytest.raises(ConfigError, match=r"paged|with paged"):
            executor({**PAGED, **wrong})
