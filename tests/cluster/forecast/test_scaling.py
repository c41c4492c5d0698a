"""How far it scales, computed: at its limits, and against packets that are really made."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cluster.wire.exchange import written
from hogwild.arrays import Table
from hogwild.cluster.forecast.scaling import Case, Costs, Machine, Ranks, bytes_of_row, neutral_interval, predict, table
from hogwild.cluster.wire.packing import pack
from hogwild.config.cluster import Deltas
from hogwild.executor.delta import RowDelta

FREE = Costs(*[0.0] * 6)
CASE = Case(8, 100_000)


def test_with_a_link_that_costs_nothing_nodes_only_train() -> None:
    machine = Machine(link=float("inf"), latency=0, costs=FREE)
    found = predict(CASE, machine)
    assert found.words_per_second == pytest.approx(8 * machine.speed * machine.threads)
    assert found.exchanging == pytest.approx(0, abs=1e-9)


def test_a_slow_link_is_what_counts() -> None:
    """So many words a second as it carries."""
    machine = Machine(link=1e6, latency=0, costs=FREE)
    case = replace(CASE, snapshots=1e12, words=1e9, max_delay=0)
    found = predict(case, machine)
    weights = 2 * case.vocabulary * case.cells * 4 * case.nodes / case.words
    words = 8 * machine.link / 8 / (found.busiest + weights)
    assert found.words_per_second == pytest.approx(words, rel=0.01)
    assert found.exchanging > 0.99


def test_one_node_exchanges_nothing() -> None:
    assert predict(replace(CASE, nodes=1), Machine())[:4] == (8 * 2.6e6, 0, 0, 0)


@pytest.mark.parametrize("strategy", ["average", "parameter-actor"])
def test_more_of_anything_costs_more(strategy: str) -> None:
    case = replace(CASE, strategy=strategy, every=10_000, words=1e10)
    sent = [predict(replace(case, nodes=nodes), Machine()).busiest for nodes in (2, 4, 8, 16, 32, 100)]
    assert sent == sorted(sent)
    for name, values in {
        "vocabulary": (10_000, 100_000, 1_000_000), "dim": (100, 200, 300), "every": (80_000, 20_000, 5_000),
    }.items():  # fmt: skip
        found = [predict(replace(case, **{name: value}), Machine()) for value in values]
        assert [each.busiest for each in found] == sorted(each.busiest for each in found), name
        speeds = [each.words_per_second for each in found]
        assert speeds == sorted(speeds, reverse=True), name
    speeds = [predict(case, Machine(link=link)).words_per_second for link in (1e8, 1e9, 1e10, 1e11)]
    assert speeds == sorted(speeds)
    speeds = [predict(replace(case, max_delay=delay), Machine(link=1e9)).words_per_second for delay in (0, 1, 2)]
    assert speeds == sorted(speeds)
    forms: list[Deltas] = ["int4", "int8", "bfloat16", "float32"]
    sent = [predict(replace(case, deltas=form), Machine()).sent for form in forms]
    assert sent == sorted(sent)


def test_shards_share_the_load_of_a_parameter_actor() -> None:
    case = replace(CASE, strategy="parameter-actor", every=10_000)
    one, eight = (predict(replace(case, shards=shards), Machine(link=1e9)) for shards in (1, 8))
    assert one.busiest > 3 * eight.busiest
    assert one.words_per_second < eight.words_per_second
    assert one.sent == pytest.approx(eight.sent, rel=0.05)


def test_tiers_save_bytes() -> None:
    with_tiers, without = (predict(replace(CASE, tier_rows=rows, every=25_000), Machine()).sent for rows in (1024, 0))
    assert 1.5 < without / with_tiers < 20


@pytest.mark.parametrize("form", ["float32", "bfloat16", "int8", "int4"])
def test_a_row_has_the_bytes_that_are_packed(form: Deltas) -> None:
    change = RowDelta("inputs", np.arange(1000), np.ones((1000, 112), np.float32))
    tables = {"inputs": Table(1000, 112)}
    packet = pack(written([change], tables, form), tables, form)
    assert len(packet) == pytest.approx(1000 * bytes_of_row(112, form), abs=300)


def test_ranks_have_all_rows_in_their_tiers() -> None:
    ranks = Ranks.of(Case(2, 100_000, sample=0))
    assert ranks.sizes.sum() == 100_000
    ends = np.cumsum(ranks.sizes)
    for k in range(7):
        assert ends[ranks.period <= 2**k][-1] == min(100_000, 1024 << k)
    assert (ranks.touches[1] >= ranks.touches[0]).all()
    assert float((ranks.sizes * ranks.touches[0]).sum()) == pytest.approx(1 / 1.8)


@pytest.mark.parametrize("nodes", [2, 4])
def test_bytes_are_those_of_a_simulated_exchange(nodes: int) -> None:
    """Words and negatives are drawn, touched rows are packed as nodes do, up to a snapshot after eleven exchanges."""
    random = np.random.default_rng(3)
    vocabulary, every, exchanges, dim = 20_000, 6_400, 11, 16
    case = Case(nodes, vocabulary, dim, every * exchanges * nodes, every, clumps=1)
    rank = np.arange(1, vocabulary + 1)
    share = 1 / ((rank + 2.7) * (1 + rank / 16_000))
    share /= share.sum()
    noise = share**0.75 / (share**0.75).sum()
    stay = np.minimum(1, np.sqrt(case.sample / share) + case.sample / share)
    tables = {name: Table(vocabulary, dim, "ranked") for name in ("inputs", "outputs")}
    changed = np.zeros((nodes, 2, vocabulary), bool)  # and not yet exchanged
    sent = 0
    for number in range(1, exchanges + 2):
        whole = number == exchanges + 1
        for node in changed:
            if not whole:
                words = random.choice(vocabulary, every, p=share)
                words = words[random.random(every) < stay[words]]
                node[0, words] = node[1, words] = True
                node[1, random.choice(vocabulary, every * 48 // 64, p=noise)] = True
        leading = vocabulary if whole else min(vocabulary, 1024 * (number & -number))
        taken = changed[:, :, :leading]
        for table_rows, times in ((taken[0], 1), (taken.any(axis=0), 1)):  # of node 0, and of all
            parts = []
            for owner in range(nodes):
                owned = {name: np.flatnonzero(flags) for name, flags in zip(tables, table_rows, strict=True)}
                owned = {name: ids[ids % nodes == owner] for name, ids in owned.items()}
                changes = [RowDelta(name, ids, np.ones((len(ids), dim), np.float32)) for name, ids in owned.items()]
                parts.append(pack(written(changes, tables, "int8"), tables, "int8"))
            sent += times * sum(len(part) for part in parts) * (nodes - 1) // nodes
        changed[:, :, :leading] = False
    assert predict(case, Machine()).sent * every * exchanges == pytest.approx(sent, rel=0.05)


def test_intervals_that_cost_no_quality() -> None:
    assert [round(neutral_interval(nodes)) for nodes in (1, 2, 4, 8)] == [100_000, 100_000, 25_000, 10_000]
    assert 10_000 < neutral_interval(6) < 25_000
    assert neutral_interval(100) == pytest.approx(800)
    assert neutral_interval(4, delay=3) == pytest.approx(6_250)
    assert neutral_interval(4, words=163e6, growth=1) == pytest.approx(250_000)


def test_a_table() -> None:
    lines = table().splitlines()
    rows = [line for line in lines if line.startswith("| average")]
    assert len(rows) == 15
    assert len({line.count("|") for line in lines if line.startswith("|")}) == 1
