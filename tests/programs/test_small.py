"""Small models of every program: what is loaded predicts as the model that it was made of, within what was rounded."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest

import hogwild
from hogwild.errors import ConfigError, HogwildError, ModelError
from hogwild.programs.store import load_model, save_model

TAGGED = "the DT B-NP\ndog NN I-NP\nruns VB O\n\na DT B-NP\nred JJ I-NP\nbird NN I-NP\n. . O\n\n" * 6
TEXTS = [f"{'good' if k % 2 else 'bad'} word{k % 7} and word{k % 5}" for k in range(40)]
ROWS = [{"city": f"c{k % 9}", "ad": f"a{k % 13}", "n": float(k % 5)} for k in range(60)]
LABELS = [str(k % 2) for k in range(60)]
CORPUS = ["the", "quick", "brown", "fox", "jumps", "over", "every", "lazy", "dog", "and", "runs", "away", "from", "it"]


def _drawn(program: Any, feed: Any) -> Any:
    """The program with weights drawn at random, as if it had been trained on the feed."""
    program.startup(feed, 1)
    draw = np.random.default_rng(4)
    for array in program.weights:
        array[:] = draw.normal(size=array.shape)
    program.finish(feed)
    return program


def _texts() -> Any:
    config = hogwild.FeedConfig(hash_bits=9)
    return _drawn(hogwild.TextClassifier(dim=16), hogwild.feed_of(TEXTS, LABELS[:40], config=config))


def _table(program: Any, **options: Any) -> Any:
    return _drawn(program, hogwild.feed_of(ROWS, LABELS, config=hogwild.FeedConfig(**options)))


def _mlp() -> Any:
    return _table(hogwild.SparseMLP(dim=16, hidden=(8,), wide=True), layout="slots", min_count=1)


def _rated() -> Any:
    users, items = [f"u{k % 11}" for k in range(99)], [f"i{k % 7}" for k in range(99)]
    feed = hogwild.ratings_of(users, items, [float(k % 5) for k in range(99)])
    return _drawn(hogwild.MatrixFactorization(dim=16), feed)


def _tagger(program: Any) -> Any:
    with TemporaryDirectory() as place:
        (Path(place) / "a.txt").write_text(TAGGED)
        return _drawn(program, hogwild.open_tagging(Path(place) / "a.txt", hogwild.TaggingConfig(cache=False)))


def _words(**options: Any) -> Any:
    corpus = hogwild.corpus_of([CORPUS[k % 7 :] for k in range(30)], hogwild.CorpusConfig(min_count=1))
    return _drawn(hogwild.Word2Vec(dim=8, **options), corpus)


MAKERS: dict[str, Any] = {
    "linear": lambda: _table(hogwild.Linear(), categories="hash", hash_bits=8),
    "fm": lambda: _table(hogwild.FactorizationMachine(dim=4)), "mlp": _mlp, "text": _texts, "ratings": _rated,
    "crf": lambda: _tagger(hogwild.CRF(rich_edge_min_count=2)),
    "bilstm": lambda: _tagger(hogwild.BiLSTM(word_dim=8, feature_dim=4, hidden=8)),
    "words": _words, "subwords": lambda: _words(subwords="3:4", buckets=200),
}  # fmt: skip
PRUNED = ("linear", "fm", "mlp", "text", "crf", "words", "subwords")


@pytest.mark.parametrize("cells", ["half", "int8"])
@pytest.mark.parametrize("name", MAKERS)
def test_cells_are_as_near_as_they_can_be(name: str, cells: str, tmp_path: Path) -> None:
    program = MAKERS[name]()
    save_model(tmp_path / "whole", program)
    save_model(tmp_path / "small", program, small=hogwild.SmallConfig(**{cells: True}))
    sizes = [(tmp_path / place / "weights.safetensors").stat().st_size for place in ("whole", "small")]
    assert sizes[1] < sizes[0]
    assert json.loads((tmp_path / "small" / "config.json").read_text())["version"] == 3
    loaded = load_model(tmp_path / "small").program
    assert loaded.small == {"half": "float16", "int8": "int8"}[cells]
    before, after = program.arrays(), loaded.arrays()
    assert set(before) - set(after) == ({"outputs"} if "words" in name else set())
    for array, found in after.items():
        parts = (array, "inputs", "grams") if name == "subwords" else (array,)  # of which vectors are means
        step = max(np.abs(before[part]).max(initial=0) for part in parts) / (254 if cells == "int8" else 2048)
        np.testing.assert_allclose(found, before[array], atol=1.01 * step + 1e-9, err_msg=array)


@pytest.mark.parametrize("name", PRUNED)
def test_what_weighs_least_is_left_out(name: str, tmp_path: Path) -> None:
    program = MAKERS[name]()
    save_model(tmp_path / "whole", program)
    save_model(tmp_path / "small", program, small=hogwild.SmallConfig(pruned=0.5))
    loaded = load_model(tmp_path / "small").program
    assert loaded.small == "float32, pruned"
    before, after = program.arrays(), loaded.arrays()
    if "words" in name:
        assert loaded.words == program.words[: len(program.words) - round(len(program.words) / 2)]
        np.testing.assert_array_equal(after["vectors"], before["vectors"][: len(loaded.words)])
        return
    if name == "crf":
        places = [program.names.index(feature) for feature in loaded.names]
        assert len(places) == len(program.names) - round(len(program.names) / 2)
        assert loaded.pruned == len(program.names) - len(places)
        np.testing.assert_array_equal(after["nodes"], before["nodes"][places])
        return
    tables = [key for key in ("weight", "factors", "embedding", "wide") if key in before]
    norms = sum((before[key].reshape(len(before[key]), -1) ** 2).sum(axis=1) for key in tables)
    gone = ~np.any([after[key].reshape(len(norms), -1).any(axis=1) for key in tables], axis=0)
    assert np.count_nonzero(gone) == round(np.count_nonzero(norms) / 2) + np.count_nonzero(norms == 0)
    assert norms[gone].max() <= norms[~gone].min()
    for key in before:
        kept = ~gone if key in tables else slice(None)
        np.testing.assert_array_equal(after[key][kept], before[key][kept])


@pytest.mark.parametrize("name", sorted(set(MAKERS) - set(PRUNED)))
def test_programs_that_need_all_their_rows_say_so(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="needs all its rows; use half or int8 alone"):
        save_model(tmp_path / "small", MAKERS[name](), small=hogwild.SmallConfig(pruned=0.5))
    assert not (tmp_path / "small").exists()


def test_options_that_cannot_be() -> None:
    for odd in ({"half": True, "int8": True}, {"pruned": 1.5}, {"pruned": -1}, {"pruned": float("nan")}):
        with pytest.raises(ConfigError):
            hogwild.SmallConfig(**odd)
    with pytest.raises(ConfigError, match="leave out fewer"):
        _texts().compact(10_000)


def test_texts_and_rows_are_answered_one_by_one(tmp_path: Path) -> None:
    program = _texts()
    save_model(tmp_path / "small", program, small=hogwild.SmallConfig(int8=True))
    loaded = load_model(tmp_path / "small").program
    found = [loaded.predict_one(text) for text in TEXTS]
    assert found == loaded.predict(TEXTS).tolist()
    scores = np.array([program.score_row(text)[0] for text in TEXTS])
    np.testing.assert_allclose([loaded.score_row(text)[0] for text in TEXTS], scores, atol=0.05 * np.abs(scores).max())


def test_words_have_neighbours_and_tell_no_loss(tmp_path: Path) -> None:
    program = _words(subwords="3:4", buckets=200)
    save_model(tmp_path / "small", program, small=hogwild.SmallConfig(int8=True, pruned=3))
    vectors = hogwild.Vectors.load(tmp_path / "small", verify=True)
    assert vectors.words == program.words[:-3]
    np.testing.assert_allclose(vectors.matrix, program.vectors.matrix[:-3], atol=0.03)
    assert "foxy" in vectors  # by its parts
    assert vectors.parts is not None
    assert vectors.parts.outputs is None
    np.testing.assert_allclose(vectors["foxy"], program.vectors["foxy"], atol=0.03)
    loaded = load_model(tmp_path / "small").program
    corpus = hogwild.corpus_of([CORPUS], hogwild.CorpusConfig(min_count=1))
    with pytest.raises(ConfigError, match="has vectors only"):
        loaded.evaluate(corpus)
    save_model(tmp_path / "again", loaded)  # a whole model, which still has no outputs
    with pytest.raises(ConfigError, match="has vectors only"):
        load_model(tmp_path / "again").program.evaluate(corpus)


def test_training_goes_on_from_rounded_weights_with_a_note(tmp_path: Path) -> None:
    feed = hogwild.feed_of(TEXTS, LABELS[:40], config=hogwild.FeedConfig(hash_bits=9))
    whole = hogwild.train(hogwild.TextClassifier(dim=16), feed, epochs=2, lr=0.2, mode="serial", quiet=True)
    save_model(tmp_path / "small", whole, small=hogwild.SmallConfig(int8=True, pruned=0.5))
    executor = hogwild.AsyncExecutor(threads=1, epochs=1, lr=0.1)
    events = list(executor.run(load_model(tmp_path / "small").program, feed))
    assert "the model to go on from is small (int8, pruned): training begins at its rounded weights." in events[0].notes
    new = hogwild.TextClassifier()
    hogwild.train(new, feed, start=tmp_path / "small", epochs=1, lr=0.1, threads=1, quiet=True)
    assert any("is small (int8, pruned)" in note for note in new.started_notes())
    save_model(tmp_path / "new", new)
    assert load_model(tmp_path / "new").program.small == ""


@pytest.mark.parametrize(
    "small",
    [
        7, {}, {"cells": "int4", "pruned": 0, "arrays": {}}, {"cells": "int8", "arrays": {}},
        {"cells": ["int8"], "pruned": 0, "arrays": {}}, {"cells": "int8", "pruned": 0},
    ],
)  # fmt: skip
def test_a_changed_description_is_refused(small: Any, tmp_path: Path) -> None:
    save_model(tmp_path / "small", _texts(), small=hogwild.SmallConfig(int8=True))
    file = tmp_path / "small" / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "small": small}))
    with pytest.raises(ModelError):
        load_model(tmp_path / "small")


def test_an_older_version_says_upgrade(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_model(tmp_path / "small", _texts(), small=hogwild.SmallConfig(half=True))
    save_model(tmp_path / "whole", _texts())
    monkeypatch.setattr("hogwild.programs.saving.sealed.SMALL_VERSION", 2)
    load_model(tmp_path / "whole")
    with pytest.raises(HogwildError, match="upgrade"):
        load_model(tmp_path / "small")
