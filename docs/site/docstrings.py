"""Docstrings of the house as reStructuredText: sections are underlined as NumPy has them, `name : what it is` explains
an argument or a field, single backticks hold code, and the rest is prose."""

from __future__ import annotations

import re

SECTIONS = ("Parameters", "Attributes", "Returns", "Yields", "Raises", "Examples", "Notes")
_CODE = re.compile(r"(``?)(.+?)\1", re.DOTALL)
_ENTRY = re.compile(r"(?P<names>\S.*?) : (?P<text>.*)")


def as_rst(lines: list[str]) -> list[str]:
    """The lines of a docstring, its margin taken off already, as lines of reStructuredText."""
    out: list[str] = []
    at, section = 0, ""
    while at < len(lines):
        line = lines[at]
        if line in SECTIONS and at + 1 < len(lines) and set(lines[at + 1]) == {"-"}:
            section = line
            out += ["", f".. rubric:: {section}", ""]
            at += 2
        elif line.startswith(">>> "):
            end = next((n for n in range(at, len(lines)) if not lines[n].strip()), len(lines))
            out += ["", *lines[at:end], ""]
            at = end
        elif section in ("Parameters", "Attributes") and _ENTRY.fullmatch(line):
            end = next((n for n in range(at + 1, len(lines)) if not lines[n].startswith("    ")), len(lines))
            entry = _ENTRY.fullmatch(line)
            assert entry is not None
            text = [entry["text"], *(part.strip() for part in lines[at + 1 : end])]
            out += [f"``{entry['names']}``", *("    " + part for part in _prose(text)), ""]
            at = end
        else:
            end = at + 1
            while end < len(lines) and line.strip() and lines[end].strip() and lines[end] not in SECTIONS:
                end += 1
            out += _prose(lines[at:end])
            at = end
    return out


def _prose(lines: list[str]) -> list[str]:
    """A paragraph: what stands in backticks is code, and no other sign means anything."""
    text = "\n".join(lines)
    out, last = "", 0
    for code in _CODE.finditer(text):
        inner = " ".join(code[2].split())
        plain = re.fullmatch(r"[A-Za-z_][\w.]*", inner)  # a name: it is a link where the reference has it
        before, after = text[code.start() - 1 : code.start()], text[code.end() : code.end() + 1]
        out += _escaped(text[last : code.start()]) + ("\\ " if before.isalnum() else "")
        out += (f":py:obj:`{inner}`" if plain else f"``{inner}``") + ("\\ " if after.isalnum() else "")
        last = code.end()
    return (out + _escaped(text[last:])).split("\n")


def _escaped(text: str) -> str:
    return re.sub(r"([*|\\]|_(?!\w)|`)", r"\\\1", text)
