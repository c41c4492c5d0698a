"""What `hogwild doctor` finds out."""

from __future__ import annotations

import pytest

from hogwild.machine import cores
from hogwild.observe.doctor import caches, facts, measure, speeds


def test_facts_of_this_machine():
    found = facts()
    assert found["cores"] == cores()
    assert {each["name"] for each in found["libraries"] if each["version"]} >= {"numba", "numpy", "scipy", "pyarrow"}
    assert any(each["version"] for each in found["blas"])
    assert found["kept"]["free"] > 0


def test_caches_as_the_system_lists_them(tmp_path):
    nearest = (("1", "Data", "48K", "0"), ("1", "Instruction", "32K", "0"))
    listed = (*nearest, ("3", "Unified", "2M", "0-3,8"), ("x", "", "", ""))
    for k, values in enumerate(listed):
        (tmp_path / f"index{k}").mkdir()
        for name, value in zip(("level", "type", "size", "shared_cpu_list"), values, strict=True):
            (tmp_path / f"index{k}" / name).write_text(f"{value}\n")
    first, last = caches(tmp_path)
    assert first == {"level": 1, "kind": "data", "bytes": 48 * 1024, "cores": 1}
    assert last == {"level": 3, "kind": "unified", "bytes": 2 * 1024**2, "cores": 5}
    assert caches(tmp_path / "none") == []


def test_measured_speeds_are_those_of_a_computer():
    found = measure(1)
    assert 1e7 < found["memory"] < 1e13
    assert 1e7 < found["products"] < 1e14


@pytest.mark.full
def test_every_program_is_tried():
    tried = list(speeds(2))
    assert {each.program for each in tried} == {"linear", "fm", "mlp", "recommender", "crf", "word2vec"}
    for each in tried:
        assert not each.problem
        assert each.units_per_second > 100
