"""Lists in Parquet and Arrow files: columns that are found, rows as they are, and what can be wrong with them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from hogwild.config import FeedConfig
from hogwild.errors import ConfigError, InputError, ModelError
from hogwild.feeds.open import open_feed

ROWS = {"label": [1, 0, 1], "nz_idx": [[4, 7], [], [0]], "nz_values": [[0.5, 2.0], None, [1.5]]}


@pytest.fixture
def opened(tmp_path):
    """A table as a feed, by way of a file."""

    def call(columns, schema=None, form="parquet", **options):
        path = str(tmp_path / f"rows.{form}")
        table = pa.table(columns)
        pa.parquet.write_table(table, path) if form == "parquet" else pa.feather.write_feather(table, path)
        return open_feed(path, FeedConfig(cache=False, **options), schema)

    return call


def plain(feed):
    """Features and values of each row, and its target."""
    rows = feed.samples
    ids = feed.original[rows.ids]
    values = rows.values if hasattr(rows, "values") else np.ones(len(ids))
    return [
        (sorted(zip(ids[a:b].tolist(), values[a:b].tolist(), strict=True)), float(target))
        for a, b, target in zip(rows.offsets, rows.offsets[1:], rows.targets, strict=False)
    ]


@pytest.mark.parametrize("form", ["parquet", "feather"])
def test_rows_are_as_in_the_file(opened, form):
    feed = opened(ROWS, form=form)
    assert plain(feed) == [([(4, 0.5), (7, 2.0)], 1), ([], 0), ([(0, 1.5)], 1)]
    assert feed.features == 8
    assert feed.lines.tolist() == [1, 2, 3]
    assert "Ids are in column `nz_idx`, values in `nz_values`, the label in `label`" in feed.notes[0]


@pytest.mark.parametrize("types", [(pa.list_, pa.int32(), pa.float64()), (pa.large_list, pa.uint8(), pa.float16())])
def test_types_of_lists(opened, types):
    make, ids, values = types
    table = {
        "label": pa.array([1.0, 0.0, 1.0]),
        "nz_idx": pa.array(ROWS["nz_idx"], make(ids)),
        "nz_values": pa.array([[np.float16(x) for x in row or []] for row in ROWS["nz_values"]], make(values)),
    }
    assert plain(opened(table)) == plain(opened(ROWS))


def test_binary_and_limits(opened):
    feed = opened(ROWS, binary=True, features=100)
    assert plain(feed)[0] == ([(4, 1.0), (7, 1.0)], 1)
    assert feed.features == 100
    assert plain(opened({name: ROWS[name] for name in ("label", "nz_idx")})) == plain(feed)


def test_a_model_reads_what_it_knows(opened):
    known = opened(ROWS).schema
    later = opened({"nz_idx": [[7, 8, 9]], "nz_values": [[1.0, 2.0, 3.0]]}, known, unlabelled=True)
    assert plain(later) == [([(7, 1.0)], 0)]
    assert later.features == 8
    assert "2 values left out: their ids lie past the 8 known features." in later.notes
    with pytest.raises(InputError, match=r"there is no column `label`"):
        opened({"nz_idx": [[7]], "nz_values": [[1.0]]}, known)
    with pytest.raises(ModelError, match="damaged"):
        opened(ROWS, {"format": "lists"})


def test_other_columns_are_never_passed_over_in_silence(opened):
    more = {**ROWS, "age": [1, 2, 3]}
    with pytest.raises(InputError, match="column `nz_values` is of type list"):
        opened(more)
    feed = opened(more, indices="nz_idx", label="label")
    assert "Columns that are not read: age." in feed.notes
    assert plain(opened(more, ignore=("age",))) == plain(opened(ROWS))


def test_names_that_the_user_gives(opened):
    table = {"clicked": [1, 0], "ads": [[1], [2]], "words": [[3], [4]], "how": [[0.5], [1.5]]}
    with pytest.raises(InputError, match=r"which column holds lists of ids\? It could be ads, words; say --indices"):
        opened(table)
    assert plain(opened(table, indices="words", label="clicked")) == [([(3, 0.5)], 1), ([(4, 1.5)], 0)]
    with pytest.raises(InputError, match=r"column `how` \(--indices\) does not hold lists of ids"):
        opened(table, indices="how")
    with pytest.raises(ConfigError, match="leave out one of the two"):
        opened(ROWS, binary=True, values="nz_values")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"nz_idx": [[4, -7], [], [0]]}, ":1: an id is below 0"),
        ({"nz_idx": [[4, 7], [], [2**31]]}, ":3: an id lies past the 2147483648 features"),
        ({"nz_idx": [[4, 7], [], [0, 1]]}, ":3: the lists of ids and of values differ in length"),
        ({"nz_idx": [[4, None], [], [0]]}, ":1: `nz_idx` has an empty place"),
        ({"nz_values": [[0.5, 2.0], [], [float("nan")]]}, ":3: a value is not a finite number"),
        ({"nz_values": [[0.5, 1e300], [], [1.0]]}, ":1: a value is not a finite number"),
        ({"label": [1, None, 0]}, ":2: the label is missing"),
        ({"label": ["a", "b", "c"]}, "which column holds numbers as labels"),
    ],
)
def test_what_is_wrong(opened, change, message):
    with pytest.raises(InputError, match=message):
        opened({**ROWS, **change})
    if message.startswith(":"):
        feed = opened({**ROWS, **change}, bad_lines="skip", bad_share=0.5)
        assert len(feed) == 2
        assert any("1 of 3 rows malformed" in note for note in feed.notes)


def test_an_id_past_the_features_asked_for(opened):
    with pytest.raises(InputError, match=":1: an id lies past the 7 features"):
        opened(ROWS, features=7)


def test_labels_of_many_digits(opened):
    rows = {**ROWS, "label": pa.array([2**62 + 1, -(2**63), 1])}
    assert [target for _, target in plain(opened(rows))] == [2.0**62, -(2.0**63), 1]
    with pytest.raises(InputError, match="2: the label is missing or not finite"):
        opened({**ROWS, "label": [1.0, 1e300, 0.0]})


@pytest.mark.parametrize(
    ("name", "column", "what"),
    [
        ("nz_values", [{"list": [0.5]}, {"list": []}, {"list": [1.5]}], "lists of values"),
        ("nz_values", [["a"], [], ["b"]], "lists of values"),
        ("nz_idx", [[0.5], [], [1.5]], "lists of ids"),
        ("nz_idx", [4, 7, 0], "lists of ids"),
    ],
)
def test_a_file_for_a_model_with_columns_of_other_kinds(opened, name, column, what):
    schema = opened(ROWS).schema
    with pytest.raises(InputError, match=f"column `{name}` is of type .*, where {what} are needed"):
        opened({**ROWS, name: column}, schema)
    empty = opened({**ROWS, "nz_idx": [[], [], []], "nz_values": [[], [], []]}, schema)
    assert plain(empty) == [([], 1), ([], 0), ([], 1)]
