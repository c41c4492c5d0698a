"""`inspect`: what any model has learnt; `explain`: what makes up one of its predictions. Both by its program."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from hogwild.errors import ConfigError
from hogwild.feeds.sparse.hashing import Hashing
from hogwild.feeds.sparse.spellings import Spellings
from hogwild.programs.inspecting import strongest
from hogwild.programs.inspecting.contributions import Explanation, explain_pair, explain_row
from hogwild.programs.inspecting.effects import of_layers
from hogwild.programs.inspecting.strongest import Asked, Found
from hogwild.programs.inspecting.tagged import explain_token
from hogwild.programs.sparse.supervised import Supervised
from hogwild.programs.taggers.tagger import Tagger

_OF: dict[str, Callable[[Any, Mapping[str, Any], Asked], Found]] = {
    "bilstm": strongest.of_bilstm,
    "crf": strongest.of_crf,
    "doc2vec": strongest.of_documents,
    "fm": strongest.of_fm,
    "linear": strongest.of_linear,
    "matrix-factorization": strongest.of_factorization,
    "sparse_mlp": of_layers,
    "text_classifier": strongest.of_text,
    "word2vec": strongest.of_words,
}


def inspect(program: Any, top: int = 20, tag: str = "", feature: str = "") -> Found:
    """What a trained program has learnt: its strongest weights by name, and what else can be said of them.

    Parameters
    ----------
    program : any program of this package that is trained, or was loaded; of others, the sizes of their arrays.
    top : how many of each kind and sign.
    tag : only weights of this tag or class.
    feature : only features with this text in their names.

    Examples
    --------
    >>> import hogwild
    >>> rows = [{"town": "Rome", "age": 30}, {"town": "Oslo", "age": 60}] * 10
    >>> feed = hogwild.feed_of(rows, ["no", "yes"] * 10)
    >>> program = hogwild.train(hogwild.Linear(), feed, lr=0.1, epochs=5, threads=1, quiet=True)
    >>> [names for names, weight in hogwild.inspect(program)[0].negative]
    [('town=Rome',)]
    """
    asked = Asked(top, tag, feature)
    if top < 1:
        raise ConfigError(f"top is {top}; it must be at least 1. Try 20.")
    if program.weights is None:
        raise ConfigError("this program has no weights yet; train it, or load one.")
    if program.name in _OF:
        return _OF[program.name](program, program.schema or {}, asked)
    return strongest.of_arrays(program.arrays(), asked)


def explain(program: Any, data: Any, row: int = 0, tag: str = "", token: int = 0) -> Explanation:
    """What makes up the prediction for one row: terms that, with `base` and `rest`, sum to its score.

    Parameters
    ----------
    program : one that predicts, trained or loaded.
    data : what its `predict` takes: rows, texts, a frame, a path, a feed; pairs of user and item; sentences.
    row : which row of it, from 0.
    tag : of several classes, the one whose score is asked for, by default the best; of a tagger, the tag against which
        the best one is held, by default the second best.
    token : of a tagger, which token of the sentence, from 0.

    Examples
    --------
    >>> import hogwild
    >>> feed = hogwild.feed_of(["good film", "bad film"] * 10, ["yes", "no"] * 10)
    >>> program = hogwild.train(hogwild.Linear(), feed, lr=0.1, epochs=5, threads=1, quiet=True)
    >>> found = hogwild.explain(program, ["a good book"])
    >>> found.predicted, found.of, found.terms[0].name
    ('yes', 'yes', 'good')
    >>> abs(found.base + sum(term.amount for term in found.terms) - found.score) < 1e-5
    True
    """
    if isinstance(program, Tagger):
        sentences = program.feed_of(data)
        _check_place("row", row, len(sentences))
        one = sentences.part(np.array([row]), "row")
        _check_place("token", token, one.tokens)
        return explain_token(program, one, token, tag)
    if token:
        raise ConfigError("token is for taggers, and this model is none; leave it out.")
    if program.name == "matrix-factorization":
        if tag:
            raise ConfigError("tag is for classes, and this model is a recommender; leave it out.")
        pairs = program.read(data)
        _check_place("row", row, len(pairs))
        return explain_pair(program, pairs, row)
    if not isinstance(program, Supervised):
        raise ConfigError(f"a {program.name} model has no predictions of rows to explain.")
    feed = program.read(data)
    _check_place("row", row, len(feed))
    own = spelt(program.schema or {}, data[row]) if isinstance(data, list) else []
    return explain_row(program, feed.part(np.array([row]), "row"), own, tag)


def _check_place(name: str, place: int, count: int) -> None:
    if not 0 <= place < count:
        raise ConfigError(f"{name} is {place}, and there are {count}; they are numbered from 0.")


def spelt(schema: Mapping[str, Any], row: Any) -> list[str]:
    """Names of the hashed features of a row in memory: a text, or a dict."""
    column = schema.get("text", "")
    text = row.get(column) if isinstance(row, Mapping) else row
    found = Spellings()
    if column and isinstance(text, str):
        data = np.frombuffer(text.encode() or b" ", np.uint8)
        found.add_texts(Hashing(**schema["hashing"]).recipe(), data, np.array([[0, len(data)]]))
    if isinstance(row, Mapping):
        shared = schema.get("shared_ids", False)
        words = {name: row.get(name) for name in schema.get("categorical", ())}
        found.add_categories({f"{'' if shared else name}={word}": 1 for name, word in words.items() if word})
    return found.names()
