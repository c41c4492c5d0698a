"""Going on from a trained model with more data: known rows keep their weights, new ones are fresh."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hogwild
from hogwild.config import FeedConfig, TaggingConfig
from hogwild.errors import ConfigError, HogwildError, InputError
from hogwild.programs.continuing import begin
from hogwild.programs.sparse.extending import extended_schema
from hogwild.programs.store import load_model, save_model

SERIAL: dict[str, Any] = {"mode": "serial", "quiet": True, "epochs": 2, "lr": 0.05}


def table(path: Path, rows: int, sites: range, labels: tuple[str, ...] = ("no", "yes")) -> Path:
    """A table of two columns of categories, one of numbers, and a label that they tell."""
    random = np.random.default_rng(len(sites) + rows)
    lines = ["label,site,ad,price"]
    for _ in range(rows):
        site, ad, price = random.choice(sites), random.choice(list("abcd")), random.random() * (1 + sites.start)
        lines.append(f"{labels[(site + ord(ad)) % len(labels)]},s{site},{ad},{price:.4f}")
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A file, and more: half of its sites are new, and its numbers are of another size."""
    place = tmp_path_factory.mktemp("tables")
    return table(place / "one.csv", 400, range(20)), table(place / "two.csv", 300, range(10, 30))


KINDS: dict[str, Callable[[], Any]] = {
    "linear": lambda: hogwild.Linear(l2=1e-4),
    "fm": lambda: hogwild.FactorizationMachine(dim=4),
    "mlp": lambda: hogwild.SparseMLP(dim=4, hidden=(8,), batch_size=32, wide=True),
}
CONFIGS = {"mlp": FeedConfig(layout="slots", min_count=2)}


def trained(kind: str, path: Path, place: Path) -> Any:
    """A model, saved."""
    config = CONFIGS.get(kind, FeedConfig())
    feed = hogwild.open_feed(str(path), config)
    program = hogwild.train(KINDS[kind](), feed, **SERIAL)
    save_model(place, program, feed_schema=feed.schema, feed_config=config, labels=feed.labels)
    return load_model(place).program


def scores_of_known(program: Any, path: Path) -> np.ndarray:
    return np.asarray(program.scores(str(path)))


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_model_knows_it_says_again_before_the_first_visit(kind: str, tables: Any, tmp_path: Path) -> None:
    old = trained(kind, tables[0], tmp_path / "m")
    program = type(old)()
    feed, notes = begin(program, str(tmp_path / "m"), str(tables[1]), seed=3)
    np.testing.assert_allclose(
        scores_of_known(program, tables[0]), scores_of_known(old, tables[0]), rtol=2e-5, atol=2e-6
    )
    assert program.features > old.features
    assert feed.features == program.features
    new = program.features - old.features
    assert notes == [
        f"{old.features:,} of {program.features:,} features have their weights from the model; {new} are new."
    ]
    assert "site=s29" in "".join(str(name) + " " for name in program.feature_names()) or kind == "mlp"


@pytest.mark.parametrize("kind", KINDS)
def test_the_loss_goes_on_from_where_it_was_and_the_new_is_learnt(kind: str, tables: Any, tmp_path: Path) -> None:
    old = trained(kind, tables[0], tmp_path / "m")
    before = old.evaluate(str(tables[0]))["loss"]
    again = hogwild.train(type(old)(), str(tables[0]), start=tmp_path / "m", **{**SERIAL, "lr": 0.01})
    assert again.evaluate(str(tables[0]))["loss"] <= before
    more = hogwild.train(type(old)(), str(tables[1]), start=tmp_path / "m", **SERIAL)
    assert more.evaluate(str(tables[1]))["loss"] < old.evaluate(str(tables[1]))["loss"]
    save_model(tmp_path / "more", more, feed_config=CONFIGS.get(kind, FeedConfig()))
    loaded = load_model(tmp_path / "more").program
    np.testing.assert_array_equal(scores_of_known(loaded, tables[0]), scores_of_known(more, tables[0]))


def test_new_labels_join_and_the_old_ones_are_told_apart_as_before(tmp_path: Path) -> None:
    two = table(tmp_path / "two.csv", 300, range(10))
    three = table(tmp_path / "three.csv", 300, range(10), ("no", "yes", "perhaps"))
    old = trained("linear", two, tmp_path / "m")
    program = hogwild.Linear()
    begin(program, old, str(three), seed=1)
    assert program.classes == ("no", "yes", "perhaps")
    chances = program.predict_proba(str(two))
    np.testing.assert_allclose(chances[:, 1] / chances[:, :2].sum(1), old.predict_proba(str(two))[:, 1], rtol=1e-4)
    machine = trained("fm", two, tmp_path / "fm")
    with pytest.raises(InputError, match="3 classes, and a factorization machine tells two apart"):
        begin(hogwild.FactorizationMachine(), machine, str(three), seed=1)


