"""`hogwild inspect`: the strongest weights of a model."""

from __future__ import annotations

import numpy as np
import pytest

from cli.words import make_words
from hogwild import load_model
from hogwild.programs.inspecting.names import Names
from hogwild.programs.saving.sealed import write_sealed


def weights_of(model):
    """The weights of a tagger by name, the plain way: (feature, tag), (former, tag), (feature, former, tag)."""
    program = load_model(model).program
    arrays, tags = program.arrays(), program.tags
    nodes = {
        (name, tag): float(arrays["nodes"][f, k]) for f, name in enumerate(program.names) for k, tag in enumerate(tags)
    }
    edges = {(one, two): float(arrays["edges"][j, k]) for j, one in enumerate(tags) for k, two in enumerate(tags)}
    rich = {}
    for f, (first, last) in enumerate(zip(arrays["rich_starts"], arrays["rich_starts"][1:], strict=False)):
        for place in range(first, last):
            former, tag = divmod(int(arrays["rich_pairs"][place]), len(tags))
            rich[program.names[f], tags[former], tags[tag]] = float(arrays["rich"][place])
    return nodes, edges, rich


def listed(entries, heads):
    return [(*(entry[head] for head in heads), entry["weight"]) for entry in entries]


HEADS = {"features": ("feature", "tag"), "transitions": ("former", "tag"), "rich_edges": ("feature", "former", "tag")}


def check(found, expected, heads, top):
    """Whether these are the strongest of the expected weights."""
    for sign, name in ((1, "positive"), (-1, "negative")):
        order = sorted((value for value in expected.values() if sign * value > 0), key=lambda value: -sign * value)
        entries = listed(found[name], heads)
        assert [entry[-1] for entry in entries] == order[:top]
        assert all(expected[entry[:-1]] == entry[-1] for entry in entries)
        assert len({entry[:-1] for entry in entries}) == len(entries)
    assert found["weights"] == len(expected)
    assert found["zeros"] == sum(value == 0 for value in expected.values())


def test_the_strongest_of_all(hogwild, tagger):
    found = hogwild("inspect", tagger, "--top", 15, "--json").json
    assert (found["program"], set(found["classes"])) == ("crf", {"B-NP", "I-NP", "B-VP", "I-VP", "O"})
    for (kind, heads), expected in zip(HEADS.items(), weights_of(tagger), strict=True):
        check(found[kind], expected, heads, 15)
    assert found["features"]["positive"][0]["weight"] > 0 > found["features"]["negative"][0]["weight"]


def test_those_of_one_tag(hogwild, tagger):
    found = hogwild("inspect", tagger, "--tag", "B-VP", "--top", 10_000, "--json").json
    nodes, edges, rich = weights_of(tagger)
    check(found["features"], {k: v for k, v in nodes.items() if k[1] == "B-VP"}, HEADS["features"], 10_000)
    check(found["transitions"], {k: v for k, v in edges.items() if "B-VP" in k}, HEADS["transitions"], 10_000)
    check(found["rich_edges"], {k: v for k, v in rich.items() if "B-VP" in k[1:]}, HEADS["rich_edges"], 10_000)


def test_those_of_some_features(hogwild, tagger):
    found = hogwild("inspect", tagger, "--feature", "pos[0]=", "--tag", "O", "--top", 4, "--json").json
    nodes, _, rich = weights_of(tagger)
    assert "transitions" not in found  # they have no feature
    nodes = {k: v for k, v in nodes.items() if "pos[0]=" in k[0] and k[1] == "O"}
    rich = {k: v for k, v in rich.items() if "pos[0]=" in k[0] and "O" in k[1:]}
    check(found["features"], nodes, HEADS["features"], 4)
    check(found["rich_edges"], rich, HEADS["rich_edges"], 4)


