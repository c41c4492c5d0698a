"""What speaks for the tag of a token, against the tag that would do second best with the tags around it as they are."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Any

import numpy as np

from hogwild.arrays import Chains, Ids, ValuedChains
from hogwild.feeds.tagged.feed import TaggingFeed
from hogwild.programs.inspecting.contributions import Explanation, Term, sorted_terms
from hogwild.programs.inspecting.strongest import place_of

_Terms = defaultdict[str, float]

AGAINST = "the terms sum to what the sentence scores more with {} than with {} at this token, the second best tag here"
OCCLUDED = (
    "each word counts as what the score of {} over {} loses where the word is not known; rest: what words do together"
)


def explain_token(program: Any, feed: TaggingFeed, token: int, tag: str = "") -> Explanation:
    """The best tag of a token of the only sentence of a feed. tag: against which it is held, by default the second
    best."""
    path = program.predict_codes(feed)
    of_crf = program.name == "crf"
    by_tag = _crf_terms(program, feed, path, token) if of_crf else _lstm_terms(program, feed, path, token)
    totals = np.array([sum(terms.values()) for terms in by_tag])
    best = int(path[token])
    other = place_of(tag, program.tags, "tag")
    if other is None:
        totals[best] = -np.inf
        other = int(np.argmax(totals))
    names = dict.fromkeys((*by_tag[best], *by_tag[other]))
    terms = [Term(name, by_tag[best][name] - by_tag[other][name]) for name in names]
    score = sum(term.amount for term in terms)
    told, against, rest = program.tags[best], program.tags[other], 0.0
    how = AGAINST.format(told, against)
    if not of_crf:
        layers = next(term for term in terms if term.name == _LAYERS)
        words = _occluded(program, feed, token, (best, other))
        rest = layers.amount - sum(term.amount for term in words)
        terms = [term for term in terms if term is not layers] + words
        how = f"{how}; {OCCLUDED.format(told, against)}"
    kept = [term for term in terms if term.amount]
    return Explanation(told, f"{told} against {against}", score, 0.0, sorted_terms(kept), rest, how)


def _neighbours(program: Any, pairs: Any, path: Ids, token: int) -> list[_Terms]:
    """The transitions to and from each tag at a token."""
    tags, found = program.tags, []
    for tag in range(len(tags)):
        terms: _Terms = defaultdict(float)
        if token > 0:
            terms[f"after {tags[path[token - 1]]}"] = float(pairs[path[token - 1], tag])
        if token + 1 < len(path):
            terms[f"before {tags[path[token + 1]]}"] = float(pairs[tag, path[token + 1]])
        found.append(terms)
    return found


def _crf_terms(program: Any, feed: TaggingFeed, path: Ids, token: int) -> list[_Terms]:
    """Of each tag at a token, what the sentence scores by it: features, transitions, features of transitions."""
    arrays, tags, names = program.arrays(), len(program.tags), program.names
    found = _neighbours(program, arrays["edges"], path, token)
    starts, pairs, rich = arrays["rich_starts"], arrays["rich_pairs"], arrays["rich"]

    def add_rich(feature: int, value: float, tag: int, pair: int, where: str) -> None:
        if feature + 1 >= len(starts):
            return
        first, last = int(starts[feature]), int(starts[feature + 1])
        for place in np.flatnonzero(pairs[first:last] == pair).tolist():
            found[tag][f"{names[feature]}{where}"] += value * float(rich[first + place])

    for feature, value in _features(feed.samples, token):
        for tag in range(tags):
            found[tag][names[feature]] += value * float(arrays["nodes"][feature, tag])
            if token > 0:
                former = int(path[token - 1])
                add_rich(feature, value, tag, former * tags + tag, f", after {program.tags[former]}")
    if token + 1 < len(path):
        for feature, value in _features(feed.samples, token + 1):
            for tag in range(tags):
                add_rich(feature, value, tag, tag * tags + int(path[token + 1]), " of the next token")
    return found


def _features(samples: Chains | ValuedChains, token: int) -> list[tuple[int, float]]:
    first, last = int(samples.starts[token]), int(samples.starts[token + 1])
    values = samples.values[first:last].tolist() if isinstance(samples, ValuedChains) else [1.0] * (last - first)
    return list(zip(samples.ids[first:last].tolist(), values, strict=True))


_LAYERS = "layers"


def _lstm_terms(program: Any, feed: TaggingFeed, path: Ids, token: int) -> list[_Terms]:
    """Of each tag at a token, what the sentence scores by it: the layers, and transitions where there are any."""
    arrays, scores = program.arrays(), program.scores(feed)
    pairs = arrays.get("pairs", np.zeros((len(program.tags),) * 2))
    found = _neighbours(program, pairs, path, token)
    for tag, terms in enumerate(found):
        terms[_LAYERS] = float(scores[token, tag])
    return found


def _occluded(program: Any, feed: TaggingFeed, token: int, two: tuple[int, int]) -> list[Term]:
    """What the score of one tag over another at a token loses where each word of the sentence is not known."""
    tokens, best, other = feed.tokens, *two
    copies = feed.part(np.zeros(tokens + 1, np.int64), "words")  # the last stays as it is
    samples: Any = copies.samples
    hidden = np.arange(tokens) * (tokens + 1)
    keep = np.ones(len(samples.ids), np.bool_)
    for place in hidden.tolist():
        keep[samples.starts[place] : samples.starts[place + 1]] = False
    before = np.concatenate(([0], np.cumsum(keep)))
    parts = {name: getattr(samples, name)[keep] for name in ("ids", "values") if name in samples._fields}
    text = copies.text
    words = [str(k + 1) for k in range(tokens)]
    if text is not None:
        name = program.reader.word_column_name
        own = next((column for column in text.columns if column.name == name), text.columns[0])
        words = own.strings(0, tokens)
        codes = own.codes.copy()
        codes[hidden] = len(own.values)
        blank = replace(own, codes=codes, values=(*own.values, ""))
        text = replace(text, columns=tuple(blank if column is own else column for column in text.columns))
    changed = replace(copies, samples=samples._replace(starts=before[samples.starts], **parts), text=text)
    scores = program.scores(changed).reshape(tokens + 1, tokens, -1)[:, token]
    margins = scores[:, best].astype(np.float64) - scores[:, other]
    return [Term(f"{k + 1} {words[k]}", float(margins[-1] - margins[k])) for k in range(tokens)]
