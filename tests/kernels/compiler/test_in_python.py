"""Kernels run by the interpreter give what compiled ones give, for text of all kinds."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from hogwild.kernels.compiler.jit import compiling_ahead, in_python, ready
from hogwild.kernels.parse import criteo, libffm, lines, slots, svmlight

CLICK = b"1\t1\t2\t\t4\t5\t6\t7\t8\t9\t10\t11\t12\t13" + b"\tabcdef01" * 26 + b"\n0\t-1" + b"\t" * 38 + b"\n"
TEXTS = {
    "svmlight": b"1 3:0.5 7:1e-3 99:12345.678901\n-1 qid:4 1:1\n0 6:-0.0 # c\n+1 2147483647:99999999999999999999\n",
    "libffm": b"1 0:1:0.5 1:77:1 2:9:3e4\n0 3:18446744073709551615:1 0:1:2\n",
    "criteo": CLICK,
}
PIECES = (b"9" * 30, b":", b" ", b"-", b"e+", b"1e400", b"nan", b"\n", b"\t", b"\xff", b"#")


def changed(text: bytes, random: Random) -> bytes:
    """Some bytes replaced, put in and taken out; the last one is the end of a line."""
    data = bytearray(text)
    for _ in range(random.randrange(10)):
        at = random.randrange(len(data))
        data[at : at + random.randrange(3)] = random.choice(PIECES)
    return bytes(data).rstrip(b"\n") + b"\n"


def parse(form: str, text: bytes, plain: bool) -> Any:
    """A block as the parser leaves it."""
    room: Any = (
        svmlight.room_for(len(text))
        if form == "svmlight"
        else slots.room_for(len(text), 39, 13 if form == "criteo" else 0, valued=form == "libffm")
    )
    for array in room:
        array[...] = 0
    data = np.frombuffer(text + bytes(16), np.uint8)[: len(text)]
    kinds: dict[str, Any] = {"libffm": libffm.Libffm(np.uint64(2**64 - 1)), "criteo": criteo.Criteo()}
    kernel, first = (lines.parse_block, (kinds[form],)) if form in kinds else (svmlight.parse_block, ())
    (in_python(kernel) if plain else kernel)(*first, data, room, False, False)
    return room


@pytest.mark.parametrize("form", TEXTS)
def test_lines_are_read_alike(form: str) -> None:
    random = Random(3)
    for _ in range(25):
        text = changed(TEXTS[form], random)
        for mine, twin in zip(parse(form, text, plain=True), parse(form, text, plain=False), strict=True):
            np.testing.assert_array_equal(mine, twin, err_msg=repr(text))


def test_much_work_and_work_ahead_are_compiled() -> None:
    kernel: Any = svmlight.parse_block
    assert ready(kernel, 1 << 20) is kernel
    with compiling_ahead():
        assert ready(kernel, 10) is kernel
