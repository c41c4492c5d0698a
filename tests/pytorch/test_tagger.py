"""A Bi-LSTM against PyTorch's with the same weights: the scores, and the gradient in every weight."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import hogwild  # noqa: E402
from compiling import cases  # noqa: E402
from hogwild.arrays import make_scratch  # noqa: E402
from hogwild.feeds.tagged.feed import TaggingFeed  # noqa: E402
from hogwild.kernels.loop.task import total_loss  # noqa: E402
from hogwild.programs.taggers import bilstm_weights  # noqa: E402
from hogwild.pytorch import module_of  # noqa: E402
from problems.tagged import made_feed  # noqa: E402

CASES: list[dict[str, Any]] = [
    {},
    {"hidden": 16, "layers": 2, "output_layer": "crf"},
    {"recurrence": "diagonal", "letters": "convolution", "letter_dim": 5, "letter_filters": 7},
    {"layers": 3, "recurrence": "diagonal", "batch_size": 1, "output_layer": "crf", "letters": "convolution"},
    {"batch_size": 1, "hidden": 33},
    {"batch_size": 30, "layers": 2},
]


def _program(feed: TaggingFeed, options: dict[str, Any]) -> Any:
    program = hogwild.BiLSTM(**{"hidden": 21, "word_dim": 9, "feature_dim": 4, "unknown_share": 0.0, **options})
    program.startup(feed, seed=3)
    if program.config.output_layer == "crf":
        arrays = program.arrays()
        arrays["pairs"] = np.random.default_rng(4).normal(size=arrays["pairs"].shape).astype(np.float32)
        bilstm_weights.put_plain(program.shape, arrays, program.weights.values)
    return program


@pytest.mark.parametrize("options", cases(CASES, CASES[:1]), ids=str)
def test_the_module_gives_the_same_scores(options: dict[str, Any]) -> None:
    feed = made_feed(30)
    program = _program(feed, options)
    module = module_of(program)
    with torch.no_grad():
        scores = module(**module.tensors(feed)).numpy()
    np.testing.assert_allclose(program.scores(feed), scores, rtol=1e-4, atol=1e-5)


def _loss(module: Any, feed: TaggingFeed, visit: np.ndarray[Any, Any]) -> Any:
    """The sum over the sentences of a visit of -log p, and its tokens."""
    scores = module(**module.tensors(feed))
    offsets, tags = feed.samples.offsets, torch.from_numpy(np.array(feed.samples.tags, np.int64))
    total, tokens = scores.sum() * 0, 0
    for sentence in visit:
        first, last = int(offsets[sentence]), int(offsets[sentence + 1])
        own, gold = scores[first:last], tags[first:last]
        tokens += last - first
        if module.pairs is None:
            total = total + torch.nn.functional.cross_entropy(own, gold, reduction="sum")
            continue
        alpha = own[0]
        for t in range(1, last - first):
            alpha = torch.logsumexp(alpha[:, None] + module.pairs, 0) + own[t]
        right = own[torch.arange(last - first), gold].sum() + module.pairs[gold[:-1], gold[1:]].sum()
        total = total + torch.logsumexp(alpha, 0) - right
    return total, tokens


@pytest.mark.full
@pytest.mark.parametrize("options", CASES, ids=str)
def test_the_gradient_is_that_of_pytorch(options: dict[str, Any]) -> None:
    feed = made_feed(30)
    program = _program(feed, options)
    module = module_of(program)
    task, samples, room = program.task, program.samples(feed), program.room(feed)
    scratch = make_scratch(room, np.uint64(1))
    for visit in (0, len(samples.first) - 1):
        sentences = samples.order[samples.first[visit] : samples.first[visit] + samples.count[visit]]
        loss = total_loss(task, samples, program.weights, scratch, visit, visit + 1)
        module.zero_grad()
        total, tokens = _loss(module, feed, sentences)
        (total / tokens).backward()
        assert loss == pytest.approx(float(total.detach()) / len(sentences), rel=1e-4)
        found = bilstm_weights.plain_of(program.shape, scratch.dense)
        expected = _by_our_names(program, module)
        assert set(found) == set(expected)
        for name, array in expected.items():
            least = 1e-4 * np.abs(array).max() + 1e-7
            np.testing.assert_allclose(found[name], array, rtol=1e-3, atol=least, err_msg=name)
        _check_rows(program, module, scratch)


def _check_rows(program: Any, module: Any, scratch: Any) -> None:
    words, features = module.words.grad.numpy(), module.features.grad.numpy()
    rows = scratch.rows[: scratch.count[0]].tolist()
    assert len(set(rows)) == len(rows)
    touched = {*np.flatnonzero(words.any(1)).tolist(), *(len(words) + np.flatnonzero(features.any(1))).tolist()}
    assert touched <= set(rows)
    for line, row in enumerate(rows):
        own = words[row] if row < len(words) else features[row - len(words)]
        np.testing.assert_allclose(scratch.grads[line, : len(own)], own, rtol=1e-3, atol=1e-6)
        assert not scratch.grads[line, len(own) :].any()


def _by_our_names(program: Any, module: Any) -> dict[str, np.ndarray[Any, Any]]:
    shape, hidden, found = program.shape, program.shape.hidden, {}
    for layer in range(shape.layers):
        for direction, suffix in (("forward", ""), ("backward", "_reverse")):
            name, place = f"lstm_{layer + 1}_{direction}", f"l{layer}{suffix}"
            grads = {part: getattr(module.lstm, f"{part}_{place}").grad.numpy() for part in ("weight_ih", "weight_hh")}
            inputs = grads["weight_ih"].T
            if layer == 0:
                found[f"{name}_input"] = inputs
            else:
                found[f"{name}_input_forward"], found[f"{name}_input_backward"] = inputs[:hidden], inputs[hidden:]
            found[f"{name}_bias"] = getattr(module.lstm, f"bias_ih_{place}").grad.numpy()[None]
            full = grads["weight_hh"].T
            gates = [full[:, gate * hidden : (gate + 1) * hidden] for gate in range(4)]
            own = np.concatenate([np.diag(gate) for gate in gates])[None]
            found[f"{name}_hidden"] = own if shape.diagonal else full
    output = module.output.weight.grad.numpy().T
    found["output_forward"], found["output_backward"] = output[:hidden], output[hidden:]
    found["output_bias"] = module.output.bias.grad.numpy()
    for name in ("pairs", "letters", "filters", "filter_bias"):
        if getattr(module, name) is not None:
            found[name] = getattr(module, name).grad.numpy()
    return found


def test_a_program_without_a_module_is_refused() -> None:
    with pytest.raises(hogwild.ConfigError, match="there is one of SparseMLP, FactorizationMachine"):
        module_of(hogwild.CRF())
