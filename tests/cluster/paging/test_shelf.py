"""Rows that a parameter actor holds, in this process: lent, brought back, added once."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from hogwild.arrays import Table
from hogwild.cluster.paging.blocks import Block, Need, draw_pool, need_of
from hogwild.cluster.paging.shelf import Shelf
from hogwild.cluster.parameters import Parameters
from hogwild.cluster.wire.packing import pack, unpack
from hogwild.cluster.wire.rounds import Round
from hogwild.cluster.wire.values import part_of, rows_of, values_of
from hogwild.config.cluster import ClusterConfig
from hogwild.errors import ClusterError
from hogwild.kernels.word2vec.windows import alias_table

TABLE = Table(10, 4, "ranked", (True, True, True, False))
TABLES = {"inputs": TABLE, "outputs": TABLE}
BLOCKS = [Block(0, number, 10 * number, 10 * number + 10) for number in range(3)]


def shelf(nodes: int = 2, shard: int = 1, **options: Any) -> Shelf:
    given = {"paged": True, "shards": 3, "deltas": "float32", "combine": "sum", **options}
    made = Shelf(shard, ClusterConfig("local", strategy="parameter-actor", **given))
    made.load(TABLES, nodes, 0)
    for name in TABLES:  # of shard 1: rows 1, 4, 7
        made.put(name, 0, np.repeat(np.arange(3, dtype=np.float32)[:, None], 4, 1) * [1, 1, 1, 0])
    return made


def lent(made: Shelf, rank: int, block: Block, after: Round | None = None, negatives: Any = (7, 7, 2)) -> Any:
    packet, _ = made.lend(rank, block, after, np.array([0, 1, 4]), np.array(negatives))
    found = unpack(packet, TABLES)
    return {rows.table: (rows.numbers.tolist(), values_of(rows, TABLE)[:, 0].tolist()) for rows in found}


def change(numbers: list[int], step: float) -> Any:
    values = np.full((len(numbers), 4), step, np.float32) * np.array([1, 1, 1, 0], np.float32)
    return pack([rows_of("outputs", np.array(numbers), values, TABLE, "float32")], TABLES, "float32")


def test_words_are_of_both_tables_and_negatives_of_one() -> None:
    assert lent(shelf(), 0, BLOCKS[0]) == {"inputs": ([1, 4], [0, 1]), "outputs": ([1, 4, 7], [0, 1, 2])}


def test_what_was_sent_before_a_fault_does_not_count() -> None:
    made, parameters = shelf(1), Parameters(0, ClusterConfig("local", strategy="parameter-actor", deltas="float32"))
    made.load(TABLES, 1, 1)
    parameters.load(TABLES, 1, 1)
    for late in (
        lambda: made.push(0, Round(0, 1), BLOCKS[0], change([4], 5)),
        lambda: parameters.push(0, Round(0, 1), change([4], 5), None),
    ):
        with pytest.raises(ClusterError, match=r"exchange 1 of epoch 1 is of attempt 1; this is attempt 2\."):
            late()
    now = Round(0, 1, attempt=1)
    made.push(0, now, BLOCKS[0], change([4], 2))
    assert made.get("outputs", 1, 2)[:, 0].tolist() == [2]
    (rows,) = unpack(parameters.push(0, now, change([4], 2), None), TABLES)
    assert values_of(rows, TABLE)[:, 0].tolist() == [2]


def test_changes_count_once_and_when_all_have_come() -> None:
    made, here = shelf(), Round(0, 1)
    made.push(0, here, BLOCKS[0], change([4, 7], 5))
    assert lent(made, 0, BLOCKS[1])["outputs"][1] == [0, 1, 2]
    made.push(0, here, BLOCKS[0], change([4, 7], 5))  # once more: an answer was lost
    made.push(1, here, BLOCKS[0], change([4], 1))
    made.push(1, here, BLOCKS[0], change([4], 1))
    assert lent(made, 0, BLOCKS[1], here)["outputs"][1] == [0, 7, 7]
    assert made.get("outputs", 1, 3)[:, 0].tolist() == [7, 7]
    assert made.lend(0, BLOCKS[1], here, np.array([1]), np.array([7]))[1] == here


def test_rows_are_lent_when_the_round_is_over() -> None:
    made, found = shelf(), []
    thread = threading.Thread(target=lambda: found.append(lent(made, 0, BLOCKS[1], Round(0, 1))["outputs"][1]))
    made.push(0, Round(0, 1), BLOCKS[0], change([1], 1))
    thread.start()
    thread.join(0.2)
    assert thread.is_alive()
    made.push(1, Round(0, 1), BLOCKS[0], change([1], 1))
    thread.join(30)
    assert found == [[2, 1, 2]]


def test_nobody_waits_for_a_run_that_goes_back() -> None:
    made = shelf()
    made.abort("a node died")
    with pytest.raises(ClusterError, match="a node died"):
        lent(made, 0, BLOCKS[1], Round(0, 1))


@pytest.mark.parametrize("combine", ["sum", "project"])
def test_without_rounds_the_common_direction_of_others_counts_once(combine: str) -> None:
    """Both went the same way from the same rows; what a node brings next is from where it was then."""
    made = shelf(asynchronous=True, combine=combine)
    for rank in range(2):
        lent(made, rank, BLOCKS[0])
        lent(made, rank, BLOCKS[1])
    made.push(0, Round(0, 1), BLOCKS[0], change([4], 2))
    made.push(0, Round(0, 1), BLOCKS[0], change([4], 2))
    assert made.get("outputs", 1, 2)[0, 0] == 3
    made.push(1, Round(0, 1), BLOCKS[0], change([4], 2))
    assert made.get("outputs", 1, 2)[0, 0] == (5 if combine == "sum" else 3)
    made.push(1, Round(0, 2), BLOCKS[1], change([4], 2))  # from where its first change had brought it
    assert made.get("outputs", 1, 2)[0, 0] == (7 if combine == "sum" else 5)


@pytest.mark.parametrize("form", ["float32", "bfloat16", "int8"])
def test_cells_go_there_and_back(form: Any) -> None:
    values = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)
    rows = rows_of("inputs", np.array([0, 2, 3, 8, 9]), values, TABLE, form)
    near = {"float32": 0.0, "bfloat16": 0.01, "int8": 0.01}[form] * np.abs(values).max()
    np.testing.assert_allclose(values_of(rows, TABLE)[:, :3], values[:, :3], atol=near)
    assert not values_of(rows, TABLE)[:, 3].any()
    some = part_of(rows, np.array([1, 3]), TABLE)
    assert some.numbers.tolist() == [2, 8]
    np.testing.assert_array_equal(values_of(some, TABLE), values_of(rows, TABLE)[[1, 3]])


def test_a_pool_is_drawn_as_negatives_are() -> None:
    """By count ** 0.75: of 40,000 draws, within five standard deviations."""
    counts = np.array([1000, 300, 100, 10, 1])
    pool = draw_pool(*alias_table(counts), 40_000, (1, 2))
    share = counts**0.75 / (counts**0.75).sum()
    found = np.bincount(pool, minlength=5) / 40_000
    assert (np.abs(found - share) < 5 * np.sqrt(share * (1 - share) / 40_000)).all()
    need = need_of(np.array([3, -1, 1, 3], np.int32), alias_table(counts), 7, (1,))
    assert need.words.tolist() == [1, 3]
    assert len(need.negatives) == 7
    assert Need(np.array([1, 3]), np.array([4, 1, 4])).tables()["outputs"].tolist() == [1, 3, 4]