def test_numbered_features_grow(tmp_path: Path) -> None:
    for name, width in (("one", 5), ("two", 9)):
        lines = [f"{k % 2} {1 + k % width}:1 {1 + (k + 1) % width}:0.5" for k in range(60)]
        (tmp_path / f"{name}.svm").write_text("\n".join(sorted(lines, key=len)) + "\n")
    rows = [line.split() for line in (tmp_path / "one.svm").read_text().splitlines()]
    (tmp_path / "one.svm").write_text("\n".join(" ".join([r[0], *sorted(r[1:])]) for r in rows) + "\n")
    rows = [line.split() for line in (tmp_path / "two.svm").read_text().splitlines()]
    (tmp_path / "two.svm").write_text("\n".join(" ".join([r[0], *sorted(r[1:])]) for r in rows) + "\n")
    old = hogwild.train(hogwild.Linear(), str(tmp_path / "one.svm"), **SERIAL)
    program = hogwild.Linear()
    begin(program, old, str(tmp_path / "two.svm"), seed=1)
    assert (old.features, program.features) == (5, 9)
    np.testing.assert_array_equal(program.arrays()["weight"][:5], old.arrays()["weight"])
    assert not program.arrays()["weight"][5:].any()


def test_texts_keep_their_hashes(tmp_path: Path) -> None:
    words = ["good", "bad", "fine", "poor", "film", "book", "song"]
    for name, count in (("one", 5), ("two", 7)):
        lines = [
            f"{'pos' if k % 2 == 0 else 'neg'}\t{words[k % 2]} {words[2 + k % (count - 2)]} it is" for k in range(80)
        ]
        (tmp_path / f"{name}.tsv").write_text("\n".join(lines) + "\n")
    config = FeedConfig(hash_bits=10)
    feed = hogwild.open_feed(str(tmp_path / "one.tsv"), config)
    old = hogwild.train(hogwild.TextClassifier(dim=4), feed, **SERIAL)
    save_model(tmp_path / "m", old, feed_config=config)
    program = hogwild.TextClassifier()
    begin(program, tmp_path / "m", str(tmp_path / "two.tsv"), seed=1)
    one = str(tmp_path / "one.tsv")
    np.testing.assert_array_equal(program.scores(one), load_model(tmp_path / "m").program.scores(one))


# -- users and items --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rated", [True, False])
def test_users_and_items_keep_their_vectors(rated: bool) -> None:
    random = np.random.default_rng(0)

    def pairs(users: range, items: range, count: int) -> Any:
        some = {(f"u{random.choice(users)}", f"i{random.choice(items)}") for _ in range(count)}
        rows = [(*pair, float(1 + sum(map(ord, "".join(pair))) % 5)) for pair in sorted(some)]
        return hogwild.ratings_of(*zip(*[row[: 3 if rated else 2] for row in rows], strict=True))

    first, second = pairs(range(12), range(9), 60), pairs(range(6, 20), range(4, 14), 60)
    old = hogwild.train(hogwild.MatrixFactorization(dim=4), first, **SERIAL)
    program = hogwild.MatrixFactorization()
    feed, notes = begin(program, old, second, seed=1)
    assert set(program.users) == {*first.users, *second.users}
    assert len(notes) == 2
    asked = [(user, item) for user in first.users for item in first.items]
    np.testing.assert_allclose(program.predict(asked), old.predict(asked), rtol=1e-6)
    for user in first.users:  # what they had is not recommended again
        had = set(first.items) - {item for item, _ in old.recommend(user, 100)}
        assert had & {item for item, _ in program.recommend(user, 100)} == set()
    assert hogwild.train(program, feed, **SERIAL).users == program.users


# -- tags and words ---------------------------------------------------------------------------------------------------

