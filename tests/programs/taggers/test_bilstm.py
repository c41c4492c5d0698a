"""Bi-LSTM taggers through the executor: what they learn, modes, runs that go on, saving, one sentence, wrong input."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hogwild
from compiling import OFF, compiled_in_full
from hogwild.errors import ConfigError, InputError, ModelError
from hogwild.executor.run import AsyncExecutor
from hogwild.kernels.nn.letters import KNOWN, LONGEST
from hogwild.kernels.simd.pairs import has_pairs
from hogwild.programs.taggers.bilstm import BiLSTM
from hogwild.programs.taggers.bilstm_reading import Reader, visits_of
from problems.tagged import TEMPLATES, made_feed

pytestmark = pytest.mark.skipif(OFF, reason="its kernels are compared with a twin elsewhere")
SMALL: dict[str, Any] = {"hidden": 16, "word_dim": 12, "feature_dim": 6, "batch_size": 4}


def run(program: BiLSTM, feed: Any, mode: str = "serial", threads: int = 1, epochs: int = 2, **options: Any) -> Any:
    """All events of a run."""
    executor = AsyncExecutor(threads=threads, mode=mode, **options)
    return list(executor.run(program, feed, epochs=epochs))


def rows_of(feed: Any, count: int) -> list[list[tuple[str, str]]]:
    """The words and parts of speech of the first sentences."""
    words, parts = (column.strings() for column in feed.text.columns)
    ends = feed.samples.offsets[: count + 1].tolist()
    return [list(zip(words[a:b], parts[a:b], strict=True)) for a, b in pairwise(ends)]


def bits(program: BiLSTM) -> dict[str, bytes]:
    """All that a run has changed, to the last bit."""
    return {name: array.tobytes() for name, array in program.arrays(state=True).items()}


@pytest.fixture(scope="module")
def feed() -> Any:
    return made_feed(200)


@pytest.fixture(scope="module")
def trained(feed: Any) -> BiLSTM:
    program = BiLSTM(**SMALL)
    run(program, feed, epochs=12, lr=0.01)
    return program


def test_it_learns_and_knows_new_sentences(trained: BiLSTM, feed: Any) -> None:
    assert trained.evaluate(feed)["f1"] > 0.95
    other = made_feed(100, part=1, like=feed)
    crf = hogwild.CRF()
    run(crf, feed, epochs=8)  # type: ignore[arg-type]
    assert trained.evaluate(other)["f1"] > crf.evaluate(other)["f1"] - 0.05


def test_serial_runs_repeat_to_the_last_bit(feed: Any) -> None:
    options = {**SMALL, "dropout": 0.2, "word_dropout": 0.1}
    one, other, third = BiLSTM(**options), BiLSTM(**options), BiLSTM(**options)
    run(one, feed)
    run(other, feed)
    run(third, feed, seed=2)
    assert bits(one) == bits(other)
    assert bits(one) != bits(third)


@pytest.mark.full
@pytest.mark.skipif(not has_pairs(), reason="this CPU multiplies no pairs")
def test_products_of_bfloat16_learn_repeat_and_go_on(trained: BiLSTM, feed: Any, tmp_path: Path) -> None:
    options = {**SMALL, "products": "bfloat16"}
    one, other, exact = BiLSTM(**options), BiLSTM(**options), BiLSTM(**SMALL)
    ends = [run(program, feed, epochs=4, lr=0.01)[-1] for program in (one, other, exact)]
    assert bits(one) == bits(other)
    assert ends[0].loss != ends[2].loss
    assert ends[0].loss == pytest.approx(ends[2].loss, rel=0.05)
    assert one.evaluate(feed)["f1"] > 0.8
    hogwild.save_model(tmp_path / "model", one)
    again = hogwild.load_model(tmp_path / "model").program
    assert again.config.products == "bfloat16"
    plain = BiLSTM(**{**one.options(), "products": "float32"})
    plain.restore(one.arrays())
    np.testing.assert_array_equal(again.scores(feed), plain.scores(feed))  # a model at rest reads in float32
    for mode, batch in (("hogwild", 1), ("hogwild", 4)):
        many = BiLSTM(**{**options, "batch_size": batch})
        events = run(many, feed, mode, 2, epochs=4, lr=0.01, sharing="all")
        assert events[-1].samples == 4 * len(feed)
        assert many.evaluate(feed)["f1"] > 0.8


def test_products_that_the_cpu_has_not_are_refused(feed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hogwild.programs.taggers.bilstm.has_pairs", lambda: False)
    program = BiLSTM(**SMALL, products="bfloat16")
    with pytest.raises(ConfigError, match="--products bfloat16 needs a CPU with avx512_bf16"):
        run(program, feed)


@pytest.mark.parametrize("sharing", ["all", "hot", "replica"])
def test_one_worker_is_serial(feed: Any, sharing: str) -> None:
    serial, free = BiLSTM(**SMALL), BiLSTM(**SMALL)
    run(serial, feed)
    run(free, feed, "hogwild", 1, sharing=sharing)
    assert bits(serial) == bits(free)


@pytest.mark.parametrize("sharing", ["all", "hot", "replica"])
def test_many_workers_visit_all_and_learn(feed: Any, trained: BiLSTM, sharing: str) -> None:
    """Of made text the loss falls to a fiftieth; with three workers, whoever is first, surely to a third."""
    program = BiLSTM(**SMALL)
    events = run(program, feed, "hogwild", 3, epochs=12, lr=0.01, sharing=sharing)
    epochs = [event for event in events if event.kind == "epoch"]
    assert events[-1].samples == 12 * len(feed)
    assert events[-1].units == 12 * feed.tokens
    assert epochs[-1].loss < epochs[0].loss / 3


ALONE: dict[str, Any] = {**SMALL, "batch_size": 1}


@pytest.mark.full
def test_sentences_together_repeat_with_one_worker(feed: Any) -> None:
    one, other, longer = (BiLSTM(**{**ALONE, "dropout": 0.2}) for _ in range(3))
    run(one, feed, "hogwild", 1)
    events = run(other, feed, "hogwild", 1)
    run(longer, feed, "hogwild", 1, epochs=3)
    assert bits(one) == bits(other)
    assert bits(one) != bits(longer)
    assert events[-1].samples == 2 * len(feed)
    assert other.arrays(state=True)["steps"] == 2 * len(feed)  # a step for each


@pytest.mark.full
def test_sentences_together_are_asynchrony(feed: Any) -> None:
    """One after the other is what serial does; four at once learn nearly the same."""
    serial, alone, together = (BiLSTM(**{**ALONE, "together": count}) for count in (0, 1, 4))
    found = [run(serial, feed, "serial", epochs=4), run(alone, feed, "hogwild", epochs=4)]
    found.append(run(together, feed, "hogwild", epochs=4))
    assert bits(serial) == bits(alone)
    losses = [[event.loss for event in events if event.kind == "epoch"] for events in found]
    assert losses[0] == losses[1]
    assert losses[2] != losses[0]
    assert losses[2][-1] < losses[0][0] / 2
    assert losses[2][-1] < 1.5 * losses[0][-1]


@pytest.mark.full
def test_many_workers_read_sentences_together(feed: Any) -> None:
    """As above: whoever is first, the loss falls to a third; three workers with four each are twelve."""
    program = BiLSTM(**ALONE)
    events = run(program, feed, "hogwild", 3, epochs=8, sharing="all")
    epochs = [event for event in events if event.kind == "epoch"]
    assert events[-1].samples == 8 * len(feed)
    assert events[-1].units == 8 * feed.tokens
    assert epochs[-1].loss < epochs[0].loss / 3


@pytest.mark.full
def test_a_long_sentence_among_those_read_together(tmp_path: Path) -> None:
    """It is read alone: what is read together has room for no more."""
    lengths = [3, 9000, 4, 1, 2, 5, 1]
    sentences = ["".join(f"w{k % 7} NN {'BI'[k % 2]}-X\n" for k in range(length)) for length in lengths]
    (tmp_path / "text").write_text("\n".join(sentences))
    feed = hogwild.open_tagging(tmp_path / "text", hogwild.TaggingConfig(features="words-pos"))
    program = BiLSTM(**ALONE)
    events = run(program, feed, "hogwild", 2, sharing="all")
    assert events[-1].samples == 2 * len(lengths)
    assert program.task.pace.most == 9000
    assert all(np.isfinite(array).all() for array in program.arrays().values() if array.dtype == np.float32)


@compiled_in_full
def test_round_robin_repeats_and_minibatches_sum(feed: Any) -> None:
    one, other = BiLSTM(**SMALL), BiLSTM(**SMALL)
    run(one, feed, "round-robin", 2)
    run(other, feed, "round-robin", 2)
    assert bits(one) == bits(other)
    for mode in ("locked", "minibatch"):
        program = BiLSTM(**SMALL)
        epochs = [event for event in run(program, feed, mode, 2, epochs=6, lr=0.01) if event.kind == "epoch"]
        assert epochs[-1].loss < epochs[0].loss


def test_a_run_goes_on_to_the_last_bit(feed: Any, tmp_path: Path) -> None:
    whole = BiLSTM(**{**SMALL, "dropout": 0.2})
    run(whole, feed, epochs=3)
    part = BiLSTM(**{**SMALL, "dropout": 0.2})
    executor = AsyncExecutor(mode="serial")
    for event in executor.run(part, feed, epochs=3):
        if event.kind == "epoch" and event.epoch == 1:
            executor.stop()
    again = BiLSTM(**part.options())
    again.restore(part.arrays(state=True))
    list(AsyncExecutor(mode="serial").run(again, feed, epochs=3, start=executor.state()))
    assert bits(whole) == bits(again)


def test_a_saved_model_tags_alike_in_a_fresh_process(trained: BiLSTM, feed: Any, tmp_path: Path) -> None:
    hogwild.save_model(tmp_path / "model", trained)
    rows = rows_of(feed, 3)
    code = (
        "import json, sys, hogwild; p = hogwild.load_model(sys.argv[1]).program; "
        "rows = [[tuple(row) for row in s] for s in json.loads(sys.argv[2])]; "
        "print(json.dumps([p.predict(rows), [p.tag(s) for s in rows], p.marginals(rows).tolist()]))"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, str(tmp_path / "model"), json.dumps(rows)], capture_output=True,
        text=True, check=True,
    )  # fmt: skip
    many, one, chances = json.loads(done.stdout)
    assert many == one == trained.predict(rows)
    np.testing.assert_array_equal(np.array(chances, np.float32), trained.marginals(rows))


def test_chances_paths_and_rules(trained: BiLSTM, feed: Any) -> None:
    chances = trained.marginals(feed)
    np.testing.assert_allclose(chances.sum(axis=1), 1, atol=1e-5)
    assert trained.evaluate(feed, threads=3) == trained.evaluate(feed, threads=1)
    best, second = trained.nbest(feed, 2)[0]
    assert best[0] >= second[0] > 0
    assert best[1] == trained.predict(feed)[0]
    (sentence,) = rows_of(feed, 1)
    assert trained.tag(sentence, constrain=True) == trained.predict([sentence], constrain=True)[0]
    assert trained.tag([]) == []


@pytest.mark.full
def test_every_part_learns_and_is_saved(feed: Any, tmp_path: Path) -> None:
    parts = {"output_layer": "crf", "letters": "convolution", "letter_filters": 5, "layers": 2}
    program = BiLSTM(**{**SMALL, **parts, "clip": 5.0, "l2": 1e-6, "dropout": 0.1})
    epochs = [event for event in run(program, feed, epochs=6, lr=0.01) if event.kind == "epoch"]
    assert epochs[-1].loss < epochs[0].loss / 2
    hogwild.save_model(tmp_path / "model", program)
    again = hogwild.load_model(tmp_path / "model").program
    np.testing.assert_array_equal(program.predict_codes(feed), again.predict_codes(feed))
    assert set(program.samples(feed).letters.tolist()) == set(range(KNOWN, KNOWN + len(program.alphabet)))
    sentence = [*rows_of(feed, 1)[0], ("ä" * 50, "NN")]  # longer than what is looked at, and unknown
    assert program.tag(sentence) == program.predict([sentence])[0] == again.tag(sentence)


@pytest.mark.full
def test_a_short_gradient_is_left_and_a_long_one_cut(feed: Any) -> None:
    from hogwild.arrays import make_scratch
    from hogwild.kernels.loop.task import total_loss

    sizes = []
    for clip in (0.0, 1e6, 0.01):
        program = BiLSTM(**SMALL, clip=clip)
        program.startup(feed, 1)
        scratch = make_scratch(program.room(feed), np.uint64(1))
        total_loss(program.task, program.samples(feed), program.weights, scratch, 0, 1)
        lines = scratch.grads[: scratch.count[0]]
        sizes.append(float(np.sqrt((scratch.dense.astype(float) ** 2).sum() + (lines.astype(float) ** 2).sum())))
    assert sizes[0] == sizes[1] > 0.01
    assert sizes[2] == pytest.approx(0.01, rel=1e-4)


def test_sentences_of_a_visit_are_of_similar_length_and_each_is_there_once() -> None:
    random = np.random.default_rng(1)
    lengths = random.integers(1, 60, 500)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    for batch in (1, 4, 7, 1000):
        visits = visits_of(offsets, batch)
        assert visits.count.max() <= batch
        covered = np.concatenate([np.arange(a, a + n) for a, n in zip(visits.first, visits.count, strict=True)])
        assert sorted(visits.order[covered].tolist()) == list(range(500))
        tokens, sentences, longest = visits.largest(offsets)
        assert (sentences, longest) == (visits.count.max(), lengths.max())
        ends = zip(visits.first, visits.first + visits.count, strict=True)
        assert tokens >= max(lengths[visits.order[first:end]].sum() for first, end in ends)
    few = visits_of(np.array([0, 1, 9000]), 8)
    assert few.count.tolist() == [1, 1]  # together they would be too long


def test_words_are_spelled() -> None:
    reader = Reader((), ("w[0]",), "abc")
    starts, letters = reader.spelled(["ab", "", "xc", "a" * 40 + "b"])
    assert starts.tolist() == [0, 2, 3, 5, 5 + LONGEST]
    assert letters[:5].tolist() == [2, 3, 1, 1, 4]
    assert letters[-1] == 3


def test_a_very_long_sentence_is_trained_and_tagged(tmp_path: Path) -> None:
    feed = made_feed(20)
    path = tmp_path / "long.txt"
    path.write_text("".join(f"word{k % 50} NN {'B-NP' if k % 2 else 'O'}\n" for k in range(20_000)) + "\na NN O\n")
    (tmp_path / "templates").write_text(TEMPLATES)
    feed = hogwild.open_tagging(path, hogwild.TaggingConfig(features=str(tmp_path / "templates"), cache=False))
    program = BiLSTM(**{**SMALL, "batch_size": 8})
    assert run(program, feed, epochs=1)[-1].samples == 2
    assert len(program.predict(feed)[0]) == 20_000


def test_vectors_to_start_from(feed: Any, tmp_path: Path) -> None:
    words = [name.partition("=")[2] for name in feed.names if name.startswith("lower(w)[0]=")][:5]
    matrix = np.random.default_rng(0).normal(size=(6, 12)).astype(np.float32)
    hogwild.Vectors([*words, "zzz"], matrix).save(tmp_path / "v.vec")
    program = BiLSTM(**SMALL, start_vectors=str(tmp_path / "v.vec"))
    program.startup(feed, 1)
    known = program.reader.word_names()
    assert len(program.notes) == 1
    assert f"vectors for 5 of {len(known)} words" in program.notes[0]
    np.testing.assert_allclose(program.arrays()["words"][1 + known.index(words[0])], matrix[0], rtol=1e-5)
    assert program.options()["start_vectors"] == ""
    hogwild.Vectors(["zzz"], matrix[:1]).save(tmp_path / "other.vec")
    with pytest.raises(InputError, match="no word in common"):
        BiLSTM(**SMALL, start_vectors=str(tmp_path / "other.vec")).startup(feed, 1)
    with pytest.raises(ConfigError, match=r"have 12 numbers, embeddings 7; give (--word-dim 12|`word_dim=12`)"):
        BiLSTM(**{**SMALL, "word_dim": 7}, start_vectors=str(tmp_path / "v.vec")).startup(feed, 1)


def test_words_that_only_the_vectors_have_are_known(feed: Any, tmp_path: Path) -> None:
    words = [name.partition("=")[2] for name in feed.names if name.startswith("lower(w)[0]=")][:5]
    matrix = np.random.default_rng(0).normal(size=(7, 12)).astype(np.float32)
    hogwild.Vectors([*words, "zzz", "yyy"], matrix).save(tmp_path / "v.vec")
    assert BiLSTM(**SMALL).with_words(feed) is feed
    program = BiLSTM(**SMALL, start_vectors=str(tmp_path / "v.vec"))
    wide = program.with_words(feed)
    assert wide.names == (*feed.names, "lower(w)[0]=zzz", "lower(w)[0]=yyy")
    assert program.with_words(wide).names == wide.names
    run(program, wide, epochs=1)
    assert program.notes[0].endswith(f"for 5 of {len(program.reader.word_names()) - 2} words (1 %), and for 2 others.")
    place = 1 + program.reader.word_names().index("zzz")
    np.testing.assert_array_equal(program.arrays()["words"][place], matrix[5])  # no visit has come by
    here = program.feed_of([[("Zzz", rows_of(feed, 1)[0][0][1])]])
    assert program.reader.rows(here.samples.ids, here.samples.starts)[0, 0] == place
    hogwild.Vectors(["zzz"], matrix[:1]).save(tmp_path / "other.vec")
    other = BiLSTM(**SMALL, start_vectors=str(tmp_path / "other.vec"))
    with pytest.raises(InputError, match="no word in common"):
        other.startup(other.with_words(feed), 1)


def test_what_is_wrong_is_said(trained: BiLSTM, feed: Any) -> None:
    with pytest.raises(ConfigError, match="together is 4; it is for one sentence a step"):
        BiLSTM(together=4)
    with pytest.raises(ConfigError, match="together is 4; a gradient must be known before it is clipped"):
        BiLSTM(together=4, batch_size=1, clip=1.0)
    with pytest.raises(ConfigError, match="together is 4; it is for mode hogwild, not serial"):
        run(BiLSTM(**{**SMALL, "batch_size": 1, "together": 4}), made_feed(12))
    with pytest.raises(ConfigError, match="hidden is 0; it must lie between 1 and 4096"):
        BiLSTM(hidden=0)
    made = hogwild.tagging_of([[["a"], ["b"]]], [["X", "Y"]])
    with pytest.raises(InputError, match="needs text with templates"):
        BiLSTM().startup(made, 1)
    with pytest.raises(InputError, match="none of the 6 features"):
        trained.tag([("qqq", "??"), ("xxx", "!!")])
    with pytest.raises(ConfigError, match="other feature ids"):
        trained.decoder(made_feed(10, part=3))
    options = {**trained.options(), "recurrence": "diagonal"}
    with pytest.raises(ModelError, match="lstm_1_forward_hidden"):
        BiLSTM(**options).restore(trained.arrays())
    arrays = trained.arrays()
    arrays["words"] = arrays["words"][:-1]
    with pytest.raises(ModelError, match="words"):
        BiLSTM(**trained.options()).restore(arrays)
    huge = BiLSTM(hidden=4096, word_dim=4096, layers=8, batch_size=4096)
    assert "not trained" in repr(huge)


def test_a_batch_larger_than_the_data(feed: Any) -> None:
    program = BiLSTM(**{**SMALL, "batch_size": 4096})
    assert run(program, feed, epochs=2)[-1].samples == 2 * len(feed)


@pytest.mark.full
def test_a_trace_counts_every_gradient_once(feed: Any) -> None:
    program = BiLSTM(**{**SMALL, "batch_size": 1, "dropout": 0.2})
    events = run(program, feed, "hogwild", 2, epochs=1, sharing="all", trace=True)
    epoch = next(event for event in events if event.kind == "epoch")
    assert sum(worker["gradients"] for worker in epoch.trace) == len(feed)
    assert sum(worker["looked_at"] for worker in epoch.trace) >= len(feed) // 64
