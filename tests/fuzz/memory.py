"""Arrays in memory as targets: the bytes of a case choose what is wrong with them."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from fuzz.harness import Target
from fuzz.kept import KEPT
from hogwild.errors import HogwildError
from hogwild.estimators.linear import HogwildClassifier
from hogwild.feeds.memory import feed_of
from hogwild.feeds.ratings.open import ratings_of

FORMATS = ("csr", "csc", "coo", "bsr", "dia", "lil", "dok")
ODD = (-1, 0, 1, 6, 7, 8, 2**31 - 1, -(2**31), 2**40, -(2**63), 10**6)
ARRAYS = {"csr": ("indptr", "indices", "data"), "csc": ("indptr", "indices", "data"), "dia": ("offsets", "data"),
          "coo": ("row", "col", "data"), "bsr": ("indptr", "indices"), "lil": ("rows",)}  # fmt: skip
CELLS = (np.nan, np.inf, -np.inf, 1e39, 1e-320, 10**400, None, "x", "1", b"1", 1j, True, [1], np.datetime64(0, "s"))
DTYPES = ("<f8", ">f8", "<f4", ">f4", "f2", "g", "i1", "u8", "?", "O", "U3", "S3", "c16", "M8[s]", "m8[s]", "V4")


def sparse(random: Random) -> Any:
    """A sparse matrix of 6 by 7, one of whose arrays may lead anywhere."""
    rng = np.random.default_rng(random.randrange(2**32))
    values = rng.normal(size=(6, 7)) * (rng.random((6, 7)) < 0.4)
    kind = random.choice(FORMATS)
    make = getattr(sp, f"{kind}_{random.choice(('array', 'matrix'))}")
    matrix = make(values.astype(random.choice(("f4", "f8", "i8"))))
    names = ARRAYS.get(kind, ())
    if not names or random.random() < 0.1:
        return matrix
    name = random.choice(names)
    array = np.array(getattr(matrix, name))
    how = random.randrange(6)
    if name == "rows":
        matrix.rows[random.randrange(6)] = [random.choice(ODD), random.choice(ODD)][: random.choice((1, 2))]
        return matrix
    if how < 3 and array.size:
        odd = random.choice(ODD)
        array = array.astype(np.int64) if name != "data" else array
        odd = odd if name != "data" else float("nan") if array.dtype.kind == "f" else 0
        array[(random.randrange(array.shape[0]), *(0,) * (array.ndim - 1))] = odd
        array = array.astype(np.int32) if random.random() < 0.7 and name != "data" else array
    elif how == 3:
        array = array[: random.randrange(len(array) + 1)]
    elif how == 4:
        array = np.concatenate((array, array))
    else:
        array = array.astype(random.choice(("f8", "u1", "i8", "O")))
    setattr(matrix, name, array)
    if random.random() < 0.3 and kind in ("csr", "csc"):
        matrix.has_sorted_indices = matrix.has_canonical_format = True
    return matrix


def dense(random: Random) -> Any:
    """An array of 6 by 7 of an odd type, order or content."""
    array = np.arange(42.0).reshape(6, 7) - 20
    kind = random.choice(DTYPES)
    array = np.zeros((6, 7), kind) if kind in ("V4", "M8[s]", "m8[s]") else array.astype(kind)
    if kind == "O" or random.random() < 0.3:
        array = array.astype(object)
        array[random.randrange(6), random.randrange(7)] = random.choice(CELLS)
    how = random.randrange(7)
    if how == 0:
        return array[::-1, ::-1]
    if how == 1:
        return np.asfortranarray(array)
    if how == 2 and array.dtype.kind != "O":
        room = np.zeros(array.nbytes + 1, np.uint8)[1:].view(array.dtype)
        room[:] = array.ravel()
        return room.reshape(6, 7)
    if how == 3:
        return np.broadcast_to(array[:1], (6, 7))
    if how == 4:
        return array.tolist()
    if how == 5:
        return pd.DataFrame(array) if array.dtype.kind in "fiubO" and array.dtype.byteorder != ">" else array
    return array


def labels(random: Random) -> Any:
    """One label a row, most of the time."""
    good = [0, 1, 0, 1, 1, 0]
    how = random.randrange(8)
    if how < 4:
        return good
    if how == 4:
        return [*good[:5], random.choice(CELLS)]
    if how == 5:
        return np.array(good).astype(random.choice(DTYPES[:11]))
    if how == 6:
        return np.array([*good[:5], random.choice(CELLS)], object)
    return good[: random.randrange(7)]


def feed(path: Path) -> None:
    """Make a feed of arrays."""
    random = Random(path.read_bytes())
    if path.read_bytes() == b"sound":
        feed_of(np.eye(3), [1, 0, 1])
        return
    X = random.choice((sparse, sparse, dense))(random)
    feed_of(X, labels(random), None if random.random() < 0.8 else labels(random), rank=random.random() < 0.5).check()


def estimator(path: Path) -> None:
    """Fit and predict; a ValueError is what users of scikit-learn expect, and TypeError what it raises itself."""
    random = Random(path.read_bytes())
    X = random.choice((sparse, sparse, dense))(random)
    good = [0, 1, 0, 1, 1, 0]
    model = HogwildClassifier(epochs=1, lr=0.1, random_state=0, validation_fraction=random.choice((0, 0, 0.4)))
    X = np.eye(6, 7) if path.read_bytes() == b"sound" else X
    try:
        with np.errstate(over="ignore"):
            model.fit(X, good) if random.random() < 0.5 else model.fit(np.eye(6, 7), good).predict(X)
    except (ValueError, TypeError) as error:
        raise HogwildError(str(error).split("\n")[0]) from None  # scikit-learn shows the whole array


def ratings(path: Path) -> None:
    """Make ratings of lists."""
    random = Random(path.read_bytes())
    if path.read_bytes() == b"sound":
        ratings_of(["a"], ["b"])
        return
    names = ["a", "b", "", None, 7, "²", "\ud800", "x" * 70000, "a b"]
    sides = [[random.choice(names) for _ in range(random.randrange(4))] for _ in range(2)]
    values = random.choice((None, [1.0] * len(sides[0]), [random.choice(CELLS)] * len(sides[0])))
    ratings_of(*sides, values)  # type: ignore[arg-type]


MEMORY = [
    Target("arrays", lambda: {"seed": b"sound"}, feed, KEPT.get("arrays", ())),
    Target("estimator", lambda: {"seed": b"sound"}, estimator, KEPT.get("estimator", ())),
    Target("ratings-lists", lambda: {"seed": b"sound"}, ratings, KEPT.get("ratings-lists", ())),
]
