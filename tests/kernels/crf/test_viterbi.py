"""Best paths against all paths written out: one or several, ties, schemes of tags, what no path can keep to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from compiling import OFF, cases
from hogwild.errors import ConfigError
from hogwild.kernels.crf.viterbi import FORBIDDEN
from hogwild.programs.taggers.crf import CRF
from problems.crf import EVERY, SOME, make_crf, make_feed, model_of
from reference import crf as twin

EDGES: dict[str, dict[str, Any]] = {"plain": {"rich_edges": False}, "rich": EVERY}
SCHEMES = {
    "iob1": ("O", "I-A", "B-A", "I-B"),
    "iob2": ("O", "B-A", "I-A", "B-B", "I-B"),
    "iobes": ("O", "S-A", "B-A", "I-A", "E-A"),
    "bmes": ("B", "M", "E", "S"),
    "bmes without S": ("B", "M", "E"),
    "bilou": ("B-A", "I-A", "L-A", "U-A", "O"),
}


def paths_of(program: CRF, feed: Any, rules: Any = None) -> list[twin.Paths]:
    """All paths of all sentences; `rules` has what steps cost besides."""
    found = []
    for chain in twin.chains_of(feed.samples):
        nodes, pairs = twin.scores_of(model_of(program), chain)
        if rules is not None:
            nodes[0] += rules.first
            nodes[-1] += rules.last
            pairs[1:] += rules.pairs
        found.append(twin.Paths(nodes, pairs))
    return found


def numbers(feed: Any, tags: Sequence[str]) -> list[int]:
    """Numbers of tags."""
    return [feed.tags.index(tag) for tag in tags]


# -- the best path --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("edges", cases(EDGES, ["rich"]))
@pytest.mark.parametrize("tags", cases([1, 2, 5], [2, 5]))
@pytest.mark.parametrize("size", [1.0, 200.0])
def test_the_best_path(edges: str, tags: int, size: float) -> None:
    feed = make_feed(tags, tags, lengths=(1, 2, 3, 4, 5, 6))
    program = make_crf(feed, tags, size, **EDGES[edges])
    for tagged, paths in zip(program.predict(feed), paths_of(program, feed), strict=True):
        assert numbers(feed, tagged) == paths.best(1)[0][1]


@pytest.mark.parametrize("tags", cases([9, 70], []))
def test_the_best_path_among_many_tags(tags: int) -> None:
    feed = make_feed(3, tags, lengths=(1, 30), features=80)
    program = make_crf(feed, 3, **SOME)
    for tagged, chain in zip(program.predict(feed), twin.chains_of(feed.samples), strict=True):
        sums = twin.Recursion(*twin.scores_of(model_of(program), chain))
        assert sums.score(numbers(feed, tagged)) == pytest.approx(sums.best(), abs=1e-4)


def test_a_long_sentence_loses_no_digits() -> None:
    feed = make_feed(4, 3, lengths=(300 if OFF else 20_000,), features=20)
    program = make_crf(feed, 4, 30.0, **SOME)
    sums = twin.Recursion(*twin.scores_of(model_of(program), twin.chains_of(feed.samples)[0]))
    [[(chance, path)]] = program.nbest(feed, 1)
    assert sums.score(numbers(feed, path)) == pytest.approx(sums.best(), rel=1e-9)
    assert chance == pytest.approx(np.exp(sums.best() - sums.log_norm), rel=0.05)
    assert [path] == program.predict(feed)


def test_threads_find_the_same() -> None:
    feed = make_feed(5, lengths=[1, 2, 3, 4, 5] * (2 if OFF else 10))
    program = make_crf(feed, 5, **SOME)
    once, odds = program.predict_codes(feed), program.marginals(feed)
    loss = program.evaluate(feed)["loss"]
    for threads in (0, 2, 3, 51):
        np.testing.assert_array_equal(program.predict_codes(feed, threads), once)
        np.testing.assert_array_equal(program.marginals(feed, threads), odds)
        assert program.evaluate(feed, threads)["loss"] == loss
    exact = [twin.loss_of(model_of(program), chain) for chain in twin.chains_of(feed.samples)]
    assert loss == pytest.approx(np.mean(exact), rel=1e-5)


# -- several --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("edges", cases(EDGES, ["rich"]))
@pytest.mark.parametrize("count", [1, 2, 7, 250])
@pytest.mark.parametrize("size", [1.0, 60.0])
def test_the_best_paths(edges: str, count: int, size: float) -> None:
    feed = make_feed(6, 3, lengths=(1, 2, 3, 4, 5))
    program = make_crf(feed, 6, size, **EDGES[edges])
    for found, paths in zip(program.nbest(feed, count), paths_of(program, feed), strict=True):
        best = paths.best(count)
        assert len(found) == len(best) == min(count, len(paths.paths))
        assert len({tuple(path) for _, path in found}) == len(found)
        scores = [paths.score(numbers(feed, path)) for _, path in found]
        np.testing.assert_allclose(scores, [score for score, _ in best], atol=1e-4 * size)
        chances = [chance for chance, _ in found]
        np.testing.assert_allclose(chances, np.exp(np.array(scores) - paths.log_norm), rtol=0.01)
        assert 1 >= chances[0] >= chances[-1] >= 0
        assert chances == sorted(chances, reverse=True)
        if count == 250:
            assert sum(chances) == pytest.approx(1, rel=1e-4)


def test_ties_are_all_found_once() -> None:
    feed = make_feed(7, 3, lengths=(1, 2, 4))
    program = make_crf(feed, None, **EVERY)
    for found, chain in zip(program.nbest(feed, 100), twin.chains_of(feed.samples), strict=True):
        assert len({tuple(path) for _, path in found}) == len(found) == 3 ** len(chain.tags)
        np.testing.assert_allclose([chance for chance, _ in found], 3.0 ** -len(chain.tags), rtol=1e-5)
    assert program.predict(feed) == [["T0"] * len(chain.tags) for chain in twin.chains_of(feed.samples)]


@pytest.mark.parametrize("count", [0, -1, 1001])
def test_numbers_of_paths_that_cannot_be(count: int) -> None:
    feed = make_feed(8)
    with pytest.raises(ConfigError, match=f"{count} best paths cannot be given; ask for 1 to 1000"):
        make_crf(feed, 8).nbest(feed, count)


# -- schemes --------------------------------------------------------------------------------------------------------


def follows(scheme: str, tags: Sequence[str]) -> bool:
    """The rules of the schemes, written out."""
    open_type = None  # of the chunk that must go on (iobes and kin), or that may (iob)
    for tag in tags:
        letter, _, kind = tag.partition("-")
        if scheme == "iob1":
            if letter == "B" and open_type != kind:
                return False
            open_type = None if letter == "O" else kind
        elif scheme == "iob2":
            if letter == "I" and open_type != kind:
                return False
            open_type = None if letter == "O" else kind
        else:
            goes_on = letter in ("I", "M", "E", "L")
            if goes_on != (open_type is not None) or (goes_on and open_type != kind):
                return False
            open_type = kind if letter in ("B", "I", "M") else None
    return scheme.startswith("iob1") or scheme == "iob2" or open_type is None


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("seed", [0, 1])
def test_constrained_paths_are_the_best_allowed_ones(scheme: str, seed: int) -> None:
    tags = SCHEMES[scheme]
    plain = make_feed(seed, len(tags), lengths=(1, 2, 3, 4, 5, 6))
    feed = replace(plain, tags=tags)
    program = make_crf(feed, seed, 3.0, **SOME)
    free = program.predict(feed)
    kept = program.predict(feed, constrain=True)
    several = program.nbest(feed, 5, constrain=True)
    broken = 0
    for one, bound, found, paths in zip(free, kept, several, paths_of(program, feed), strict=True):
        best = paths.best(len(paths.paths))
        good = [(score, path) for score, path in best if follows(scheme, [tags[k] for k in path])]
        broken += not follows(scheme, one)
        assert found[0][1] == bound
        if not good:
            assert scheme == "bmes without S"
            continue
        assert follows(scheme, bound)
        assert numbers(feed, bound) == good[0][1]
        whole = [path for _, path in found if follows(scheme, path)]
        assert [numbers(feed, path) for path in whole] == [path for _, path in good[:5]]
        for chance, path in found[: len(whole)]:
            assert chance == pytest.approx(np.exp(paths.score(numbers(feed, path)) - paths.log_norm), rel=1e-3)
    assert broken  # or nothing was constrained


def violations(tags: Sequence[str]) -> int:
    """Rules of BMES that a path breaks: at the beginning, between two tags, at the end."""
    inside = ("M", "E")
    broken = (tags[0] in inside) + (tags[-1] in ("B", "M"))
    return broken + sum((y in inside) != (x in ("B", "M")) for x, y in pairwise(tags))


def test_where_no_path_is_allowed_the_one_that_breaks_fewest_rules() -> None:
    """B, M and E without S: a sentence of one token breaks a rule whatever its tag; so do paths asked for beyond."""
    tags = ("B", "M", "E")
    feed = replace(make_feed(9, 3, lengths=(1, 1, 2, 3)), tags=tags)
    program = make_crf(feed, 9, 3.0, **SOME)
    for found, paths in zip(program.nbest(feed, 27, constrain=True), paths_of(program, feed), strict=True):
        scored = [(violations([tags[k] for k in path]), -score, path) for score, path in paths.best(27)]
        assert [numbers(feed, path) for _, path in found] == [path for _, _, path in sorted(scored)]
        for chance, path in found:  # the chance of a path that breaks a rule is what it is without rules
            assert chance == pytest.approx(np.exp(paths.score(numbers(feed, path)) - paths.log_norm), rel=1e-3)
    assert FORBIDDEN < -1e6


def test_tags_of_no_scheme_cannot_constrain() -> None:
    feed = make_feed(10)
    program = make_crf(feed, 10)
    with pytest.raises(ConfigError, match=r"tags such as T0, T1, T2 follow no scheme .* do not constrain"):
        program.predict(feed, constrain=True)
