"""Inputs that were findings once, by target. They are tried first in every run."""

from __future__ import annotations

from fuzz.harness import Kept

KEPT: dict[str, list[Kept]] = {
    "svmlight": [Kept("a.svm", b"1 1:1e-453#t\n"), Kept("a.svm", b"1 1:nan#t\n"), Kept("a.svm", b"nan#t 1:1\n")],
    "multislot": [Kept("a.txt", "1 1 ² 5\n".encode("latin-1")), Kept("a.txt", "1 1 ² 5\n".encode())],
}
