"""Searches: groups, halving, failures, the end of the budget; what is drawn."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import hogwild
from hogwild.config import TrainConfig
from hogwild.config.experiments import TuneConfig
from hogwild.errors import ConfigError
from hogwild.executor.search.halving import GROUP, Search
from hogwild.executor.search.space import Choice, Range, Space, draw, parse_search, usual_space
from hogwild.executor.search.trial import Subject

SPACE: Space = {"lr": Range(0.01, 1.0, log=True), "l2": Choice((0.0, 1e-3))}


@pytest.fixture(scope="module")
def subject() -> Subject:
    random = np.random.default_rng(0)
    rows = random.normal(size=(300, 4))
    labels = rows @ [1.0, -2.0, 0.5, 0.0] + random.normal(size=300) > 0
    feed, valid = (hogwild.feed_of(rows[part], labels[part]) for part in (slice(200), slice(200, None)))
    return Subject(hogwild.Linear(), feed, valid, TrainConfig(epochs=3, best_by="loss"))


def search(subject: Subject, space: Space = SPACE, **options: Any) -> Search:
    made = Search(subject, space, TuneConfig(**options))
    made.run()
    return made


def plain(made: Search) -> list[dict[str, Any]]:
    return [{**trial.record(), "seconds": 0} for trial in made.trials.values()]


def test_a_third_of_a_group_has_whole_runs_and_the_usual_options_always(subject: Subject) -> None:
    made = search(subject, trials=GROUP + 4)
    assert list(made.trials) == list(range(GROUP + 4))
    group = [made.trials[k] for k in range(GROUP)]
    whole = [trial for trial in group if trial.status == "done"]
    assert len(whole) in (3, 4)
    assert made.trials[0] in whole
    assert made.trials[0].options == {}
    assert {trial.epochs for trial in whole} == {3}
    assert {trial.epochs for trial in group if trial.status == "short"} == {1}
    assert made.best is not None
    scores = [trial.score for trial in made.trials.values() if trial.status == "done"]
    assert made.best.score == min(scores)
    assert made.best.program.evaluate(subject.valid)["loss"] == pytest.approx(made.best.score, rel=1e-12)
    assert sum(trial.program is not None for trial in made.trials.values()) == 1


def test_the_same_again_whatever_runs_side_by_side(subject: Subject) -> None:
    one, other = search(subject, trials=12, side_by_side=1), search(subject, trials=12, side_by_side=4)
    assert plain(one) == plain(other)


def test_a_trial_that_fails_does_not_end_the_search() -> None:
    rows = np.random.default_rng(1).normal(size=(200, 4))
    feed = hogwild.feed_of(rows, rows.sum(1))
    quantities = Subject(
        hogwild.Linear(loss="squared", optimizer="sgd"), feed, feed, TrainConfig(epochs=3, lr=0.01, best_by="loss")
    )
    made = search(quantities, {"lr": Choice((1e20, 0.01)), "l2": Choice((0.0, -1.0))}, trials=9)
    failed = [trial for trial in made.trials.values() if trial.status == "failed"]
    whys = [trial.why for trial in failed]
    assert any("l2 is -1" in why for why in whys)
    assert any("l2 is -1" not in why for why in whys), whys  # it diverged
    assert made.best is not None
    assert made.best.score < 0.1


def test_if_all_fail_the_reason_of_the_first_is_told(subject: Subject) -> None:
    wrong = Subject(hogwild.FactorizationMachine(), hogwild.feed_of(np.eye(3), ["a", "b", "c"]), subject.valid,
                    TrainConfig(epochs=1, best_by="loss"))  # fmt: skip
    with pytest.raises(ConfigError, match=r"no trial gave a model; the first: .*tells two apart"):
        search(wrong, trials=2)


def test_time_ends_a_search_and_a_wish_too(subject: Subject) -> None:
    made = search(subject, seconds=0.3)
    assert made.best is not None
    assert made.seconds_left == 0
    asked = Search(subject, SPACE, TuneConfig(trials=1000))
    asked.asked = lambda: len(asked.trials) > 5
    best = asked.run()
    assert 5 < len(asked.trials) < 40
    assert best.program is not None


def test_what_is_drawn_lies_in_its_range_and_depends_on_number_and_seed_alone() -> None:
    space: Space = {"lr": Range(0.01, 1.0, log=True), "epochs": Range(2, 9, whole=True), "dim": Choice((4, 8))}
    found = [draw(space, k, 1, None) for k in range(200)]
    assert found == [draw(space, k, 1, None) for k in range(200)]
    assert found != [draw(space, k, 2, None) for k in range(200)]
    assert all(0.01 <= each["lr"] <= 1 and each["epochs"] in range(2, 10) and each["dim"] in (4, 8) for each in found)
    assert 0.3 < sum(each["lr"] < 0.1 for each in found) / 200 < 0.7  # half of the decades
    near = [draw(space, 2 * k, 1, {"lr": 0.1, "epochs": 5, "dim": 4}) for k in range(100)]
    spread = np.std([math.log(each["lr"]) for each in near])
    assert spread < 0.6 * np.std([math.log(each["lr"]) for each in found])


def test_what_is_usual_leaves_out_what_is_given() -> None:
    program, config = hogwild.FactorizationMachine(), TrainConfig()
    assert set(usual_space(program, config)) == {"lr", "dim", "l2", "l2_factors", "epochs"}
    assert set(usual_space(program, config, ["lr", "dim"])) == {"l2", "l2_factors", "epochs"}
    assert parse_search("hidden=64;128,64", hogwild.SparseMLP()) == ("hidden", Choice(((64,), (128, 64))))