def test_the_tables(hogwild, tagger):
    said = hogwild("inspect", tagger, "--top", 2)
    assert (said.code, said.err) == (0, "")
    lines = [line.split() for line in said.out.splitlines() if line.strip(" ─")]
    assert [line[0] for line in lines[::6]] == ["features:", "transitions:", "rich"]
    assert lines[1] == ["feature", "tag", "weight"]
    assert lines[13] == ["feature", "former", "tag", "weight"]
    signs = ["+", "+", "-", "-"]
    assert [line[-1][0] for k in (2, 8, 14) for line in lines[k : k + 4]] == 3 * signs
    assert "% of them 0" in said.out


def test_what_is_not_there(hogwild, refused, tagger, tmp_path):
    assert "no tag `B-PV` (did you mean B-VP?); it has " in refused("inspect", tagger, "--tag", "B-PV")
    assert "no feature of the model has `xyz` in its name" in refused("inspect", tagger, "--feature", "xyz")
    assert "top is 0" in refused("inspect", tagger, "--top", 0)
    assert "nowhere" in refused("inspect", tmp_path / "nowhere")
    assert "--tag is for taggers" in refused("inspect", make_words(tmp_path), "--tag", "x")


# -- linear models ---------------------------------------------------------------------------------------------------


RUN = ("--mode", "serial", "--lr", 0.2, "--epochs", 2)


def test_a_linear_model_by_the_ids_of_the_file(hogwild, refused, files, tmp_path):
    assert hogwild("train", "classifier", files / "train.svm", *RUN, "--output", tmp_path / "m").code == 0
    found = hogwild("inspect", tmp_path / "m", "--top", 5, "--json").json
    weight = load_model(tmp_path / "m").program.arrays()["weight"]
    best = np.argsort(-weight)[:5]
    assert [entry["feature"] for entry in found["features"]["positive"]] == [str(k + 1) for k in best]
    assert [entry["weight"] for entry in found["features"]["positive"]] == weight[best].tolist()
    assert (found["features"]["weights"], found["features"]["zeros"]) == (len(weight), int((weight == 0).sum()))
    assert "one weight a feature" in refused("inspect", tmp_path / "m", "--tag", "1")
    assert hogwild("inspect", tmp_path / "m").out.startswith("features: ")


def test_columns_and_categories_have_names(hogwild, tmp_path):
    rows = [f"{'yes' if k % 2 else 'no'},{k % 2},{'ab'[k % 2]}" for k in range(40)]
    (tmp_path / "t.csv").write_text("label,size,kind\n" + "\n".join(rows) + "\n")
    assert hogwild("train", "classifier", tmp_path / "t.csv", *RUN, "--output", tmp_path / "m").code == 0
    found = hogwild("inspect", tmp_path / "m", "--json").json
    assert {entry["feature"] for entry in found["features"]["positive"]} == {"size", "kind=b"}
    assert {entry["feature"] for entry in found["features"]["negative"]} == {"kind=a"}
    assert found["classes"] == ["no", "yes"]


@pytest.mark.parametrize("column", [False, True])
def test_hashed_words_have_names_and_classes_their_weights(hogwild, refused, tmp_path, column):
    words = {"a": "apple pear", "b": "iron zinc", "c": "moon star"}
    head = "label\ttext\n" if column else ""
    lines = "".join(f"{label}\t{text}\n" for label, text in words.items()) * 10
    (tmp_path / "t.tsv").write_text(head + lines)
    more = ("--text", "text", "--hash-bits", 8) if column else ("--hash-bits", 8)
    assert hogwild("train", "classifier", tmp_path / "t.tsv", *RUN, *more, "--output", tmp_path / "m").code == 0
    found = hogwild("inspect", tmp_path / "m", "--tag", "b", "--top", 3, "--json").json
    weight = load_model(tmp_path / "m").program.arrays()["weight"][:, 1]
    best = np.argsort(-weight, kind="stable")[:3]
    told = listed(found["features"]["positive"], ("feature", "class"))
    assert [(name, weight) for _, name, weight in told] == [("b", float(weight[k])) for k in best]
    assert all({"iron", "zinc", "iron zinc"} & set(name.split(" or ")) for name, _, _ in told)
    assert "no class `d`" in refused("inspect", tmp_path / "m", "--tag", "d")


