"""The data-feed description of the async executor, in protobuf's text format:

    name: "MultiSlotDataFeed"
    batch_size: 32
    multi_slot_desc {
      slots { name: "words" type: "uint64" is_dense: false is_used: true }
      slots { name: "label" type: "uint64" is_dense: false is_used: true }
    }

Only this message is understood. Nothing in it is run: a pipe_command is left to --pipe.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from hogwild.errors import InputError
from hogwild.messages import shown

_TOKEN = re.compile(r"""(?P<space>[\s,;]+|\#[^\n]*)|(?P<word>[A-Za-z_]\w*)|(?P<number>-?\d+)|(?P<sign>[:{}<>\[\]])
                        |(?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')""", re.VERBOSE)
_ESCAPED = re.compile(r"\\(.)")
_CLOSES = {"{": "}", "<": ">"}
# Fields of each message, with their kinds. `*`: may occur several times.
_FEED = {"name": "text", "batch_size": "number", "multi_slot_desc": "slots*", "pipe_command": "text",
         "thread_num": "number"}  # fmt: skip
_SLOTS = {"slots": "slot*", "uid_slot": "text"}
_SLOT = {"name": "text", "type": "text", "is_dense": "flag", "is_used": "flag", "shape": "number*"}
_MESSAGES = {"slots": _SLOTS, "slot": _SLOT}


@dataclass(frozen=True)
class DescribedSlot:
    """A slot as the description has it; width 0 where there is no shape."""

    name: str
    type: str
    is_dense: bool
    is_used: bool
    width: int
    line: int


@dataclass(frozen=True)
class FeedDescription:
    """The slots of a description, and what of it is not followed."""

    slots: tuple[DescribedSlot, ...]
    notes: tuple[str, ...]


class _Token(NamedTuple):
    kind: str
    text: str
    at: int


def is_feed_description(text: str) -> bool:
    """Whether a text is such a description, or means to be: `name: …`, or a message in braces."""
    plain = re.sub(r"#[^\n]*", "", text)
    return re.match(r"\s*\w+\s*(:|\{|<)", plain) is not None


def parse_feed_description(text: str, where: str) -> FeedDescription:
    """Read a description; `where` begins messages, with line and column."""
    reader = _Reader(text, where)
    feed = reader.message(_FEED, "")
    slots = []
    for group in feed.get("multi_slot_desc", ()):
        for slot in group.get("slots", ()):
            line = slot["line"]
            for key in ("name", "type"):
                if not slot.get(key):
                    raise InputError(f"{where}:{line}: a slot without {key}; write {key}: \"…\".")
            width = 1
            for size in slot.get("shape", ()):
                width *= max(size, 1)  # -1 stands for the rows of a batch
            slots.append(DescribedSlot(slot["name"], slot["type"], slot.get("is_dense", False),
                                       slot.get("is_used", False), width if "shape" in slot else 0, line))
    if not slots:
        raise InputError(f"{where}: no slots; write multi_slot_desc {{ slots {{ name: \"…\" type: \"uint64\" }} }}.")
    return FeedDescription(tuple(slots), tuple(_notes(feed, where)))


def _notes(feed: dict[str, Any], where: str) -> Iterator[str]:
    kind = feed.get("name", "MultiSlotDataFeed")
    if kind not in ("MultiSlotDataFeed", "MultiSlotInMemoryDataFeed"):
        yield f"{where} describes a `{shown(kind)}`; its slots are read as MultiSlot text."
    if feed.get("pipe_command", "cat") != "cat":
        yield f"{where} has a pipe_command, which is not run; give it with --pipe."
    for key in ("batch_size", "thread_num"):
        if key in feed:
            yield f"{where} has {key}: {feed[key]}, which is not followed; flags say how to train."


class _Reader:
    """Tokens of protobuf text, one after another."""

    def __init__(self, text: str, where: str) -> None:
        self.text = text
        self.where = where
        self.tokens = list(self._split())
        self.next = 0

    def message(self, fields: dict[str, str], closed: str) -> dict[str, Any]:
        """The fields of a message up to `closed`, or to the end of the text."""
        found: dict[str, Any] = {}
        while True:
            token = self._take()
            if token.text == closed and token.kind in ("sign", "end"):
                return found
            if token.kind != "word":
                self._fail(token, f"expected {'a field' if not closed else f'a field or `{closed}`'}, not")
            if token.text not in fields:
                raise self._error(token, f"unknown field `{shown(token.text)}`; fields here are {', '.join(fields)}.")
            kind = fields[token.text]
            many = kind.endswith("*")
            value = self._value(kind.removesuffix("*"), token)
            if many:
                found.setdefault(token.text, []).extend(value if isinstance(value, list) else [value])
            elif token.text in found:
                raise self._error(token, f"`{token.text}` is given twice; keep one.")
            else:
                found[token.text] = value

    def _value(self, kind: str, field: _Token) -> Any:
        if kind in _MESSAGES:
            token = self._take()
            if token.text == ":":
                token = self._take()
            if token.text not in _CLOSES:
                self._fail(token, f"expected `{{` after {field.text}, not")
            line = self.text.count("\n", 0, field.at) + 1
            return {**self.message(_MESSAGES[kind], _CLOSES[token.text]), "line": line}
        token = self._take()
        if token.text != ":":
            self._fail(token, f"expected `:` after {field.text}, not")
        token = self._take()
        if kind == "number" and token.text == "[":
            return self._numbers(field)
        return self._scalar(kind, token, field)

    def _numbers(self, field: _Token) -> list[int]:
        found = []
        while (token := self._take()).text != "]":
            found.append(self._scalar("number", token, field))
        return found

    def _scalar(self, kind: str, token: _Token, field: _Token) -> Any:
        if kind == "text" and token.kind == "text":
            return _ESCAPED.sub(r"\1", token.text[1:-1])
        if kind == "number" and token.kind == "number" and len(token.text) <= 10:
            return int(token.text)
        if kind == "flag" and token.text in ("true", "false", "1", "0"):
            return token.text in ("true", "1")
        wanted = {"text": "a text in quotes", "number": "a whole number", "flag": "true or false"}[kind]
        return self._fail(token, f"{field.text} must be {wanted}, not")

    def _split(self) -> Iterator[_Token]:
        at = 0
        while at < len(self.text):
            match = _TOKEN.match(self.text, at)
            if match is None:
                token = _Token("other", self.text[at : at + 1], at)
                self._fail(token, "not protobuf text: unexpected")
            assert match is not None
            if match.lastgroup != "space":
                yield _Token(str(match.lastgroup), match[0], at)
            at = match.end()

    def _take(self) -> _Token:
        if self.next == len(self.tokens):
            return _Token("end", "", len(self.text))
        self.next += 1
        return self.tokens[self.next - 1]

    def _fail(self, token: _Token, what: str) -> Any:
        raise self._error(token, f"{what} {f'`{shown(token.text)}`' if token.text else 'the end'}.")

    def _error(self, token: _Token, problem: str) -> InputError:
        line = self.text.count("\n", 0, token.at) + 1
        column = token.at - (self.text.rfind("\n", 0, token.at) + 1) + 1
        return InputError(f"{self.where}:{line}:{column}: {problem}")
