"""What a process may use: limits of the system and of containers, old and new control groups."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hogwild import machine
from hogwild.errors import ConfigError

LARGE = 1 << 62


@pytest.fixture
def control(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place for made-up control groups, on a machine of 8 cores."""
    monkeypatch.setattr(machine, "_CONTROL", tmp_path)
    monkeypatch.setattr(machine, "_OWN", tmp_path / "own")
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(8)), raising=False)
    return tmp_path


def put(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_a_machine_without_control_groups(control: Path) -> None:
    assert machine.cores() == 8
    assert machine.memory() == os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def test_the_lowest_limit_of_all_groups_counts(control: Path) -> None:
    put(control / "own", "0::/outer/inner\n")
    put(control / "memory.max", "max\n")
    put(control / "outer" / "memory.max", "1000000\n")
    put(control / "outer" / "inner" / "memory.max", f"{LARGE}\n")
    put(control / "outer" / "cpu.max", "max 100000\n")
    put(control / "outer" / "inner" / "cpu.max", "250000 100000\n")
    assert machine.memory() == 1_000_000
    assert machine.cores() == 3


def test_a_limit_is_remembered_for_a_moment_only(control: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(control / "own", "0::/\n")
    put(control / "memory.max", "1000000\n")
    assert machine.memory() == 1_000_000
    put(control / "memory.max", "2000\n")
    monkeypatch.setattr(machine, "_SECONDS", 0.0)
    assert machine.memory() == 2000
    with pytest.raises(ConfigError, match="needs"):
        machine.check_memory(2001, "it needs", "take less.")  # however little it is


def test_old_control_groups(control: Path) -> None:
    put(control / "own", "9:memory:/box\n5:cpu,cpuacct:/box\n1:name=systemd:/\n")
    put(control / "memory" / "box" / "memory.limit_in_bytes", "2000000\n")
    put(control / "memory" / "memory.limit_in_bytes", f"{LARGE}\n")
    put(control / "cpu" / "cpu.cfs_quota_us", "-1\n")
    put(control / "cpu" / "cpu.cfs_period_us", "100000\n")
    put(control / "cpu" / "box" / "cpu.cfs_quota_us", "50000\n")
    put(control / "cpu" / "box" / "cpu.cfs_period_us", "100000\n")
    assert machine.memory() == 2_000_000
    assert machine.cores() == 1


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("processor\t: 0\nmodel name\t: Some CPU @ 3.00GHz\nflags\t: a b\n\nprocessor\t: 1\n", "Some CPU @ 3.00GHz"),
        ("processor\t: 0\nBogoMIPS\t: 50.00\nHardware\t: Some Board\n", "Some Board"),
    ],
)
def test_the_name_of_the_processor(text: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_PROCESSORS", tmp_path / "cpuinfo")
    assert machine.processor()  # there is no such file: whatever Python knows
    put(tmp_path / "cpuinfo", text)
    assert machine.processor() == name


def test_more_memory_than_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "memory", lambda: 2_000_000_000)
    machine.check_memory(2_000_000_000, "two tables need", "use one.")
    with pytest.raises(ConfigError, match=r"^two tables need 2\.5 GB, and this machine has 2\.0 GB; use one\.$"):
        machine.check_memory(2_500_000_000, "two tables need", "use one.")
