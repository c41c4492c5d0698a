"""Tables about words for a terminal."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from hogwild.messages import for_output

_UNLIMITED = 1000  # columns of a file or a pipe: nothing is folded there


def make_table(columns: Sequence[str], words: int = 1) -> Table:
    """An empty table; the first column, or more of them, is of words, the others are of numbers."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in columns[:words]:
        table.add_column(Text(for_output(name)), overflow="fold")
    for name in columns[words:]:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def add_row(table: Table, word: str, numbers: Iterable[str], bold: bool = False) -> None:
    """A row; the word is no markup, whatever signs it holds."""
    style = "bold" if bold else ""
    table.add_row(Text(for_output(word), style), *(Text(number, style) for number in numbers))


def points(value: float) -> str:
    """A number in points of 100; a dash where there is none."""
    return "–" if math.isnan(value) else f"{value:.1f}"


def print_tables(tables: Iterable[RenderableType]) -> None:
    """Print to standard output."""
    console = Console(highlight=False, width=None if sys.stdout.isatty() else _UNLIMITED)
    for table in tables:
        console.print(table)
