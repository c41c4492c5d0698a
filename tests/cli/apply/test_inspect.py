"""`hogwild inspect`: the strongest weights of a model."""

from __future__ import annotations

import numpy as np
import pytest

from cli.words import make_words
from hogwild import load_model


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
    assert "see hogwild neighbors" in refused("inspect", make_words(tmp_path))


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
def test_hashed_words_have_numbers_and_classes_their_weights(hogwild, refused, tmp_path, column):
    words = {"a": "apple pear", "b": "iron zinc", "c": "moon star"}
    head = "label\ttext\n" if column else ""
    lines = "".join(f"{label}\t{text}\n" for label, text in words.items()) * 10
    (tmp_path / "t.tsv").write_text(head + lines)
    more = ("--text", "text", "--hash-bits", 8) if column else ("--hash-bits", 8)
    assert hogwild("train", "classifier", tmp_path / "t.tsv", *RUN, *more, "--output", tmp_path / "m").code == 0
    found = hogwild("inspect", tmp_path / "m", "--tag", "b", "--top", 3, "--json").json
    weight = load_model(tmp_path / "m").program.arrays()["weight"][:, 1]
    best = np.argsort(-weight, kind="stable")[:3]
    assert listed(found["features"]["positive"], ("feature", "class")) == [
        (f"hash {k}", "b", float(weight[k])) for k in best
    ]
    assert "no class `d`" in refused("inspect", tmp_path / "m", "--tag", "d")
