"""What makes up a prediction: the terms sum to the score that `predict` goes by."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import hogwild
from hogwild import ConfigError, FeedConfig, InputError

RUN = {"epochs": 3, "lr": 0.1, "mode": "serial", "quiet": True}
TOWNS, WORDS = ["Rome", "Oslo", "Kyiv"], ["good", "bad", "dull", "fine"]
ROWS = [
    {"town": town, "age": 20 + 3 * k % 50, "kind": "ab"[k % 2], "text": f"{word} film, {word} indeed"}
    for k, (town, word) in enumerate(zip(TOWNS * 12, WORDS * 9, strict=True))
]
TWO = ["yes" if row["town"] == "Rome" or "good" in row["text"] else "no" for row in ROWS]
THREE = [row["town"][0] + row["kind"] for row in ROWS]
SIZES = [row["age"] / 7 + (row["town"] == "Rome") for row in ROWS]


def trained(program, labels, config=None, rows=ROWS):
    feed = hogwild.feed_of(rows, labels, config=config)
    return hogwild.train(program, feed, **RUN)


def total(found):
    return found.base + sum(term.amount for term in found.terms) + found.rest


def check(program, rows=ROWS, tag="", output=None):
    """Whether terms sum to the score of some rows; returns what was found."""
    scores = np.asarray(program.scores(rows))
    found = [hogwild.explain(program, rows, k, tag) for k in range(4)]
    for k, each in enumerate(found):
        score = scores[k] if scores.ndim == 1 else scores[k].max() if output is None else scores[k, output]
        assert each.score == pytest.approx(float(score), abs=1e-6)
        assert total(each) == pytest.approx(float(score), abs=1e-5)
        assert [abs(term.amount) for term in each.terms] == sorted((abs(t.amount) for t in each.terms), reverse=True)
    assert any(abs(term.amount) > 1e-3 for term in found[0].terms)
    return found


def test_linear_models_of_two_classes():
    program = trained(hogwild.Linear(), TWO)
    found = check(program)
    assert [each.predicted for each in found] == program.predict(ROWS[:4]).tolist()
    assert {term.name for term in found[0].terms} >= {"town=Rome", "age", "kind=a"}
    assert found[0].of == "yes"
    with pytest.raises(ConfigError, match="one score"):
        hogwild.explain(program, ROWS, tag="yes")


def test_linear_models_of_several_classes():
    program = trained(hogwild.Linear(), THREE)
    found = check(program)
    assert [each.of for each in found] == program.predict(ROWS[:4]).tolist()
    other = program.classes.index("Ob")
    assert check(program, tag="Ob", output=other)[0].of == "Ob"
    with pytest.raises(ConfigError, match="no class `Xx`"):
        hogwild.explain(program, ROWS, tag="Xx")


@pytest.mark.parametrize("loss", ["squared", "poisson"])
def test_quantities(loss):
    found = check(trained(hogwild.Linear(loss=loss), SIZES))
    assert found[0].of == ("the quantity" if loss == "squared" else "the logarithm of the quantity")


def test_crossed_and_hashed_columns_and_words_are_called_as_in_the_row():
    columns = {"text": "text", "numeric": ("age",), "categorical": ("town", "kind")}
    pairs = FeedConfig(categories="hash", hash_bits=12, interactions=("town:kind", "age:town"), **columns)
    program = trained(hogwild.Linear(), TWO, pairs)
    names = {term.name for term in check(program)[0].terms}
    assert names >= {"town=Rome", "town=Rome & kind=a", "age * town=Rome", "age", "film", "good"}
    new = [{"town": "Bonn", "age": 30, "kind": "c", "text": "a good thing"}] * 4
    assert {"town=Bonn", "kind=c", "thing"} <= {term.name for term in check(program, new)[0].terms}


def test_several_labels():
    program = trained(hogwild.Linear(), [[two, "film"] for two in TWO], FeedConfig(text="text"))
    found = check(program)
    assert "film" in found[0].predicted


@pytest.mark.parametrize("options", [{}, {"pooling": "mean"}, {"counts": True}])
def test_text_classifiers(options):
    texts = [row["text"] for row in ROWS]
    program = trained(hogwild.TextClassifier(dim=4, **options), TWO, FeedConfig(ngrams=2), rows=texts)
    found = check(program, texts)
    assert {term.name for term in found[0].terms} == {"good", "film", "good film", "film good", "indeed", "good indeed"}
    many = trained(hogwild.TextClassifier(dim=4, **options), THREE, FeedConfig(ngrams=2), rows=texts)
    check(many, texts)


@pytest.mark.parametrize("options", [{"dim": 4}, {"dim": 0}, {"dim": 4, "field_aware": True}])
def test_factorization_machines(options):
    layout = FeedConfig(layout="slots") if options.get("field_aware") else None
    rows = [{name: row[name] for name in ("town", "age", "kind")} for row in ROWS]
    program = trained(hogwild.FactorizationMachine(init_scale=0.3, **options), TWO, layout, rows)
    found = check(program, rows)
    pairs = {frozenset(term.name.split(" * ")) for term in found[0].terms if " * " in term.name}
    assert (frozenset(("town=Rome", "kind=a")) in pairs) == bool(options["dim"])


@pytest.mark.parametrize("labels", [TWO, THREE, SIZES])
def test_dense_layers_by_leaving_one_out(labels):
    rows = [{name: row[name] for name in ("town", "age", "kind")} for row in ROWS]
    loss = "squared" if labels is SIZES else "auto"
    layers = hogwild.SparseMLP(hidden=(8,), dim=4, batch_size=8, loss=loss)
    program = trained(layers, labels, FeedConfig(layout="slots"), rows)
    found = check(program, rows)[0]
    assert "without that feature" in found.how
    output = program.classes.index(found.of) if labels is THREE else None

    def score(row):
        scores = np.asarray(program.scores([row]))[0]
        return float(scores if output is None else scores[output])

    left_out = score({**rows[0], "town": None})
    town = next(term for term in found.terms if term.name == "town=Rome")
    assert town.amount == pytest.approx(found.score - left_out, abs=1e-5)
    assert {term.name for term in found.terms} == {"town=Rome", "kind=a", "age"}


def test_a_matrix_and_numbers_without_names():
    matrix = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    labels = (matrix[:, 0] > 0).astype(int)
    layers = hogwild.SparseMLP(hidden=(8,), dim=4, batch_size=8)
    for program in (hogwild.Linear(), hogwild.FactorizationMachine(dim=4), layers):
        hogwild.train(program, hogwild.feed_of(matrix, labels), **RUN)
        found = hogwild.explain(program, matrix, 2)
        assert total(found) == pytest.approx(float(program.scores(matrix)[2]), abs=1e-5)
        assert {"0", "1", "2"} <= {term.name for term in found.terms}


def test_recommenders():
    pairs = [(f"u{k % 7}", f"i{k % 5}", 1 + (k * k) % 5) for k in range(60)]
    program = hogwild.train(hogwild.MatrixFactorization(dim=3), pairs, **RUN)
    asked = [("u1", "i2"), ("u1", "nothing"), ("nobody", "i2"), ("nobody", "nothing")]
    for k, terms in enumerate((3, 1, 1, 0)):
        found = hogwild.explain(program, asked, k)
        assert total(found) == pytest.approx(float(program.scores(asked)[k]), abs=1e-5)
        assert (len(found.terms), found.base) == (terms, pytest.approx(program.mean))
        assert found.predicted == pytest.approx(program.predict_one(*asked[k]))
    with pytest.raises(ConfigError, match="row is 4"):
        hogwild.explain(program, asked, 4)


# -- taggers ---------------------------------------------------------------------------------------------------------


TEXT = (
    [("the", "D"), ("cat", "N"), ("sees", "V"), ("a", "D"), ("dog", "N")],
    [("dogs", "N"), ("see", "V"), ("cats", "N")],
)
LINES = "".join("".join(f"{word} {tag}\n" for word, tag in sentence) + "\n" for sentence in TEXT) * 6


@pytest.fixture(scope="module")
def sentences(tmp_path_factory):
    path = tmp_path_factory.mktemp("tagged") / "train.txt"
    path.write_text(LINES)
    return hogwild.open_tagging(path)


def test_the_tag_of_a_crf_against_the_second(sentences):
    program = hogwild.train(hogwild.CRF(optimizer="sgd"), sentences, **RUN)
    words = [[(word,) for word, _ in TEXT[0]]]
    (paths,) = program.nbest(words, 300)
    chances = {tuple(path): chance for chance, path in paths}
    best = list(paths[0][1])
    for token in range(5):
        found = hogwild.explain(program, words, token=token)
        assert (found.predicted, found.of.split(" against ")[0]) == (best[token], best[token])
        second = found.of.split(" against ")[1]
        changed = (*best[:token], second, *best[token + 1 :])
        others = {tag: chances[(*best[:token], tag, *best[token + 1 :])] for tag in program.tags if tag != best[token]}
        assert chances[changed] == max(others.values())
        # The logarithm of how much likelier the best path is than the one with the second tag here.
        assert sum(term.amount for term in found.terms) == pytest.approx(found.score)
        assert found.score == pytest.approx(math.log(chances[tuple(best)] / chances[changed]), abs=1e-3)
    assert any(term.name.startswith("after ") for term in found.terms)
    with pytest.raises(ConfigError, match="token is 5"):
        hogwild.explain(program, words, token=5)
    with pytest.raises(ConfigError, match="no tag `Z`"):
        hogwild.explain(program, words, tag="Z")


@pytest.mark.full
def test_a_bilstm_by_hiding_words(sentences):
    sizes = {"word_dim": 8, "feature_dim": 4, "hidden": 8, "batch_size": 4}
    program = hogwild.train(hogwild.BiLSTM(output_layer="crf", **sizes), sentences, **RUN)
    words = [[(word,) for word, _ in TEXT[0]]]
    kinds = {each.kind: each for each in hogwild.inspect(program, top=3)}
    assert list(kinds) == ["transitions", "biases", "words", "features"]
    assert kinds["words"].of == program.arrays()["words"].shape[0]
    longest = kinds["words"].rows[0][1]
    assert longest == pytest.approx(float(np.linalg.norm(program.arrays()["words"], axis=1).max()), rel=1e-5)
    assert [each.kind for each in hogwild.inspect(program, tag="N")] == ["transitions", "biases"]
    found = hogwild.explain(program, words, token=1)
    assert total(found) == pytest.approx(found.score, abs=1e-4)
    assert {"2 cat", "1 the"} <= {term.name for term in found.terms}
    feed = program.feed_of(words)
    chains, first, last = feed.samples, *feed.samples.starts[1:3].tolist()
    starts = np.where(chains.starts >= last, chains.starts - (last - first), chains.starts)
    hidden = replace(feed, samples=chains._replace(starts=starts, ids=np.delete(chains.ids, np.s_[first:last])))
    best, other = (program.tags.index(tag) for tag in found.of.split(" against "))
    margins = [float(scores[1, best] - scores[1, other]) for scores in map(program.scores, (feed, hidden))]
    cat = next(term.amount for term in found.terms if term.name == "2 cat")
    assert program.alphabet == ""  # else the word still has letters
    assert cat == pytest.approx(margins[0] - margins[1], abs=1e-4)


def test_what_cannot_be_explained():
    program = trained(hogwild.Linear(), TWO)
    with pytest.raises(ConfigError, match="token is for taggers"):
        hogwild.explain(program, ROWS, token=1)
    with pytest.raises(ConfigError, match="row is -1"):
        hogwild.explain(program, ROWS, -1)
    with pytest.raises(InputError):
        hogwild.explain(program, [{"town": "Rome"}])
