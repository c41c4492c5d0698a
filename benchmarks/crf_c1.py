"""The drop-in CRF with c1 against sklearn-crfsuite: seconds of `fit`, weights that are not zero, F.

CoNLL-2000 with the features of the tutorial of sklearn-crfsuite. The systems take turns in one process. `cpu` counts
the seconds of all threads, so that it can be compared on a machine that has other work too; the wall clock cannot.
"""

from __future__ import annotations

import argparse
import json
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import sklearn_crfsuite

import hogwild
from hogwild.estimators import CRF

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "conll2000"
Sentences = tuple[list[list[dict[str, Any]]], list[list[str]]]


def features(words: list[str], tags: list[str], i: int) -> dict[str, Any]:
    """In the manner of the tutorial."""
    found: dict[str, Any] = {"bias": 1.0}
    for offset, mark in ((0, ""), (-1, "-1:"), (1, "+1:")):
        if not 0 <= i + offset < len(words):
            found["BOS" if offset < 0 else "EOS"] = True
            continue
        word, tag = words[i + offset], tags[i + offset]
        found |= {f"{mark}word.lower": word.lower(), f"{mark}istitle": word.istitle(), f"{mark}isupper": word.isupper()}
        found |= {f"{mark}postag": tag, f"{mark}postag[:2]": tag[:2]}
    word = words[i]
    return found | {"word[-3:]": word[-3:], "word[-2:]": word[-2:], "isdigit": word.isdigit()}


def load(name: str, sentences: int) -> Sentences:
    """Sentences and labels."""
    text = hogwild.read_tagged(DATA / f"{name}.txt.xz")
    assert text.tags is not None
    X, y = [], []
    for first, last in list(pairwise(text.offsets.tolist()))[:sentences]:
        words, tags = (column.strings(first, last) for column in text.columns)
        X.append([features(words, tags, i) for i in range(last - first)])
        y.append(text.tags.strings(first, last))
    return X, y


def measured(make: Any, train: Sentences, test: Sentences) -> dict[str, float]:
    """One `fit`, and what comes of it."""
    wall, cpu = time.perf_counter(), time.process_time()
    model = make().fit(*train)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    weights = sum(1 for weight in model.state_features_.values() if weight)
    guess = [list(labels) for labels in model.predict(test[0])]
    began = time.perf_counter()
    for sentence in test[0][:300]:
        model.predict_single(sentence)
    single = (time.perf_counter() - began) / 300
    f1 = hogwild.score_tags(test[1], guess).f1
    return {"seconds": wall, "cpu": cpu, "weights": weights, "f1": f1, "predict_single_ms": 1000 * single}


def main() -> None:
    """Take turns, and print JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sentences", type=int, default=3000)
    parser.add_argument("--rounds", type=int, default=2)
    given = parser.parse_args()
    train, test = load("train", given.sentences), load("test", 1000)
    small = train[0][:50], train[1][:50]
    CRF(c1=0.1, epochs=1, max_iterations=2).fit(*small).predict_single(small[0][0])  # compiles
    found: dict[str, Any] = {}
    for c1 in (0.1, 1.0):
        options = {"c1": c1, "c2": 0.1, "max_iterations": 100, "all_possible_transitions": True}
        for _ in range(given.rounds):
            for name, kind in (("hogwild", CRF), ("crfsuite", sklearn_crfsuite.CRF)):
                now = measured(lambda kind=kind, options=options: kind(**options), train, test)
                best = found.setdefault(f"{name} c1={c1}", now)
                found[f"{name} c1={c1}"] = min(best, now, key=lambda each: each["cpu"])
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
