"""What taggers have in common, on one that is no CRF: nothing of it may need more than a decoder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hogwild
from hogwild.cli.main import main
from hogwild.errors import ConfigError, InputError, ModelError
from hogwild.programs import store
from problems.majority import Majority

TEXT = "a x B\nb y I\nc x O\n\nd x B\ne y I\n\nf z B\n\n"


@pytest.fixture
def feed(tmp_path: Path, monkeypatch: Any) -> Any:
    monkeypatch.setenv("HOGWILD_CACHE", str(tmp_path / "cache"))
    (tmp_path / "train.txt").write_text(TEXT)
    return hogwild.open_tagging(tmp_path / "train.txt")


@pytest.fixture
def trained(feed: Any) -> Majority:
    program = Majority()
    program.startup(feed, 1)
    return program


def test_answers_of_a_decoder_have_names(trained: Majority, feed: Any) -> None:
    assert trained.tags == ("B", "I", "O")
    assert trained.units(feed) == 6
    assert trained.predict(feed) == [["B"] * 3, ["B"] * 2, ["B"]]
    assert trained.predict_codes(feed).tolist() == [0] * 6
    assert trained.nbest(feed, 2)[2] == [(0.5, ["B"]), (pytest.approx(1 / 3), ["I"])]
    np.testing.assert_allclose(trained.marginals(feed)[4], [3 / 6, 2 / 6, 1 / 6], rtol=1e-6)
    loss, scores = trained.compare(feed, threads=2)
    assert loss == pytest.approx(-(3 * np.log(3 / 6) + 2 * np.log(2 / 6) + np.log(1 / 6)) / 3)
    assert scores.accuracy == 0.5
    assert trained.evaluate(feed) == {"loss": loss, **scores.metrics()}


def test_the_scheme_of_the_tags_goes_to_the_decoder(trained: Majority, feed: Any) -> None:
    trained.weights.share[:] = 0.2, 0.7, 0.1
    assert trained.predict(feed)[2] == ["I"]
    assert trained.predict(feed, constrain=True)[2] == ["B"]  # no chunk begins with I
    other = Majority()
    plain = hogwild.tagging_of([[["a"], ["b"]]], [["DET", "NOUN"]])
    other.startup(plain, 1)
    with pytest.raises(ConfigError, match="follow no scheme"):
        other.nbest(plain, 1, constrain=True)


def test_texts_of_another_model_are_refused(trained: Majority, feed: Any, tmp_path: Path) -> None:
    other = hogwild.tagging_of([[["a"]]], [["B"]])
    for use in (trained.predict, trained.evaluate, trained.check_trainable):
        with pytest.raises(ConfigError, match="other feature ids"):
            use(other)
    with pytest.raises(ConfigError, match="is no tagged text"):
        Majority().startup(hogwild.feed_of([[1.0]], [0]), 1)  # type: ignore[arg-type]
    (tmp_path / "strange.txt").write_text("a x B\nb y NEW\n")
    strange = trained.open(tmp_path / "strange.txt", schema=feed.schema)
    with pytest.raises(InputError, match=r"strange\.txt: its tags NEW are not among those of the model; train a new"):
        trained.check_trainable(strange)
    (tmp_path / "raw.txt").write_text("a x\nb y\n")
    raw = trained.open(tmp_path / "raw.txt", schema=feed.schema, with_tags=False)
    assert trained.predict(raw) == [["B", "B"]]
    with pytest.raises(InputError, match="tokens without tags"):
        trained.check_trainable(raw)


def test_commands_speak_to_any_tagger(
    trained: Majority, feed: Any, tmp_path: Path, monkeypatch: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(store.PROGRAMS, "majority", "problems.majority:Majority")
    model, text = str(tmp_path / "model"), str(tmp_path / "train.txt")
    hogwild.save_model(model, trained, feed_schema=feed.schema)
    loaded = hogwild.load_model(model).program
    assert isinstance(loaded, Majority)
    assert (loaded.tags, loaded.names) == (trained.tags, trained.names)
    assert main(["evaluate", model, text, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["program"] == "majority"
    assert found["metrics"]["accuracy"] == 0.5
    assert found["metrics"]["f1"] == pytest.approx(2 / 9)  # six chunks of one token, where there are three, one of them
    assert main(["predict", model, text, "--proba"]) == 0
    assert capsys.readouterr().out.splitlines()[0].split()[:4] == ["a", "x", "B", "B"]
    assert main(["inspect", model]) == 0
    assert capsys.readouterr().out.split("\n")[-3].split()[:3] == ["share", "3", "3"]  # name, shape and size


@pytest.mark.parametrize("wrong", [{"tags": ()}, {"tags": ("B", "B", "O")}, {"names": ("a", "a")}, {"tags": (1, 2, 3)}])
def test_a_model_that_does_not_say_its_names_is_refused(
    trained: Majority, tmp_path: Path, monkeypatch: Any, wrong: dict[str, Any]
) -> None:
    monkeypatch.setitem(store.PROGRAMS, "majority", "problems.majority:Majority")
    for name, value in wrong.items():
        setattr(trained, name, value)
    hogwild.save_model(tmp_path / "model", trained)
    with pytest.raises(ModelError, match="do not say its tags and features, each once"):
        hogwild.load_model(tmp_path / "model")
