"""Timelines: what is told while one is kept, nothing while none is, and time that belongs to the innermost."""

from __future__ import annotations

import threading
import time

import pytest

from hogwild.timeline import Timeline, current, recording, timed, timed_items


def test_nothing_is_kept_without_a_timeline() -> None:
    assert current() is None
    items = [1, 2]
    assert timed_items("x", items) is items
    with timed("x"):
        pass


def _tell() -> None:
    with timed("there"):
        pass


def test_what_is_told_is_kept_even_if_it_fails() -> None:
    with recording(Timeline()) as kept:
        with timed("outer"), timed("inner"):
            time.sleep(0.002)
        with pytest.raises(ZeroDivisionError), timed("wrong"):
            raise ZeroDivisionError
        assert list(timed_items("item", "abc")) == ["a", "b", "c"]
        thread = threading.Thread(target=_tell, name="other")
        thread.start()
        thread.join()
    assert current() is None
    names = [each.name for each in kept.intervals]
    # the last item is that there is no more
    assert names == ["inner", "outer", "wrong", "item", "item", "item", "item", "there"]
    inner, outer = kept.intervals[:2]
    assert outer.start <= inner.start < inner.stop <= outer.stop
    assert inner.stop - inner.start >= 0.002
    assert {each.track for each in kept.intervals[:-1]} == {"main"}
    assert kept.intervals[-1].track == "other"


def test_time_belongs_to_the_innermost() -> None:
    kept = Timeline()
    kept.add("load", 0.0, 10.0, "main")
    kept.add("read", 1.0, 3.0, "main")
    kept.add("parse", 4.0, 9.0, "main")
    kept.add("read", 5.0, 6.0, "main")
    kept.add("save", 10.0, 11.0, "main")
    kept.add("parse", 0.0, 99.0, "another")
    assert [part for part in kept.own_parts("main") if part[1] < part[2]] == [
        ("load", 0.0, 1.0), ("read", 1.0, 3.0), ("load", 3.0, 4.0), ("parse", 4.0, 5.0), ("read", 5.0, 6.0),
        ("parse", 6.0, 9.0), ("load", 9.0, 10.0), ("save", 10.0, 11.0),
    ]  # fmt: skip


def test_an_inner_timeline_gives_way_to_the_outer() -> None:
    with recording(Timeline()) as outer:
        with recording(Timeline()) as inner, timed("a"):
            pass
        with timed("b"):
            pass
    assert [each.name for each in inner.intervals] == ["a"]
    assert [each.name for each in outer.intervals] == ["b"]