# -- other programs ---------------------------------------------------------------------------------------------------


def test_words_by_how_frequent_they_are(hogwild, tmp_path):
    found = hogwild("inspect", make_words(tmp_path), "--top", 3, "--json").json
    assert found["frequent_words"]["of"] == 8
    assert [row["word"] for row in found["frequent_words"]["rows"]] == ["king", "man", "woman"]
    assert found["long_vectors"]["rows"][0]["length"] == pytest.approx(2**0.5)
    assert hogwild("inspect", make_words(tmp_path), "--feature", "apple").out.startswith("frequent words: 1 of 1")


@pytest.fixture
def clicks(tmp_path):
    """A table, of which `town` says more than `size`."""
    rows = [f"{'yes' if k % 3 else 'no'},{k % 7},{'abc'[k % 3]},{'xy'[k % 2]}" for k in range(90)]
    (tmp_path / "t.csv").write_text("label,size,town,kind\n" + "\n".join(rows) + "\n")
    return tmp_path / "t.csv"


def test_pairs_of_a_factorization_machine(hogwild, clicks, tmp_path):
    model = ("--model", "fm", "--dim", 2, "--init-scale", 0.3, "--output", tmp_path / "m")
    assert hogwild("train", "classifier", clicks, *RUN, *model).code == 0
    found = hogwild("inspect", tmp_path / "m", "--json", "--top", 100).json
    program = load_model(tmp_path / "m").program
    pairs = [*found["pairs"]["positive"], *found["pairs"]["negative"]]
    assert all(pair["feature"].partition("=")[0] != pair["with"].partition("=")[0] for pair in pairs)
    names = Names(program.schema)
    names, factors = {names[k]: k for k in range(program.features)}, program.arrays()["factors"]
    for pair in pairs:
        product = float(factors[names[pair["feature"]]] @ factors[names[pair["with"]]])
        assert pair["weight"] == pytest.approx(product, abs=1e-6)
    assert len({frozenset((pair["feature"], pair["with"])) for pair in pairs}) == len(pairs)
    assert len(pairs) == found["pairs"]["weights"]


def test_what_categories_and_numbers_do_in_dense_layers(hogwild, clicks, tmp_path):
    model = ("--model", "mlp", "--hidden", 4, "--dim", 2, "--batch-size", 8, "--output", tmp_path / "m")
    assert hogwild("train", "classifier", clicks, *RUN, *model).code == 0
    found = hogwild("inspect", tmp_path / "m", "--json").json
    program = load_model(tmp_path / "m").program
    means = {"size": None, "town": None, "kind": None}
    entries = [entry for sign in ("positive", "negative") for entry in found["categories"][sign]]
    told = {entry["feature"]: entry["weight"] for entry in entries}
    assert {"town=a", "kind=x"} <= set(told)
    base = program.score_row(means)[0]  # a missing number is the mean; none was in training, so nothing marks it
    assert told["town=a"] == pytest.approx(float(program.score_row({**means, "town": "a"})[0] - base), abs=1e-5)
    assert [entry["feature"] for sign in ("positive", "negative") for entry in found["numbers"][sign]] == ["size"]
    assert found["embeddings"]["of"] == program.features
    assert "town=" in hogwild("inspect", tmp_path / "m", "--feature", "town").out


