"""Text classifiers as programs: modes, sharings, prediction, one text at a time, saving, what they refuse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hogwild
from compiling import OFF, cases, compiled_in_full
from hogwild import TextClassifier, load_model, open_feed, save_model
from hogwild.config import FeedConfig
from hogwild.errors import ConfigError, InputError, ModelError
from hogwild.executor.run import AsyncExecutor
from hogwild.kernels.loop.order import shuffled
from hogwild.kernels.loop.schedule import make_schedule
from hogwild.programs.sparse.tables import make_table
from reference.text_classifier import TextTwin

LR = 0.5
GOOD = ["fine", "great", "warm", "clever", "bright"]
BAD = ["dull", "poor", "cold", "stupid", "grey"]
READ = FeedConfig(format="text", hash_bits=7, cache=False)


def write(path: Path, rows: int, seed: int = 0, labels: tuple[str, ...] = ("bad", "good")) -> Path:
    """`label<TAB>text` lines of words that tell the label, and of others."""
    random = np.random.default_rng(seed)
    words = dict(zip(labels, (BAD, GOOD, ["so", "la", "la", "meh"]), strict=False))
    lines = []
    for _ in range(rows):
        label = str(random.choice(labels))
        text = [*random.choice(words[label], 2), *random.choice(["the", "film", "was", "it's"], random.integers(0, 5))]
        lines.append(f"{label}\t{' '.join(random.permutation(text))}\n")
    path.write_text("".join(lines))
    return path


@pytest.fixture(scope="module")
def files(tmp_path_factory: Any) -> Path:
    place: Path = tmp_path_factory.mktemp("texts")
    write(place / "train.txt", 24 if OFF else 300)
    write(place / "test.txt", 20 if OFF else 100, seed=1)
    return place


@pytest.fixture(scope="module")
def feed(files: Path) -> Any:
    return open_feed([files / "train.txt"], READ)


def run(program: Any, feed: Any, mode: str = "serial", threads: int = 1, epochs: int = 2, **options: Any) -> list[Any]:
    return list(AsyncExecutor(threads=threads, mode=mode, **{"lr": LR, **options}).run(program, feed, epochs=epochs))


def bits(program: Any) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in program.arrays(state=True).items()}


def twin_of(program: Any, feed: Any) -> TextTwin:
    """A twin with the weights that a program begins with."""
    fresh = TextClassifier(**{**program.options(), "features": 0})
    fresh.startup(feed, 1)
    first = fresh.arrays()
    return TextTwin(program.task, first["embedding"][feed.original], first["output"], first["bias"])


def equal(program: Any, twin: TextTwin, feed: Any, tolerance: float = 1e-3) -> None:
    found = program.arrays()
    np.testing.assert_allclose(found["embedding"][feed.original], twin.embedding(), rtol=tolerance, atol=tolerance)
    layer = np.column_stack([found["output"], found["bias"]])
    np.testing.assert_allclose(layer, twin.outputs(), rtol=tolerance, atol=tolerance)
    assert np.abs(twin.embedding()).max() > 0.005


# -- training -------------------------------------------------------------------------------------------------------

RULES = [{}, {"optimizer": "adagrad", "l2": 0.01}, {"optimizer": "adam", "counts": True}, {"class_weight": {"bad": 2}}]


@pytest.mark.parametrize("options", cases(RULES, RULES[:1]))
def test_serial_equals_the_twin_and_itself(feed: Any, options: dict[str, Any]) -> None:
    program, again = TextClassifier(4, **options), TextClassifier(4, **options)
    events = run(program, feed)
    run(again, feed)
    assert bits(program) == bits(again)
    twin, samples = twin_of(program, feed), program.samples(feed)
    order = [int(k) for epoch in range(2) for k in shuffled(len(feed), 1, epoch).blocks]
    loss = twin.run(samples, make_schedule("linear", LR, len(feed), 2), order[: 2 * len(feed)])
    losses = [event.loss for event in events if event.kind == "epoch"]
    assert sum(losses) * len(feed) == pytest.approx(loss, rel=1e-3)
    equal(program, twin, feed, 5e-3)
    assert program.evaluate(feed)["loss"] < losses[0]


@pytest.mark.parametrize("sharing", cases(["all", "hot", "replica"], ["all", "hot"]))
def test_one_worker_is_serial_whatever_the_sharing(feed: Any, sharing: str) -> None:
    serial, free = TextClassifier(), TextClassifier()
    run(serial, feed)
    run(free, feed, "hogwild", 1, sharing=sharing)
    assert bits(serial) == bits(free)


@pytest.mark.parametrize("sharing", ["all", "hot", "replica"])
def test_two_workers_learn_as_well_as_one(feed: Any, files: Path, sharing: str) -> None:
    serial, both = TextClassifier(), TextClassifier()
    run(serial, feed, epochs=3, lr=3.0)
    run(both, feed, "hogwild", 2, 3, lr=3.0, sharing=sharing)
    valid = open_feed([files / "test.txt"], READ, schema=feed.schema)
    assert both.evaluate(valid)["loss"] == pytest.approx(serial.evaluate(valid)["loss"], abs=0.1)
    assert OFF or both.evaluate(valid, threads=2)["accuracy"] > 0.95


@compiled_in_full
@pytest.mark.parametrize(("workers", "batch"), [(1, 0), (2, 3), (3, 100)])
def test_minibatches_equal_the_twin(feed: Any, workers: int, batch: int) -> None:
    program = TextClassifier(4, row_decay=0.1)
    run(program, feed, "minibatch", workers, 1, batch=batch)
    twin = twin_of(program, feed)
    order = [int(k) for k in shuffled(len(feed), 1, 0).blocks]
    size = min(batch or workers, len(feed))
    twin.run(program.samples(feed), make_schedule("linear", LR, len(feed), 1), order[: len(feed)], size)
    equal(program, twin, feed, 5e-3)


@compiled_in_full
@pytest.mark.parametrize("mode", ["locked", "round-robin"])
def test_modes_that_wait(feed: Any, mode: str) -> None:
    serial, one, crowd = TextClassifier(), TextClassifier(), TextClassifier()
    run(serial, feed)
    run(one, feed, mode, 1)
    run(crowd, feed, mode, 2)
    for name, array in serial.arrays().items():
        np.testing.assert_allclose(one.arrays()[name], array, atol=1e-5)
    assert crowd.evaluate(feed)["loss"] == pytest.approx(serial.evaluate(feed)["loss"], rel=0.05)


@compiled_in_full
def test_many_classes_and_more_classes_than_numbers(tmp_path: Path) -> None:
    feed = open_feed([write(tmp_path / "three.txt", 40, labels=("bad", "good", "meh"))], READ)
    for dim in (1, 8):
        program = TextClassifier(dim)
        run(program, feed, epochs=8, lr=2.0)
        found = program.evaluate(feed)
        assert program.classes == ("bad", "good", "meh")
        assert program.predict_proba(feed).shape == (40, 3)
        np.testing.assert_allclose(program.predict_proba(feed).sum(axis=1), 1.0)
        assert found["loss"] == pytest.approx(found["logloss"])
    assert found["accuracy"] > 0.9


# -- prediction -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trained(feed: Any) -> Any:
    program = TextClassifier(3)
    run(program, feed, epochs=3, lr=3.0)
    return program


@pytest.mark.parametrize("counts", cases([False, True], [False]))
@pytest.mark.parametrize("classes", cases([None, ("bad", "good", *(f"class {k}" for k in range(20)))], [None]))
def test_one_text_is_scored_as_a_feed_is(feed: Any, files: Path, counts: bool, classes: Any) -> None:
    program = TextClassifier(3, counts=counts, classes=classes)
    run(program, feed, epochs=1 if OFF else 2)
    valid = open_feed([files / "test.txt"], READ, schema=feed.schema)
    texts = [line.split("\t")[1] for line in (files / "test.txt").read_text().splitlines()]
    assert [program.predict_one(text) for text in texts] == program.predict(valid).tolist()
    found = [list(program.predict_proba_one(text).values()) for text in texts]
    np.testing.assert_allclose(found, program.predict_proba(valid), rtol=1e-5, atol=1e-7)
    assert list(program.predict_proba_one(texts[0])) == list(program.classes or ())


def test_texts_of_any_length_and_script(trained: Any) -> None:
    empty = trained.predict_proba_one("")
    assert trained.predict_proba_one("?! …") == empty
    short, long = trained.predict_proba_one("fine film"), trained.predict_proba_one("fine film " * 3000)
    assert short["good"] > 0.5
    # n-grams of the text that repeats itself: "film fine" besides those of the short one
    assert long["good"] > 0.5
    assert trained.predict_proba_one("fine film") == short  # room made for the long one holds nothing of it
    assert trained.predict_one("FINE, film") == trained.predict_one("fine film")
    with pytest.raises(InputError, match="not Unicode at character 3"):
        trained.predict_one("so\ud800")
    with pytest.raises(InputError, match="one text is asked for, not list"):
        trained.predict_one(["fine"])


def test_n_grams_that_training_never_saw_say_nothing(trained: Any) -> None:
    table = trained.arrays()["embedding"]
    assert 0 < np.count_nonzero(table.any(axis=1)) < len(table)


def test_prediction_follows_further_training(feed: Any) -> None:
    program = TextClassifier(3)
    run(program, feed, epochs=1)
    before = program.predict_proba_one("fine great")["good"]
    run(program, feed, epochs=1)
    assert 1 - program.predict_proba_one("fine great")["good"] < 0.9 * (1 - before)


# -- saving ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", cases(RULES, RULES[:1]))
def test_a_saved_model_predicts_the_same(feed: Any, files: Path, tmp_path: Path, options: dict[str, Any]) -> None:
    program = TextClassifier(3, **options)
    run(program, feed)
    save_model(tmp_path / "model", program, feed_schema=feed.schema, feed_config=READ, labels=feed.labels)
    model = load_model(tmp_path / "model")
    assert json.loads(json.dumps(model.program.options())) == model.program.options() == program.options()
    valid = open_feed([files / "test.txt"], model.feed_config, schema=model.schema)
    np.testing.assert_allclose(model.program.scores(valid), program.scores(valid), rtol=1e-5, atol=1e-6)
    assert model.program.predict_one("fine film") == program.predict_one("fine film")
    assert program.arrays()["embedding"].shape == (128, 3)


@pytest.mark.parametrize("options", cases(RULES, RULES[:1]))
def test_state_makes_a_run_go_on_as_if_it_had_not_stopped(feed: Any, options: dict[str, Any]) -> None:
    whole, half = TextClassifier(3, **options), TextClassifier(3, **options)
    run(whole, feed, epochs=2)
    executor = AsyncExecutor(mode="serial", lr=LR)
    for event in executor.run(half, feed, epochs=2):
        if event.kind == "epoch" and event.epoch == 1:
            saved = {name: array.copy() for name, array in half.arrays(state=True).items()}
            state = executor.state()
            executor.stop()
    resumed = TextClassifier(**half.options())
    resumed.restore(saved)
    list(AsyncExecutor(mode="serial", lr=LR).run(resumed, feed, epochs=2, start=state))
    assert bits(resumed) == bits(whole)


def test_arrays_that_do_not_fit(trained: Any) -> None:
    arrays, options = trained.arrays(), trained.options()
    for wrong, message in (
        ({"embedding": arrays["embedding"][:5]}, "options say 128 features, but embedding has 5"),
        ({"output": arrays["output"][:, :2]}, r"output is float32 \(1, 2\), not \(1, 3\) finite float32"),
        ({"bias": arrays["bias"].astype(np.float64)}, "bias is float64"),
        ({"other": arrays["bias"]}, "no array 'other'"),
        ({"embedding": arrays["embedding"] * np.float32(np.nan)}, "finite"),
    ):
        with pytest.raises(ModelError, match=message):
            TextClassifier(**options).restore({**arrays, **wrong})
    with pytest.raises(ModelError, match="has the array bias"):
        TextClassifier(**options).restore({name: arrays[name] for name in ("embedding", "output")})


def test_rates_and_outputs_go_by_the_texts(feed: Any) -> None:
    program = TextClassifier(4, pooling="mean")
    program.startup(feed, 1)
    length = np.linalg.norm(program.arrays()["output"])
    each = feed.nonzeros / len(feed)
    assert length**2 == pytest.approx(each)
    assert program.task.decay == pytest.approx(min(0.1, 2 / each))
    program = TextClassifier(4)
    program.startup(feed, 1)
    assert np.linalg.norm(program.arrays()["output"]) ** 2 == pytest.approx(32)
    assert program.rate is None
    assert program.rate_of_run(0.4, 0.25) == pytest.approx(0.2)
    assert TextClassifier(optimizer="adagrad").rate_of_run(0.4, 0.25) == 0.4


def test_models_of_before_there_was_a_choice_have_the_mean() -> None:
    options = {name: value for name, value in TextClassifier(4).options().items() if name != "pooling"}
    assert TextClassifier(**TextClassifier.earlier(options)).unit_of_pooling == 0
    assert TextClassifier(4).unit_of_pooling == 32


def test_noise_is_not_learnt_by_heart(tmp_path: Any) -> None:
    """A word tells the class in seven of ten texts, among words that say nothing: what is said of it is about that."""
    draw = np.random.default_rng(3)
    noise = draw.integers(0, 500, (600, 6))
    lines = []
    for k, words in enumerate(noise):
        good = (k % 2 == 1) == (draw.random() < 0.7)
        lines.append(f"{k % 2}\t{'good' if good else 'bad'} {' '.join(f'w{word}' for word in words)}\n")
    (tmp_path / "texts.txt").write_text("".join(lines))
    feed = hogwild.open_feed([str(tmp_path / "texts.txt")], hogwild.FeedConfig(format="text", cache=False))
    program = TextClassifier()
    list(AsyncExecutor(threads=1, mode="serial").run(program, feed))
    chance = max(program.predict_proba_one("good").values())
    assert 0.5 < chance < 0.95
    assert program.predict_one("good") == 1


def test_a_model_grows_with_its_feeds(feed: Any) -> None:
    from scipy.sparse import csr_array

    small = hogwild.feed_of(csr_array(np.eye(4, 3, dtype=np.float32)), [0, 1, 0, 1])
    large = hogwild.feed_of(csr_array(np.eye(4, 6, dtype=np.float32)), [0, 1, 0, 1])
    program = TextClassifier(2)
    run(program, small, epochs=1)
    before = program.arrays()["embedding"].copy()
    program.scores(large)
    assert program.ignored == 1
    program.startup(large, 1)
    after = program.arrays()["embedding"]
    assert after.shape == (6, 2)
    np.testing.assert_array_equal(after[:3], before)
    assert not after[3:].any()
    with pytest.raises(ConfigError, match="not trained on text alone"):
        program.predict_one("fine")


# -- what is refused ------------------------------------------------------------------------------------------------


def test_refusals(feed: Any) -> None:
    from scipy.sparse import csr_array

    with pytest.raises(InputError, match="takes text or sparse rows"):
        TextClassifier().startup(hogwild.feed_of(np.eye(2), [0, 1]), 1)
    valued = hogwild.feed_of(csr_array(np.array([[2.0, 0], [0, 3.0]])), [0, 1])
    with pytest.raises(InputError, match="counts=True"):
        TextClassifier().startup(valued, 1)
    TextClassifier(counts=True).startup(valued, 1)
    with pytest.raises(ConfigError, match="dim is 0"):
        TextClassifier(0)
    with pytest.raises(ConfigError, match="row_decay is -1"):
        TextClassifier(row_decay=-1)
    with pytest.raises(ConfigError, match="give that of a feed's schema"):
        TextClassifier(hashing={"bits": 99})
    with pytest.raises(ConfigError, match="no weights yet"):
        TextClassifier(classes=(0, 1)).predict(feed)


def test_a_table_larger_than_memory_is_refused_with_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match=r"10,000,000,000 rows of 16 cells needs 640\.0 GB, and .*; use less"):
        make_table(10**10, 16, "use less.")
    monkeypatch.setattr("hogwild.machine.memory", lambda: 100)
    with pytest.raises(ConfigError, match="needs"):
        make_table(2, 16, "use less.")
    assert make_table(1, 16, "").tolist() == [0.0] * 16
