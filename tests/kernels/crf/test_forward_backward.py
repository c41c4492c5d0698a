"""Losses and gradients of sentences against twins that write all paths out; extreme scores, long sentences."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from compiling import OFF, cases, compiled_in_full
from hogwild.kernels.crf import gradient as crf_kernels
from hogwild.kernels.crf import viterbi as viterbi_kernels
from hogwild.kernels.crf.forward_backward import STEEP
from hogwild.programs.taggers.crf import CRF
from problems.crf import EVERY, GRADIENT, SOME, gradient_of, make_crf, make_feed, model_of, visit
from reference import crf as twin

PLAIN: dict[str, Any] = {"rich_edges": False}
ALL: dict[str, Any] = {**EVERY, "rich_edge_pairs": "all"}
EDGES = {"plain": PLAIN, "some rich": SOME, "all rich": EVERY, "all pairs": ALL}


def compare(program: CRF, feed: Any, sentence: int, sums: Any = twin.Paths, tolerance: float = 2e-5) -> None:
    """The loss and the whole gradient of one sentence; the tolerance is for the gradient, and for the loss a token."""
    chain, model = twin.chains_of(feed.samples)[sentence], model_of(program)
    loss, scratch = visit(program, feed, sentence, GRADIENT)
    assert loss == pytest.approx(twin.loss_of(model, chain, sums=sums), abs=tolerance * (1 + len(chain.tags)))
    near(gradient_of(program, scratch), twin.gradient_of(model, chain, sums=sums), tolerance)


def near(found: twin.Gradient, expected: twin.Gradient, tolerance: float, relative: float = 1e-4) -> None:
    """Two gradients are the same."""
    for name, exact in vars(expected).items():
        np.testing.assert_allclose(getattr(found, name), exact, rtol=relative, atol=tolerance, err_msg=name)


# -- the twins ------------------------------------------------------------------------------------------------------


def random_scores(seed: int, tokens: int, tags: int, size: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    pairs = random.normal(0, size, (tokens, tags, tags))
    pairs[0] = 0
    return random.normal(0, size, (tokens, tags)), pairs


@pytest.mark.parametrize(("tokens", "tags"), [(1, 1), (1, 4), (6, 1), (2, 5), (5, 4), (7, 3)])
@pytest.mark.parametrize("size", [1.0, 300.0])
def test_the_recursion_equals_the_enumeration(tokens: int, tags: int, size: float) -> None:
    scores = random_scores(tokens * tags, tokens, tags, size)
    slow, quick = twin.Paths(*scores), twin.Recursion(*scores)
    assert quick.log_norm == pytest.approx(slow.log_norm, rel=1e-12)
    np.testing.assert_allclose(quick.marginals(), slow.marginals(), atol=1e-12)
    np.testing.assert_allclose(quick.pair_marginals(), slow.pair_marginals(), atol=1e-12)
    path = slow.paths[len(slow.paths) // 2].tolist()
    assert quick.score(path) == pytest.approx(slow.score(path), rel=1e-12)
    assert quick.best() == pytest.approx(slow.best(1)[0][0], rel=1e-12)


@pytest.mark.parametrize("cuts", [(), (2,), (1, 2, 5)])
def test_the_gradient_of_the_twin_is_the_slope_of_its_loss(cuts: tuple[int, ...]) -> None:
    feed = make_feed(4, values=True)
    model = model_of(make_crf(feed, 4, **SOME))
    chain = twin.chains_of(feed.samples)[1]
    touched = twin.add_up(twin.touches_of(model, chain, cuts))
    whole = twin.gradient_of(model, chain, cuts)
    cells = [("rich", f, pair) for f, pairs in enumerate(model.rich) for pair in pairs]
    np.testing.assert_allclose([touched.pop(cell, 0.0) for cell in cells], whole.rich, atol=1e-12)
    for (name, x, y), slope in touched.items():
        assert getattr(whole, name)[x, y] == pytest.approx(slope, abs=1e-12)

    def nudged(name: str, x: int, y: int, by: float) -> float:
        moved = twin.Model(model.nodes.copy(), model.edges.copy(), [dict(pairs) for pairs in model.rich])
        if name == "rich":
            moved.rich[x][y] += by
        else:
            getattr(moved, name)[x, y] += by
        return twin.loss_of(moved, chain, cuts)

    for name in ("nodes", "edges", "rich"):
        places = cells if name == "rich" else [(name, *place) for place in np.ndindex(getattr(whole, name).shape)]
        for place, slope in zip(places, getattr(whole, name).reshape(-1), strict=True):
            rise = nudged(*place, 1e-5) - nudged(*place, -1e-5)
            assert rise / 2e-5 == pytest.approx(slope, abs=1e-8), place


# -- small sentences ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("edges", cases(EDGES, ["plain", "some rich", "all pairs"]))
@pytest.mark.parametrize("tags", [1, 2, 3, 5])
def test_sentences_of_every_length(edges: str, tags: int) -> None:
    feed = make_feed(tags, tags, lengths=(1, 2, 3, 4, 5, 6, 7, 1))
    program = make_crf(feed, tags, **EDGES[edges])
    assert bool(program.pairs.features) == (edges != "plain" and tags > 1)
    if edges == "some rich" and tags > 1:
        assert 0 < program.pairs.features < len(feed.names)
    if edges == "all rich" and tags > 1:
        assert (np.diff(program.pairs.starts) < tags**2).any()
    for sentence in range(len(feed)):
        compare(program, feed, sentence)


@compiled_in_full
@pytest.mark.parametrize("edges", EDGES)
@pytest.mark.parametrize("rule", ["sgd", "adam"])
def test_features_with_values(edges: str, rule: str) -> None:
    feed = make_feed(11, values=True)
    program = make_crf(feed, 11, optimizer=rule, **EDGES[edges])
    for sentence in range(len(feed)):
        compare(program, feed, sentence)


@pytest.mark.parametrize("tags", cases([8, 9, 17, 33, 65, 70], [8]))
@pytest.mark.parametrize("edges", ["plain", "some rich"])
def test_more_tags_than_a_vector_has_lanes(tags: int, edges: str) -> None:
    feed = make_feed(tags, tags, lengths=(1, 2, 12), features=80)
    program = make_crf(feed, tags, **EDGES[edges])
    for sentence in range(len(feed)):
        compare(program, feed, sentence, twin.Recursion)


@pytest.mark.parametrize("tags", cases([1, 5, 9, 70], [5, 70]))
def test_marginals(tags: int) -> None:
    feed = make_feed(tags, tags, lengths=(1, 2, 12, 30), features=80)
    program = make_crf(feed, tags, **SOME)
    found = program.marginals(feed)
    sums = [twin.Recursion(*twin.scores_of(model_of(program), chain)) for chain in twin.chains_of(feed.samples)]
    np.testing.assert_allclose(found, np.concatenate([each.marginals() for each in sums]), atol=1e-5)
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-5)


def test_tokens_without_features_and_features_without_pairs() -> None:
    feed = make_feed(6)
    program = make_crf(feed, 6, **EVERY)
    arrays = program.arrays()
    arrays["rich_starts"] = np.array([0, 0, 3, 3], np.int64)  # of three features with rich edges two have no pair
    arrays["rich_pairs"] = np.array([8, 0, 4], np.int32)
    arrays["rich"] = np.array([0.5, -1, 2], np.float32)
    program.restore(arrays)
    assert any(not features for chain in twin.chains_of(feed.samples) for features in chain.features)
    for sentence in range(len(feed)):
        compare(program, feed, sentence)


# -- extreme scores -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("edges", ["plain", "some rich"])
@pytest.mark.parametrize("size", [20.0, 100.0, 1e3, 1e4])
def test_scores_far_apart(edges: str, size: float) -> None:
    """Scores in float32 are right to 6e-8 of them; what they give cannot be more exact."""
    feed = make_feed(3, 4)
    program = make_crf(feed, 3, size, **EDGES[edges])
    for sentence in range(len(feed)):
        compare(program, feed, sentence, tolerance=2e-5 + 1e-6 * size)


@pytest.mark.parametrize("edges", ["plain", "some rich"])
@pytest.mark.parametrize("weight", [-1e30, 1e30, -3e3, 3e3])
def test_one_weight_beyond_all_others(edges: str, weight: float) -> None:
    """What a tag is certain of, or never, at a score of 3,000 it is at any other beyond."""
    feed = make_feed(5, 3)
    for name, place in (("nodes", (0, 1)), ("edges", (2, 1))):
        program = make_crf(feed, 5, **EDGES[edges])
        arrays = program.arrays()
        arrays[name][place] = np.sign(weight) * 3e3
        model = twin.model_of(arrays)
        arrays[name][place] = weight
        program.restore(arrays)
        for sentence, chain in enumerate(twin.chains_of(feed.samples)):
            loss, scratch = visit(program, feed, sentence, GRADIENT)
            expected = twin.loss_of(model_of(program), chain)
            assert loss == pytest.approx(expected, rel=1e-5, abs=1e-4 + 1e-6 * abs(weight))
            found = gradient_of(program, scratch)
            if name == "edges" and weight > 1e20:  # paths that take the pair equally often differ by less than float32
                for part in vars(found).values():
                    assert np.abs(part).max(initial=0) < 30
            else:
                near(found, twin.gradient_of(model, chain), 5e-3)


@pytest.mark.parametrize("edges", ["plain", "some rich"])
def test_both_ways_agree_at_the_border(edges: str) -> None:
    """Sentences whose scores lie just near enough for plain weights, and a little too far apart."""
    feed = make_feed(8, 3, lengths=(3, 2, 5, 7, 12))
    program = make_crf(feed, 8, **EDGES[edges])
    arrays = {name: array.copy() for name, array in program.arrays().items()}
    for sentence, chain in enumerate(twin.chains_of(feed.samples)):
        extent = _extent(twin.model_of(arrays), chain)
        for share in (0.99, 1.01):
            factor = share * float(STEEP) / extent
            scaled = {n: (a * factor).astype(np.float32) if a.dtype == np.float32 else a for n, a in arrays.items()}
            program.restore(scaled)
            assert (_extent(model_of(program), chain) <= STEEP) == (share < 1)
            compare(program, feed, sentence, twin.Recursion, tolerance=1e-4)


@pytest.mark.skipif(not OFF, reason="compiled code has the border as a constant")
@pytest.mark.parametrize("edges", EDGES)
@pytest.mark.parametrize("tags", [1, 3])
def test_logarithms_do_for_all_sentences(edges: str, tags: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sentences that plain weights are good for, by logarithms."""
    feed = make_feed(tags, tags, lengths=(1, 2, 3, 12))
    program = make_crf(feed, tags, **EDGES[edges])
    plain, losses = program.marginals(feed), [visit(program, feed, k, GRADIENT)[0] for k in range(4)]
    chances = program.nbest(feed, 3)
    monkeypatch.setattr(crf_kernels, "STEEP", np.float32(-1))
    monkeypatch.setattr(viterbi_kernels, "STEEP", np.float32(-1))
    for sentence in range(len(feed)):
        compare(program, feed, sentence, twin.Recursion)
    np.testing.assert_allclose(program.marginals(feed), plain, atol=1e-5)
    np.testing.assert_allclose([visit(program, feed, k, GRADIENT)[0] for k in range(4)], losses, rtol=1e-5, atol=1e-5)
    for one, other in zip(program.nbest(feed, 3), chances, strict=True):
        assert [path for _, path in one] == [path for _, path in other]
        np.testing.assert_allclose([chance for chance, _ in one], [chance for chance, _ in other], rtol=1e-4)