def test_a_recommender(hogwild, refused, tmp_path):
    lines = [f"u{k % 7} i{k % 5} {1 + (k * k) % 5}" for k in range(70)]
    (tmp_path / "r.txt").write_text("\n".join(lines) + "\n")
    assert hogwild("train", "recommender", tmp_path / "r.txt", *RUN, "--dim", 2, "--output", tmp_path / "m").code == 0
    found = hogwild("inspect", tmp_path / "m", "--json").json
    factors = load_model(tmp_path / "m").program.factors()
    best = found["item_biases"]["positive"][0]["weight"]
    assert best == pytest.approx(float(factors.item_biases.max()))
    assert (found["items"]["of"], found["users"]["of"]) == (5, 7)
    (row,) = hogwild("inspect", tmp_path / "m", "--row", f"{tmp_path / 'r.txt'}:3", "--json").json["rows"]
    assert {term["feature"] for term in row["terms"]} == {"bias of user u2", "bias of item i2", "u2 * i2"}
    assert row["base"] + sum(term["contribution"] for term in row["terms"]) == pytest.approx(row["score"], abs=1e-5)
    (first,) = hogwild("inspect", tmp_path / "m", "--row", f"{tmp_path / 'r.txt'}:1", "--json").json["rows"]
    assert "u0 * i0" in {term["feature"] for term in first["terms"]}
    assert "is not there" in refused("inspect", tmp_path / "m", "--row", f"{tmp_path / 'r.txt'}:71")
    (tmp_path / "h.csv").write_text("user,item,rating\nu1,i1,3\nu2,i4,1\n")
    (row,) = hogwild("inspect", tmp_path / "m", "--row", f"{tmp_path / 'h.csv'}:3", "--json").json["rows"]
    assert "u2 * i4" in {term["feature"] for term in row["terms"]}
    assert "is no row" in refused("inspect", tmp_path / "m", "--row", f"{tmp_path / 'h.csv'}:1")


def test_a_program_of_somebody_else(hogwild, refused, tmp_path):
    arrays = {"layer.weight": np.array([[3.0, 0.0], [0.0, -4.0]], np.float32), "layer.bias": np.zeros(2, np.float32)}
    config = {"program": "module", "options": {}, "labels": [], "metrics": {}, "feed": None, "schema": {}}
    write_sealed(tmp_path / "m", "model", config, {"weights.safetensors": arrays})
    found = hogwild("inspect", tmp_path / "m", "--json").json["parameters"]["rows"]
    assert found[0] == {"parameter": "layer.bias", "shape": "2", "numbers": 2, "length": 0.0, "largest": 0.0}
    assert found[1] == {"parameter": "layer.weight", "shape": "2 x 2", "numbers": 4, "length": 5.0, "largest": 4.0}
    assert "layer.weight" in hogwild("inspect", tmp_path / "m", "--feature", "weight").out
    assert "--row is for programs" in refused("inspect", tmp_path / "m", "--row", "x.csv:2")


# -- one prediction ---------------------------------------------------------------------------------------------------


@pytest.fixture
def linear(hogwild, clicks, tmp_path):
    """A linear model of the table."""
    assert hogwild("train", "classifier", clicks, *RUN, "--output", tmp_path / "linear").code == 0
    return tmp_path / "linear"


def test_the_terms_of_a_row(hogwild, linear, clicks):
    (row,) = hogwild("inspect", linear, "--row", f"{clicks}:3", "--top", 2, "--json").json["rows"]
    program = load_model(linear).program
    record = {"size": "1", "town": "b", "kind": "y"}
    assert (row["row"], row["of"], row["rest"]) == (f"{clicks}:3", "yes", 0)
    assert row["predicted"] == program.predict_one(record)
    assert row["score"] == pytest.approx(float(program.score_row(record)[0]), abs=1e-5)
    terms = sum(term["contribution"] for term in row["terms"])
    assert row["base"] + terms + row["others"]["contribution"] == pytest.approx(row["score"], abs=1e-5)
    assert (len(row["terms"]), row["others"]["terms"]) == (2, 1)
    said = hogwild("inspect", linear, "--row", f"{clicks}:3")
    lines = [line.split() for line in said.out.splitlines() if line.strip(" ─")]
    assert lines[1] == ["feature", "value", "contribution"]
    assert lines[-2][0] == "score"


