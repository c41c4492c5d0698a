"""Programs as modules and as ONNX graphs: the same scores, by onnxruntime."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("onnxscript")
runtime = pytest.importorskip("onnxruntime")

from scipy.sparse import csr_array, random_array, vstack  # noqa: E402

import hogwild  # noqa: E402
from hogwild.arrays import ValuedSlotRows  # noqa: E402
from hogwild.errors import ConfigError  # noqa: E402
from hogwild.feeds.sparse.feed import Feed  # noqa: E402
from hogwild.pytorch import module_of  # noqa: E402
from hogwild.pytorch.onnx import onnx_bytes  # noqa: E402
from problems.tagged import made_feed  # noqa: E402

FEATURES = 30


def _rows(classes: int) -> Feed:
    random = np.random.default_rng(1)
    matrix = random_array((25, FEATURES), density=0.2, random_state=random, format="csr").astype(np.float32)
    matrix = vstack([matrix[:10], csr_array((1, FEATURES), dtype=np.float32), matrix[11:]], format="csr")  # one empty
    return hogwild.feed_of(matrix, np.arange(25) % classes)


def _slots() -> Feed:
    random = np.random.default_rng(2)
    counts = random.integers(0, 4, (25, 3))
    total, owners = int(counts.sum()), np.concatenate([np.repeat(np.arange(3), line) for line in counts])
    samples = ValuedSlotRows(
        np.concatenate([[0], np.cumsum(counts.sum(1))]), random.integers(0, FEATURES, total).astype(np.int32),
        owners.astype(np.uint16), random.standard_normal((25, 2)).astype(np.float32),
        (np.arange(25) % 2).astype(np.float32), np.ones(25, np.float32),
        random.uniform(0.5, 2, total).astype(np.float32),
    )  # fmt: skip
    return Feed(samples, FEATURES, schema={"slots": ["a", "b", "c"], "dense": ["x", "y"]}).check()


def _inputs(program: Any, feed: Feed) -> dict[str, Any]:
    """Rows as the program sees them, by the features' own numbers."""
    if hasattr(program, "_flat"):
        feed = program._flat.of(feed)
    samples: Any = feed.samples
    ids = samples.ids if feed.original is None else feed.original[samples.ids]
    found = {"ids": ids.astype(np.int64), "offsets": samples.offsets.astype(np.int64)}
    found["values"] = samples.values if "values" in samples._fields else np.ones(len(ids), np.float32)
    if "slots" in samples._fields:
        found["slots"] = samples.slots.astype(np.int64)
    if isinstance(program, hogwild.SparseMLP) and samples.dense.shape[1]:
        found["dense"] = samples.dense
    return found


CASES = {
    "linear": (hogwild.Linear, lambda: _rows(2)),
    "linear of classes": (hogwild.Linear, lambda: _rows(3)),
    "linear without a bias": (lambda: hogwild.Linear(bias=False), _slots),
    "text": (lambda: hogwild.TextClassifier(dim=16, counts=True), lambda: _rows(3)),
    "fm": (lambda: hogwild.FactorizationMachine(dim=4, init_scale=0.3), lambda: _rows(2)),
    "field-aware": (lambda: hogwild.FactorizationMachine(dim=4, init_scale=0.3, field_aware=True), _slots),
    "mlp": (lambda: hogwild.SparseMLP(dim=4, hidden=(6,), wide=True, combiner="mean"), _slots),
    "linear of counts": (lambda: hogwild.Linear("poisson"), lambda: _rows(3)),
    "fm of counts": (lambda: hogwild.FactorizationMachine(loss="poisson", dim=4), lambda: _rows(3)),
    "mlp of counts": (lambda: hogwild.SparseMLP(loss="poisson", dim=4, hidden=(6,), wide=True), _slots),
}


def _expected(program: Any, feed: Feed) -> Any:
    """Scores; of counts their means."""
    return program.predict(feed) if program.loss == "poisson" else program.scores(feed)


def _trained(name: str) -> tuple[Any, Feed]:
    make, data = CASES[name]
    program, feed = make(), data()
    program.startup(feed, seed=3)
    for array in program.weights:
        array[:] += np.random.default_rng(4).normal(scale=0.2, size=array.shape)
    return program, feed


@pytest.mark.parametrize("name", CASES)
def test_modules_give_the_scores_of_programs(name: str) -> None:
    program, feed = _trained(name)
    given = {key: torch.from_numpy(np.array(value)) for key, value in _inputs(program, feed).items()}
    with torch.no_grad():
        scores = module_of(program)(**given).numpy()
    expected = _expected(program, feed)
    assert np.abs(expected).max() > 0.01
    np.testing.assert_allclose(scores.reshape(expected.shape), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", [pytest.param(each, marks=[pytest.mark.full] * (each != "fm")) for each in CASES])
def test_onnxruntime_gives_the_same_scores(name: str) -> None:
    program, feed = _trained(name)
    session = runtime.InferenceSession(onnx_bytes(program))
    given = _inputs(program, feed)
    assert {node.name for node in session.get_inputs()} == set(given)
    (scores,) = session.run(["scores"], given)
    expected = _expected(program, feed)
    np.testing.assert_allclose(scores.reshape(expected.shape), expected, rtol=1e-4, atol=1e-5)
    told = json.loads(session.get_modelmeta().custom_metadata_map["hogwild"])
    assert told == {"program": program.name, "labels": [str(label) for label in program.classes]}


@pytest.mark.parametrize("options", [{}, {"layers": 2, "output_layer": "crf", "letters": "convolution"}], ids=str)
def test_onnxruntime_tags_sentences_of_any_length(options: dict[str, Any]) -> None:
    feed = made_feed(12)
    program = hogwild.BiLSTM(**{"hidden": 16, "word_dim": 9, "feature_dim": 4, **options})
    program.startup(feed, seed=3)
    session = runtime.InferenceSession(onnx_bytes(program))
    given = {name: tensor.numpy() for name, tensor in module_of(program).tensors(feed).items()}
    lengths = given.pop("lengths")
    expected, first = program.scores(feed), 0
    for length in lengths.tolist():
        part = slice(first, first + length)
        found = session.run(None, {name: array[part] for name, array in given.items()})
        np.testing.assert_allclose(found[0], expected[part], rtol=1e-4, atol=1e-5)
        first += length
    assert len(set(lengths.tolist())) > 1
    if "output_layer" in options:
        np.testing.assert_array_equal(found[1], program.arrays()["pairs"])


def test_what_has_no_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="no PyTorch module of a CRF; there is one of SparseMLP, "):
        onnx_bytes(hogwild.CRF())
    program, _ = _trained("linear")
    monkeypatch.setattr("hogwild.pytorch.onnx._MOST", 10)
    with pytest.raises(ConfigError, match=r"an ONNX file holds 2; write \.safetensors"):
        onnx_bytes(program)
    monkeypatch.setattr("hogwild.pytorch.onnx.find_spec", lambda name: None if name == "onnxscript" else name)
    with pytest.raises(ConfigError, match=r'need onnxscript, not installed here: pip install "hogwild\[onnx\]"'):
        onnx_bytes(program)
