"""Files changed a little, or a lot, always in the same way for the same random state."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

# What has broken readers before, or might.
TOKENS = (
    b"", b"\0", b"\n", b"\r", b"\r\n", b"\n\n\n", b"\t", b" ", b",", b":", b";", b"|", b"#", b"=", b'"', b'""',
    b'"""', b"'", b"\\", b"-", b"+", b".", b"_", b"{", b"}", b"[", b"]", b"<", b">", b"\xff", b"\xc3",
    b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\x1f\x8b", b"BZh", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd", "²".encode(),
    "٣".encode(), "\u2028".encode(), "é".encode(), b"\x85", b"\xa0", b"\x1c", b"\x0b", b"0", b"00", b"-0", b"1",
    b"-1", b"0x10", b"1_000", b"1e-453", b"1e453", b"1e-45", b"-1e39", b"3.4028236e38", b"1e999999999999",
    b"nan", b"inf", b"-inf", b"Infinity", b"null", b"None", b"true", b"2147483647", b"2147483648",
    b"-2147483648", b"4294967296", b"9223372036854775807", b"9223372036854775808", b"18446744073709551615",
    b"18446744073709551616", b"1" * 400, b"9" * 5000, b"0." + b"0" * 400 + b"1", b"1:1e-453#t", b"a:1", b"1:",
    b":1", b"1:1:1", b"qid:1", b"x" * 300, b"[" * 2000, b"{" * 2000, b'{"a":' * 500, b"a\tb\tc", b"1,2,3",
    b"\x00\x00\x00\x00", b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f", b"\x00\x00\x00\x80", b"\xff" * 8,
    b"\x80" + b"\0" * 7, b"\xff" * 7 + b"\x7f", b"\x80" * 12,
)  # fmt: skip


def mutate(data: bytes, random: Random, others: Sequence[bytes], tokens: Sequence[bytes] = TOKENS) -> bytes:
    """The data after one to four changes; `others` are files to take blocks from."""
    text = bytearray(data)
    for _ in range(random.choice((1, 1, 1, 2, 3, 4))):
        random.choice(_CHANGES)(text, random, others, tokens)
    return bytes(text[: 1 << 20])


def _flip(text: bytearray, random: Random, others: Sequence[bytes], tokens: Sequence[bytes]) -> None:
    for _ in range(random.choice((1, 1, 2, 8))):
        if text:
            text[random.randrange(len(text))] ^= 1 << random.randrange(8)


def _replace(text: bytearray, random: Random, others: Sequence[bytes], tokens: Sequence[bytes]) -> None:
    if text:
        text[random.randrange(len(text))] = random.randrange(256)


def _cut(text: bytearray, random: Random, others: Sequence[bytes], tokens: Sequence[bytes]) -> None:
    del text[random.randrange(len(text) + 1) :]


def _drop(text: bytearray, random: Random, others: Sequence[bytes], tokens: Sequence[bytes]) -> None:
    start = random.randrange(len(text) + 1)
    del text[start : start + random.choice((1, 2, 4, 8, 64, 512))]


def _insert(text: bytearray, random: Random, others: Sequence[bytes], tokens: Sequence[bytes]) -> None:
    start = random.randrange(len(text) + 1)
    text[start:start] = random.choice(tokens)


def _overwrite(text: bytearray, random: Random, others: Sequence[bytes], tokens: Sequence[bytes]) -> None:
    token = random.choice(tokens)
    start = random.randrange(len(text) + 1)
    text[start : start + len(token)] = token


def _swap_word(text: bytearray, random: Random, others: Sequence[bytes], tokens: Sequence[bytes]) -> None:
    """Put a token in the place of a whole word, as a field of text has it."""
    words = bytes(text).split()
    if words:
        word = random.choice(words)
        places = [k for k in range(len(text)) if text.startswith(word, k)] if len(text) < 1 << 14 else [text.find(word)]
        start = random.choice(places)
        text[start : start + len(word)] = random.choice(tokens)


def _repeat(text: bytearray, random: Random, others: Sequence[bytes], tokens: Sequence[bytes]) -> None:
    start = random.randrange(len(text) + 1)
    block = text[start : start + random.choice((1, 4, 16, 64, 512))]
    text[start:start] = block * random.choice((1, 1, 2, 16, 300))


def _splice(text: bytearray, random: Random, others: Sequence[bytes], tokens: Sequence[bytes]) -> None:
    """A block of this file or of another over some place."""
    other = random.choice((bytes(text), *others))
    start, at = random.randrange(len(other) + 1), random.randrange(len(text) + 1)
    block = other[start : start + random.choice((1, 4, 8, 32, 256))]
    text[at : at + random.choice((0, len(block)))] = block


def _number(text: bytearray, random: Random, others: Sequence[bytes], tokens: Sequence[bytes]) -> None:
    """Four or eight bytes as a number that is odd for a length or a place; binary formats align them."""
    size = random.choice((4, 8))
    start = random.randrange(len(text) + 1) // size * size
    value = random.choice((0, 1, -1, 7, 2**31 - 1, -(2**31), random.randrange(1 << 16), -random.randrange(1 << 16)))
    if size == 8 and random.random() < 0.5:
        value = random.choice((2**62, -(2**62), 2**40, 2**63 - 1, -(2**63)))
    text[start : start + size] = value.to_bytes(size, "little", signed=True)


_CHANGES = (_flip, _flip, _flip, _replace, _cut, _drop, _insert, _overwrite, _swap_word, _repeat, _splice, _number)
