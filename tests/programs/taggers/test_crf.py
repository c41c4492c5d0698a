"""The CRF program: what it is told and what it says, texts that do not fit it, small and odd texts, evaluation."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from compiling import OFF, compiled_in_full
from hogwild.arrays import Chains
from hogwild.errors import ConfigError, InputError
from hogwild.executor.run import AsyncExecutor
from hogwild.feeds.tagged.feed import TaggingFeed
from hogwild.feeds.tagged.lists import tagging_of
from hogwild.programs.taggers.crf import CRF
from hogwild.programs.taggers.pieces import count_pieces, cut_pieces
from problems.crf import EVERY, GRADIENT, SOME, make_crf, make_feed, model_of, visit
from reference import crf as twin

X = [[["w=the"], ["w=cat", "cap"], ["w=sat"]], [["w=a"], ["w=dog"]], [["w=dogs"], ["w=sat"]]]
Y = [["D", "N", "V"], ["D", "N"], ["N", "V"]]


def fit(program: CRF, feed: Any, epochs: int = 5, mode: str = "serial", **options: Any) -> Any:
    """Train; the last event."""
    return list(AsyncExecutor(threads=2, mode=mode, lr=0.3).run(program, feed, epochs=epochs, **options))[-1]


# -- training and predicting ----------------------------------------------------------------------------------------


def test_it_learns_what_features_tell() -> None:
    feed = tagging_of(X, Y)
    program = CRF(l2=0.01, **EVERY)
    fit(program, feed, epochs=20)
    assert program.predict(feed) == Y
    assert program.tags == feed.tags
    assert program.names == feed.names
    found = program.evaluate(feed)
    assert found["accuracy"] == 1
    assert found["loss"] < 0.2
    other = tagging_of([[["w=the"], ["w=cat"], ["w=unheard"]]], names=program.names, tags=program.tags)
    assert program.predict(other)[0][:2] == ["D", "N"]


def test_rich_edges_tell_what_single_tags_cannot() -> None:
    """Whether a tag is that of its neighbour or the other one depends on a word: no sum of a node and a pair."""
    random = np.random.default_rng(0)
    sentences, tags = [], []
    for _ in range(25):
        words, found = ["start"], [int(random.integers(2))]
        for word in random.choice(["same", "other"], 6):
            words.append(str(word))
            found.append(found[-1] if word == "same" else 1 - found[-1])
        sentences.append([[word] if k else [word, f"is={found[0]}"] for k, word in enumerate(words)])
        tags.append([f"T{tag}" for tag in found])
    feed = tagging_of(sentences, tags)
    scores = {}
    for rich in (True, False):
        program = CRF(l2=0.01, rich_edges=rich)
        if rich or OFF:
            fit(program, feed, epochs=10)
            scores[rich] = program.evaluate(feed)["accuracy"]
    assert scores[True] > 0.99
    assert scores.get(False, 0) < 0.8


def test_scores_and_losses_are_those_of_the_twin() -> None:
    feed = make_feed(60)
    program = make_crf(feed, 60, **SOME)
    losses = [twin.loss_of(model_of(program), chain) for chain in twin.chains_of(feed.samples)]
    found = program.evaluate(feed)
    assert found["loss"] == pytest.approx(np.mean(losses), rel=1e-5)
    right = np.concatenate([np.array(tags) for tags in program.predict(feed)]) == np.array(feed.tags)[feed.samples.tags]
    assert found["accuracy"] == pytest.approx(right.mean())


def test_tags_that_are_not_known_count_as_wrong_and_their_sentences_have_no_loss() -> None:
    feed = make_feed(61)
    program = make_crf(feed, 61, **SOME)
    tags = feed.samples.tags.copy()
    tags[2] = -1  # of the second sentence
    strange = replace(feed, samples=feed.samples._replace(tags=tags), strange={"X": 1})
    losses = [twin.loss_of(model_of(program), chain) for chain in twin.chains_of(feed.samples)]
    found = program.evaluate(strange)
    assert found["loss"] == pytest.approx(np.mean(np.delete(losses, 1)), rel=1e-5)
    guess = program.predict_codes(feed)
    np.testing.assert_array_equal(program.predict_codes(strange), guess)
    np.testing.assert_array_equal(program.marginals(strange), program.marginals(feed))
    assert found["accuracy"] == pytest.approx(np.mean((guess == tags) & (tags >= 0)))
    unknown = replace(feed, samples=feed.samples._replace(tags=np.full_like(tags, -1)))
    assert math.isnan(program.evaluate(unknown)["loss"])
    np.testing.assert_array_equal(program.predict_codes(unknown), guess)
    np.testing.assert_array_equal(program.marginals(unknown), program.marginals(feed))


@compiled_in_full
def test_a_model_takes_texts_with_values_and_without() -> None:
    feed, valued = make_feed(72), make_feed(72, values=True)
    program = make_crf(feed, 72, **SOME)
    ones = replace(valued, samples=valued.samples._replace(values=np.ones_like(valued.samples.values)))
    np.testing.assert_allclose(program.marginals(ones), program.marginals(feed), atol=1e-6)
    fit(program, valued)
    losses = [twin.loss_of(model_of(program), chain) for chain in twin.chains_of(valued.samples)]
    assert program.evaluate(valued)["loss"] == pytest.approx(np.mean(losses), rel=1e-5)
    fit(program, feed)
    losses = [twin.loss_of(model_of(program), chain) for chain in twin.chains_of(feed.samples)]
    assert program.evaluate(feed)["loss"] == pytest.approx(np.mean(losses), rel=1e-5)


def test_what_is_watched() -> None:
    feed = make_feed(62)
    program = make_crf(feed, 62, **SOME)
    found = program.watchable()
    for name in ("nodes", "edges", "rich"):
        np.testing.assert_array_equal(found[name](), program.arrays()[name])


def test_room_for_the_largest_sentence_and_no_more() -> None:
    feed = make_feed(63, lengths=(5, 2, 40, 3))
    program = make_crf(feed, 63, **SOME)
    counts = [int(visit(program, feed, k, GRADIENT)[1].count[0]) for k in range(len(feed))]
    room = program.room(feed)
    chains = twin.chains_of(feed.samples)
    chunks = np.diff(program.pairs.chunk_starts)
    most = max(
        sum(1 + (int(chunks[f]) if f < len(chunks) else 0) for features in chain.features for f, _ in features) + 3
        for chain in chains
    )
    first = [sum(int(chunks[f]) for f, _ in chain.features[0] if f < len(chunks)) for chain in chains]
    assert room.rows == most
    assert max(c + f for c, f in zip(counts, first, strict=True)) == most  # the first token has no pair
    assert room.ints == 40
    tables = program.tables()
    for name, array in zip(program.weights._fields, program.weights, strict=True):
        assert tables[name].rows * tables[name].cells == array.size
    assert [table.kind for table in tables.values()] == ["ranked", "dense", "ranked"]
    assert program.units(feed) == 50
    assert program.visits(feed) == 4


# -- small and odd texts --------------------------------------------------------------------------------------------


@compiled_in_full
def test_one_tag_only() -> None:
    feed = tagging_of(X, [["D"] * len(tags) for tags in Y])
    program = CRF(**EVERY)
    fit(program, feed)
    assert program.pairs.features == 0
    assert program.predict(feed) == [["D"] * len(tags) for tags in Y]
    assert program.evaluate(feed)["loss"] == pytest.approx(0, abs=1e-6)
    np.testing.assert_allclose(program.marginals(feed), 1)
    assert program.nbest(feed, 3)[0] == [(pytest.approx(1), ["D"] * 3)]


def test_one_token_only() -> None:
    feed = tagging_of([[["a"]], [["b"]]], [["X"], ["Y"]])
    program = CRF(l2=0.0, rich_edge_min_count=1)
    fit(program, feed, epochs=50)
    assert program.predict(feed) == [["X"], ["Y"]]
    assert program.pairs.features == 2  # and none has a pair
    assert len(program.pairs.pairs) == 0
    assert program.evaluate(feed)["loss"] < 0.2


@compiled_in_full
@pytest.mark.parametrize("sharing", ["all", "hot", "replica"])
def test_tokens_without_any_feature(sharing: str) -> None:
    """Nothing but transitions to learn."""
    codes = np.array([0, 1, 0, 1, 1, 0, 1] * 5, np.int32)
    offsets = np.cumsum([0, *[4, 3] * 5])
    nothing = Chains(offsets, np.zeros(36, np.int64), np.zeros(0, np.int32), codes)
    feed = TaggingFeed(nothing, (), np.zeros(0, np.int64), ("A", "B"))
    program = CRF(l2=0.0, rich_edge_min_count=1)
    fit(program, feed, epochs=30, mode="hogwild", sharing=sharing)
    assert program.evaluate(feed)["loss"] < 1
    assert set(pairwise(program.predict(feed)[0])) == {("A", "B"), ("B", "A")}


def test_no_sentence_to_train_on() -> None:
    nothing = TaggingFeed(
        Chains(np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.int32)),
        ("f",),
        np.zeros(1, np.int64),
        ("A", "B"),
    )
    with pytest.raises(ConfigError, match="nothing to train on"):
        fit(CRF(), nothing)
    program = make_crf(replace(make_feed(64, 2, features=1), names=("f",), tags=("A", "B")), 64)
    assert program.predict(nothing) == []
    assert program.marginals(nothing).shape == (0, 2)
    assert program.nbest(nothing, 2) == []


def test_more_workers_than_sentences() -> None:
    feed = tagging_of(X, Y)
    program = CRF(**EVERY)
    done = list(AsyncExecutor(threads=7, mode="hogwild", lr=0.1).run(program, feed, epochs=3))[-1]
    assert done.samples == 9


# -- texts that do not fit ------------------------------------------------------------------------------------------


def test_a_text_in_other_ids_is_refused() -> None:
    feed = make_feed(65)
    program = make_crf(feed, 65, **SOME)
    before = program.arrays()
    others = [
        replace(feed, names=feed.names[::-1]),
        replace(feed, tags=feed.tags[::-1]),
        replace(feed, tags=(*feed.tags, "T3")),
        make_feed(65, features=10),  # a model does not grow
        make_feed(65, tags=4),
    ]
    for other in others:
        for use in (program.predict, program.marginals, program.evaluate, lambda f: program.nbest(f, 1)):
            with pytest.raises(ConfigError, match=r"other feature ids .* open it with names=program.names"):
                use(other)
        with pytest.raises(ConfigError, match="other feature ids"):
            fit(program, other)
    for name, array in program.arrays().items():
        np.testing.assert_array_equal(array, before[name])
    assert fit(program, feed, epochs=1).reason == "done"


def test_names_and_tags_given_beforehand() -> None:
    feed = tagging_of(X, Y, tags=("V", "N", "D"))
    program = CRF(tags=("V", "N", "D"), names=feed.names, **EVERY)
    fit(program, feed, epochs=20)
    assert program.predict(feed) == Y
    wrong = CRF(tags=("V", "N"), **EVERY)
    with pytest.raises(ConfigError, match="other feature ids"):
        fit(wrong, feed)
    assert wrong.names == ()  # a text that was refused leaves nothing behind
    fit(wrong, tagging_of([sentence[1:] for sentence in X], [tags[1:] for tags in Y], tags=("V", "N")), epochs=1)


def test_rich_edges_of_chosen_templates() -> None:
    feed = replace(make_feed(71), names=("a=1", "a=2", "b=1", "b=2", "c", "d", "e", "f", "g"))
    program = CRF(rich_edge_templates=["a", "z"], **EVERY)
    with pytest.raises(ConfigError, match="no feature is of the template 'z'"):
        fit(program, feed)
    assert (program.names, program.tags, program.weights) == ((), (), None)  # nothing is left behind
    chosen = make_crf(feed, 71, rich_edge_templates=["b"], **EVERY)
    assert chosen.pairs.features == 4
    assert np.diff(chosen.pairs.starts).tolist()[:2] == [0, 0]
    again = CRF(**json.loads(json.dumps(chosen.options())))
    assert again.config == chosen.config
    again.restore(chosen.arrays())
    sums = [twin.Paths(*twin.scores_of(model_of(again), chain)) for chain in twin.chains_of(feed.samples)]
    np.testing.assert_allclose(again.marginals(feed), np.concatenate([each.marginals() for each in sums]), atol=1e-5)


def test_tags_that_the_model_does_not_have_cannot_be_learnt() -> None:
    feed = make_feed(66)
    program = make_crf(feed, 66, **SOME)
    tags = feed.samples.tags.copy()
    tags[4] = -1
    for strange, message in (({"X": 1, "Y-Z": 2}, "its tags X, Y-Z are not among"), ({}, "tokens without tags")):
        other = replace(feed, samples=feed.samples._replace(tags=tags), strange=strange, source="a.txt")
        with pytest.raises(InputError, match=f"a.txt: .*{message}"):
            fit(program, other)


def test_what_is_no_tagged_text() -> None:
    with pytest.raises(ConfigError, match=r"ndarray is no tagged text; use hogwild.open_tagging or tagging_of"):
        fit(CRF(), np.zeros(3))


def test_damaged_text_is_refused() -> None:
    feed = make_feed(67)
    samples = feed.samples
    damaged = [
        samples._replace(ids=np.where(np.arange(len(samples.ids)) == 3, 99, samples.ids).astype(np.int32)),
        samples._replace(ids=np.where(np.arange(len(samples.ids)) == 3, -1, samples.ids).astype(np.int32)),
        samples._replace(starts=samples.starts[:-1]),
        samples._replace(offsets=samples.offsets[::-1].copy()),
        samples._replace(tags=np.full_like(samples.tags, 3)),
    ]
    first = int(np.flatnonzero(np.diff(samples.starts) > 1)[0])
    here = slice(samples.starts[first], samples.starts[first + 1])
    falling = samples.ids.copy()
    falling[here] = [5, 1, *range(7)][: len(falling[here])]  # rich edges are looked for in rising ids
    for broken in [*damaged, samples._replace(ids=falling)]:
        with pytest.raises(InputError, match="the data is damaged"):
            fit(CRF(), replace(feed, samples=broken))


def test_an_untrained_model_says_so() -> None:
    for program in (CRF(), CRF(tags=("T0", "T1", "T2"))):
        with pytest.raises(ConfigError, match="no weights yet; train it, or load one"):
            program.predict(make_feed(68))
        with pytest.raises(ConfigError, match="no weights yet"):
            program.arrays()


# -- options --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"optimizer": "newton"}, "optimizer"),
        ({"l2": -1.0}, "l2"),
        ({"l2": float("inf")}, "l2"),
        ({"l1": float("nan")}, "l1"),
        ({"rich_edge_min_count": 0}, "rich_edge_min_count"),
        ({"rich_edge_pairs": "some"}, "rich_edge_pairs"),
        ({"structure_regularization": -1}, "structure_regularization"),
        ({"optimizer": "adam", "constants": {"beta3": 0.1}}, "no constant 'beta3'; it has beta1, beta2, epsilon"),
        ({"constants": {"beta": 0.1}}, "sgd has no constant 'beta'; it has none"),
        ({"optimizer": "ftrl", "constants": {"l2": 0.1}}, "no constant 'l2'"),
    ],
)
def test_options_that_cannot_work(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        CRF(**options)


PRESETS = [("pos", 0.1, 1), ("chunking", 0.05, 0.5), ("segmentation", 0.1, 1), ("chunking-more", 0.1, 1)]


@pytest.mark.parametrize(("preset", "rate", "l2"), PRESETS)
def test_rates_and_penalties_of_the_presets(preset: str, rate: float, l2: float) -> None:
    feed = replace(make_feed(69), schema={"preset": preset})
    program = CRF()
    program.startup(feed, 1)
    assert (program.rate, program.l2) == (rate, l2)
    assert program.task.decay == pytest.approx(l2 / len(feed))
    given = CRF(l2=3.0)
    given.startup(feed, 1)
    assert (given.rate, given.l2) == (rate, 3)
    for other in (CRF("adagrad"), CRF("ftrl")):
        other.startup(feed, 1)
        assert (other.rate, other.l2) == (None, l2)
    assert other.task.rule.l2 == pytest.approx(l2)
    plain = CRF()
    plain.startup(make_feed(69), 1)
    assert (plain.rate, plain.l2) == (None, 1)


def test_weights_that_do_not_fit_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hogwild.machine.memory", lambda: 100)
    with pytest.raises(ConfigError, match=r"9 features of 3 tags need 0\.0 GB, and this machine has 0\.0 GB; raise"):
        CRF().startup(make_feed(70), 1)


# -- pieces of sentences as samples of their own ---------------------------------------------------------------------

PLAIN: dict[str, Any] = {"rich_edges": False, "l2": 1.0}
FORM: dict[str, Any] = {"structure_regularization": 3, "structure_regularization_form": "samples"}


@pytest.mark.parametrize("pieces", [1, 2, 3, 50])
def test_sentences_are_cut_into_so_many(pieces: int) -> None:
    lengths = np.random.default_rng(pieces).integers(1, 12, 200)
    offsets = np.append(0, np.cumsum(lengths)).astype(np.int64)
    found = cut_pieces(offsets, pieces, seed=7)
    assert found.dtype == offsets.dtype
    assert set(offsets.tolist()) <= set(found.tolist())
    assert (np.diff(found) > 0).all()
    wanted = [min(pieces, length) for length in lengths.tolist()]
    inside = [int(((found >= a) & (found < b)).sum()) for a, b in pairwise(offsets)]
    assert inside == wanted
    assert len(found) - 1 == sum(wanted) == count_pieces(offsets, pieces)
    assert found.tolist() == cut_pieces(offsets, pieces, seed=7).tolist()


def test_all_ways_to_cut_are_equally_likely() -> None:
    offsets = np.arange(0, 5 * 6001, 5)
    found = cut_pieces(offsets, 3, seed=1)
    ways = Counter(tuple(found[3 * k : 3 * k + 3] - 5 * k) for k in range(6000))
    assert len(ways) == 6  # two of the four places between five tokens
    assert all(800 < count < 1200 for count in ways.values())


def test_training_on_mini_samples_is_training_on_sentences_that_are_cut() -> None:
    """To the last bit: an epoch has as many visits as pieces, and each is a sentence of its own."""
    feed = make_feed(61, lengths=(1, 2, 5, 9, 4, 7))
    pace: dict[str, Any] = {"epochs": 3, "seed": 5, "lr": 0.1}
    program = CRF(**PLAIN, **FORM)
    events = list(AsyncExecutor(mode="serial").run(program, feed, **pace))
    offsets = cut_pieces(feed.samples.offsets, 3, seed=5)
    pieces = replace(feed, samples=feed.samples._replace(offsets=offsets))
    assert program.visits(feed) == len(pieces) == 1 + 2 + 3 + 3 + 3 + 3
    assert events[-1].samples == 3 * len(pieces)
    assert any("15 mini-samples" in note for note in events[0].notes)
    plain = CRF(**PLAIN)
    others = list(AsyncExecutor(mode="serial").run(plain, pieces, **pace))
    for name, array in plain.arrays().items():
        assert array.tobytes() == program.arrays()[name].tobytes(), name
    losses = [[event.loss for event in each if event.kind == "epoch"] for each in (events, others)]
    assert losses[0] == losses[1]


@pytest.mark.parametrize("threads", [pytest.param(1, marks=pytest.mark.full), 3])
def test_every_piece_is_visited_once_an_epoch(threads: int) -> None:
    feed = make_feed(62, lengths=(1, 2, 5, 9, 4, 7))
    events = AsyncExecutor(threads, "hogwild", "all", epochs=2, lr=0.1, trace=True).run(CRF(**PLAIN, **FORM), feed)
    gradients = [sum(w["gradients"] for w in event.trace) for event in events if event.kind == "epoch"]
    assert gradients == [15, 15]


def test_a_form_of_nothing_is_refused() -> None:
    with pytest.raises(ConfigError, match="structure_regularization_form"):
        CRF(structure_regularization_form="samples")