ONE = "the DT\ndog NN\nruns VB\n\na DT\ncat NN\nsleeps VB\n\n" * 6
TWO = "the DT\nbird NN\nsings VB\nloudly RB\n\nthe DT\ncat NN\neats VB\nfish NN\n\n" * 6


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Tagged text, and more with a tag that is new."""
    place = tmp_path_factory.mktemp("texts")
    for name, text in (("one", ONE), ("two", TWO)):
        (place / f"{name}.txt").write_text(text)
    return str(place / "one.txt"), str(place / "two.txt")


@pytest.mark.parametrize("kind", ["crf", "rich", pytest.param("bilstm", marks=pytest.mark.full)])
def test_features_and_tags_keep_their_weights(kind: str, texts: tuple[str, str]) -> None:
    made = {
        "crf": lambda: hogwild.CRF(l2=0.1), "rich": lambda: hogwild.CRF(rich_edges=True, rich_edge_min_count=2),
        "bilstm": lambda: hogwild.BiLSTM(hidden=8, word_dim=8, letters="convolution", output_layer="crf"),
    }[kind]  # fmt: skip
    config = TaggingConfig(features="words" if kind == "bilstm" else "pos")
    first, second = (hogwild.open_tagging(path, config) for path in texts)
    old = hogwild.train(made(), first, **SERIAL)
    program = made()
    feed, _ = begin(program, old, second, seed=1)
    assert set(program.tags) == {*old.tags, "RB"}
    assert set(program.names) == {*first.names, *second.names}
    before, after, mine, theirs = old.arrays(), program.arrays(), program.axes(), old.axes()
    for name in before:
        if name in mine:
            places = [
                np.arange(after[name].shape[k]) if new is None else [list(new).index(each) for each in known]
                for k, (new, known) in enumerate(zip(mine[name], theirs[name], strict=True))
            ]
            np.testing.assert_array_equal(after[name][np.ix_(*places)], before[name], err_msg=name)
    more = hogwild.train(program, feed, **SERIAL)
    assert more.evaluate(feed)["loss"] < old.evaluate(hogwild.open_tagging(
        texts[1], config, names=old.names, tags=old.tags))["loss"] or kind == "bilstm"  # fmt: skip


def test_words_keep_their_vectors() -> None:
    first = hogwild.corpus_of([["to", "be", "or", "not", "to", "be"]] * 20)
    second = hogwild.corpus_of([["to", "see", "or", "not", "to", "see"]] * 20)
    options = {**SERIAL, "lr": 0.02}
    old = hogwild.train(hogwild.Word2Vec(dim=8, sample=0), first, **options)
    program = hogwild.Word2Vec()
    begin(program, old, second, seed=1)
    np.testing.assert_array_equal(program.vectors["be"], old.vectors["be"])
    hogwild.train(program, second, **options)
    np.testing.assert_array_equal(program.vectors["be"], old.vectors["be"])  # it does not occur
    assert not np.array_equal(program.vectors["to"], old.vectors["to"])


# -- what does not fit -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("program", "why"),
    [
        (hogwild.FactorizationMachine, "'linear', and 'fm' is to be trained; use Linear"),
        (lambda: hogwild.Linear(loss="hinge"), "loss is 'hinge', and 'logistic' in the model to start from"),
        (lambda: hogwild.Linear(bias=False), "bias is False, and True in the model"),
    ],
)
def test_another_model_is_refused_in_a_line(program: Any, why: str, tables: Any, tmp_path: Path) -> None:
    old = trained("linear", tables[0], tmp_path / "m")
    with pytest.raises(ConfigError, match=why) as caught:
        hogwild.train(program(), str(tables[1]), start=old, **SERIAL)
    assert len(str(caught.value)) < 240


def test_data_of_another_kind_is_refused(tables: Any, tmp_path: Path) -> None:
    old = trained("linear", tables[0], tmp_path / "m")
    (tmp_path / "other.csv").write_text("label,price\nyes,1\nno,2\n" * 20)
    with pytest.raises(HogwildError, match="site"):
        begin(hogwild.Linear(), old, str(tmp_path / "other.csv"), seed=1)
    with pytest.raises(InputError, match="give the file itself"):
        begin(hogwild.Linear(), old, hogwild.open_feed(str(tables[1])), seed=1)
    with pytest.raises(ConfigError, match="give the directory of a model"):
        begin(hogwild.Linear(), hogwild.Linear(), str(tables[1]), seed=1)


def test_keys_of_slots_join_slot_by_slot() -> None:
    known = {"format": "multislot", "sizes": [2, 1], "keys": ["7 9", "7"], "slots": ["site", "ad"]}
    both = extended_schema(known, {**known, "sizes": [1, 2], "keys": ["5 7 8"]})
    assert (both["sizes"], both["keys"]) == ([3, 2], ["7 9 5 7 8"])
