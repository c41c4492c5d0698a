"""Inputs that were findings once, by target. They are tried first in every run."""

from __future__ import annotations

from fuzz.harness import Kept

KEPT: dict[str, list[Kept]] = {
    "svmlight": [Kept("a.svm", b"1 1:1e-453#t\n"), Kept("a.svm", b"1 1:nan#t\n"), Kept("a.svm", b"nan#t 1:1\n")],
    # Each of these ended the process that opened it.
    "arrow": [
        Kept("pets.arrow", edits=((1661, b"\x01"),)),
        Kept("pets.arrow", edits=((1132, b"\x01"),)),
        Kept("pets.arrow", edits=((1043, b">"),)),
        Kept("pets.arrow", edits=((1669, b"\x08"),)),
        Kept("pets-zstd.arrow", edits=((1872, b"\xff\xff\xff\x7f"),)),
        Kept("stream.arrow", edits=((1130, b"null"),)),
    ],
    "example-slots": [Kept("a.toml", b"a = " + b"9" * 5000), Kept("a.toml", b"a = " + b"[" * 5000)],
    "conllu": [Kept("a.conllu", b"9" * 3000 + b"x" + b"\t_" * 9 + b"\n")],
    "csv": [Kept("a.csv", b"label," + b"x" * 3000 + b"\n1,2\n0,nan\n"),
            Kept("a.csv", b"label," + b"x" * 3000 + b"," + b"x" * 3000 + b"\n1,2,3\n")],
    "csv-slots": [Kept("a.csv", b"label,a,b\nyes,1e-45,x\nno,1e-45,y\n")],
    "multislot": [Kept("a.txt", "1 1 ² 5\n".encode("latin-1")), Kept("a.txt", "1 1 ² 5\n".encode()),
                  Kept("a.txt", b"1 1 0 2 1e-45 1e-45 0\n"), Kept("a.txt", b"1 1 0 9999999 0\n")],
}