def _extent(model: twin.Model, chain: twin.Chain) -> float:
    """The largest extent of the scores of a token and of the pairs that end there."""
    nodes, pairs = twin.scores_of(model, chain)
    return float((np.ptp(nodes, axis=1) + np.ptp(pairs, axis=(1, 2))).max())


@pytest.mark.parametrize("edges", ["plain", "some rich"])
@pytest.mark.parametrize("weight", [np.nan, np.inf])
def test_a_weight_that_is_no_number_shows_in_the_loss(edges: str, weight: float) -> None:
    """So that the run stops, wherever in a row it is."""
    feed = make_feed(9, 3)
    feature = int(feed.samples.ids[feed.samples.starts[3]])  # of the second sentence
    assert feature < make_crf(feed, 9, **SOME).pairs.features
    program = make_crf(feed, 9, **EDGES[edges])
    places = [("nodes", 8 * feature + y) for y in range(3)] + [("edges", 8 * x + y) for x in range(3) for y in range(3)]
    if edges != "plain":
        places.append(("rich", 8 * int(program.pairs.chunk_starts[feature])))
    for name, cell in places:
        table = getattr(program.weights, name)
        kept, table[cell] = table[cell], weight
        assert not np.isfinite(visit(program, feed, 1, GRADIENT)[0]), (name, cell)
        table[cell] = kept