def test_rows_that_are_none(refused, hogwild, linear, clicks, tmp_path):
    def said(text, *more):
        return refused("inspect", linear, "--row", text, *more)

    assert "is no row, but a header" in said(f"{clicks}:1")
    assert "has 91 lines" in said(f"{clicks}:92")
    for text in (f"{clicks}:0", f"{clicks}:x", f"{clicks}", f"{clicks}:", ":3", f"{clicks}:-1"):
        assert "write FILE:LINE" in said(text)
    assert "nowhere.csv" in said(tmp_path / "nowhere.csv:3")
    (tmp_path / "odd.csv").write_text("label,size,town,kind\nyes,1,a,x\nyes,big,a,x\n\nno,1\n")
    assert "odd.csv:3" in said(tmp_path / "odd.csv:3")
    assert "is blank" in said(tmp_path / "odd.csv:4")
    assert "odd.csv:5" in said(tmp_path / "odd.csv:5")
    assert hogwild("inspect", linear, "--row", tmp_path / "odd.csv:2").code == 0
    (tmp_path / "other.csv").write_text("label,height\nyes,1\n")
    assert "size" in said(tmp_path / "other.csv:2")
    (tmp_path / "long.csv").write_text('label,size,town,kind\nyes,1,"a\nb",x\nno,2,b,y\n')
    assert "begins in line 2" in said(tmp_path / "long.csv:3")
    assert hogwild("inspect", linear, "--row", tmp_path / "long.csv:4", "--json").json["rows"][0]["row"].endswith(":4")
    assert "leave one of them out" in said(f"{clicks}:3", "--feature", "size")
    assert "--format is for --row" in refused("inspect", linear, "--format", "csv")


def test_rows_of_text_and_of_files_without_a_header(hogwild, tmp_path):
    lines = ["good\tvery fine film", "bad\tvery dull film"] * 10
    (tmp_path / "t.tsv").write_text("\n".join(lines) + "\n")
    train = ("train", "classifier", tmp_path / "t.tsv", *RUN, "--model", "text", "--dim", 4, "--output", tmp_path / "m")
    assert hogwild(*train).code == 0
    program = load_model(tmp_path / "m").program
    for line, text in ((1, "very fine film"), (4, "very dull film")):
        (row,) = hogwild("inspect", tmp_path / "m", "--row", tmp_path / f"t.tsv:{line}", "--json").json["rows"]
        assert set(text.split()) <= {term["feature"] for term in row["terms"]}
        assert row["score"] == pytest.approx(float(program.score_row(text)[0]), abs=1e-5)
    (tmp_path / "new.txt").write_text("unheard of words\n")
    (row,) = hogwild("inspect", tmp_path / "m", "--row", tmp_path / "new.txt:1", "--json").json["rows"]
    assert {"unheard", "of", "words"} <= {term["feature"] for term in row["terms"]}


def test_tokens(hogwild, refused, tagger, tagged):
    lines = (tagged / "test.txt").read_text().splitlines()
    (row,) = hogwild("inspect", tagger, "--row", f"{tagged / 'test.txt'}:2", "--json").json["rows"]
    program = load_model(tagger).program
    end = lines.index("")
    sentence = [tuple(line.split()[:-1]) for line in lines[:end]]
    assert row["predicted"] == program.tag(sentence)[1]
    assert sum(term["contribution"] for term in row["terms"]) + row["others"]["contribution"] == pytest.approx(
        row["score"], abs=1e-5
    )
    assert "is blank" in refused("inspect", tagger, "--row", f"{tagged / 'test.txt'}:{end + 1}")
    assert "is not there" in refused("inspect", tagger, "--row", f"{tagged / 'test.txt'}:{len(lines) + 5}")