# -- long sentences -------------------------------------------------------------------------------------------------


@cache
def long_feed(tokens: int) -> Any:
    return make_feed(13, 4, lengths=(tokens, 1), features=40)


def compare_long(program: CRF, feed: Any) -> None:
    chain, model = twin.chains_of(feed.samples)[0], model_of(program)
    loss, scratch = visit(program, feed, 0, GRADIENT)
    sums = twin.Recursion(*twin.scores_of(model, chain))
    assert loss == pytest.approx(sums.log_norm - sums.score(chain.tags), rel=1e-5)
    exact = twin.gradient_of(model, chain, sums=lambda *scores: sums)
    near(gradient_of(program, scratch), exact, 1e-5 * max(1, np.abs(exact.nodes).max()), relative=1e-3)


@pytest.mark.parametrize("edges", ["plain", "some rich"])
@pytest.mark.parametrize(("tokens", "size"), [(20_000, 2.0), (2_000, 40.0)])
def test_a_sentence_of_many_tokens(edges: str, tokens: int, size: float) -> None:
    """Nothing over- or underflows, whatever the length; weights of 40 go by logarithms."""
    feed = long_feed(tokens // 100 if OFF else tokens)
    program = make_crf(feed, 13, size, **EDGES[edges])
    compare_long(program, feed)
    if edges != "plain":
        np.testing.assert_allclose(program.marginals(feed).sum(axis=1), 1, atol=1e-4)


def test_an_unlikely_pair_that_a_long_sentence_takes_again_and_again() -> None:
    """Tags alternate, and one of the two steps costs almost all that plain weights can hold."""
    tokens = 40 if OFF else 30_000
    feed = make_feed(2, 2, lengths=(tokens,), features=3)
    program = make_crf(feed, None, **PLAIN)
    arrays = program.arrays()
    arrays["edges"][:] = -0.99 * STEEP
    arrays["edges"][0, 1] = 0
    program.restore(arrays)
    compare_long(program, feed)


def test_scratch_is_used_again() -> None:
    """A long sentence leaves its numbers behind; a short one after it must not see them."""
    feed = make_feed(14, 3, lengths=(60, 1, 3, 60, 2))
    program = make_crf(feed, 14, **SOME)
    fresh = [visit(program, feed, sentence, GRADIENT) for sentence in range(len(feed))]
    _, used = visit(program, feed, 0, GRADIENT)
    used.floats[:] = np.where(np.arange(len(used.floats)) % 2, np.nan, 1e30)
    for sentence, (loss, scratch) in enumerate(fresh):
        again, _ = visit(program, feed, sentence, GRADIENT, used)
        assert again == loss
        near(gradient_of(program, used), gradient_of(program, scratch), 0, 0)
