"""Options: values from texts and TOML, their checks, and the way back to TOML."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

import pytest

from hogwild.config import (
    ClassifierConfig,
    CorpusConfig,
    CRFConfig,
    FeedConfig,
    LinearConfig,
    SaveConfig,
    ShowConfig,
    SparseConfig,
    TaggerTrainConfig,
    TaggingConfig,
    TextConfig,
    TrainConfig,
    WatchConfig,
    Word2VecConfig,
    WordTrainConfig,
)
from hogwild.config.options import convert, nearest, options_of, read_toml, to_toml
from hogwild.errors import ConfigError

ALL = (
    FeedConfig, TrainConfig, LinearConfig, SaveConfig, WatchConfig, ShowConfig, SparseConfig, CorpusConfig,
    Word2VecConfig, WordTrainConfig, TaggingConfig, CRFConfig, TaggerTrainConfig, ClassifierConfig, TextConfig,
)  # fmt: skip


@dataclass(frozen=True)
class Both:
    """Two groups."""

    train: TrainConfig = field(default_factory=TrainConfig)
    linear: LinearConfig = field(default_factory=LinearConfig)


@pytest.mark.parametrize("config", ALL)
def test_every_field_has_help(config):
    for option in options_of(config).values():
        assert len(option.help) > 5, f"{config.__name__}.{option.name} has no docstring"
    assert list(options_of(config)) == [item.name for item in fields(config)]


def test_other_defaults_have_their_own_help_and_the_rest_is_inherited():
    own, first = options_of(WordTrainConfig), options_of(TrainConfig)
    assert "0.15 with --cbow" in own["lr"].help
    assert (own["lr_end"].default, first["lr_end"].default) == (0.17, 0.0)
    assert (own["shuffle"].default, first["shuffle"].default) == (False, True)
    assert (own["sharing"].default, first["sharing"].default) == ("all", "auto")
    assert {name for name in own if own[name] != first[name]} == {"lr", "lr_end", "sharing", "shuffle"}


def test_nested_options_are_in_line():
    assert {"epochs", "loss"} <= set(options_of(Both))


@pytest.mark.parametrize(
    ("config", "values", "said"),
    [
        (TrainConfig, {"lr": 0.0}, "positive"),
        (TrainConfig, {"lr": -0.1}, "positive"),
        (TrainConfig, {"lr": float("nan")}, "finite"),
        (TrainConfig, {"lr": float("inf")}, "finite"),
        (TrainConfig, {"lr": 0.0}, "Try 0.1 with adagrad, 0.01 with sgd, or leave it out."),
        (WordTrainConfig, {"lr": 0.0}, "Try 0.025, with cbow 0.15, or leave it out."),
        (TrainConfig, {"threads": 0}, "at least 1"),
        (TrainConfig, {"threads": -2}, "at least 1"),
        (TrainConfig, {"epochs": 0}, "at least 1"),
        (TrainConfig, {"mode": "hogwlid"}, "did you mean hogwild"),
        (TrainConfig, {"seed": -1}, "negative"),
        (TrainConfig, {"patience": -1}, "negative"),
        (FeedConfig, {"hash_bits": 31}, "between 1 and 30"),
        (FeedConfig, {"bad_share": 1.5}, "between 0 and 1"),
        (FeedConfig, {"format": "svm"}, "svmlight"),
        (LinearConfig, {"l2": -1.0}, "negative"),
        (LinearConfig, {"l1": float("nan")}, "finite"),
        (LinearConfig, {"class_weight": {"a": 0.0}}, "positive"),
        (LinearConfig, {"class_weight": {"a": 2.0}, "balanced": True}, "choose one"),
        (TaggingConfig, {"features": ""}, "name a preset"),
        (TaggingConfig, {"min_count": 0}, "at least 1"),
        (TaggingConfig, {"format": "conl"}, "did you mean conll"),
        (CRFConfig, {"l2": -1.0}, "negative"),
        (CRFConfig, {"l1": float("nan")}, "finite"),
        (CRFConfig, {"rich_edge_min_count": 0}, "at least 1"),
        (CRFConfig, {"structure_regularization": 1001}, "between 0"),
        (TaggerTrainConfig, {"lr": 0.0}, "Try 0.05 with sgd, or leave it out."),
        (SaveConfig, {"resume": True}, "output"),
        (SaveConfig, {"checkpoint_every": "10m"}, "output"),
        (SparseConfig, {"nonzeros": "9:3"}, "low before high"),
        (SparseConfig, {"nonzeros": "x"}, "low before high"),
        (SparseConfig, {"nonzeros": "11", "features": 10}, "all 10 features"),
        (SparseConfig, {"noise": 0.5}, "below 0.5"),
        (SparseConfig, {"rows": 0}, "at least 1"),
    ],
)
def test_a_value_that_cannot_work_is_named_with_a_remedy(config, values, said):
    with pytest.raises(ConfigError, match=said) as caught:
        config(**values)
    assert any(name in str(caught.value) for name in values)
    assert "\n" not in str(caught.value)


def test_texts_become_values():
    train, linear = options_of(TrainConfig), options_of(LinearConfig)
    assert convert(train["epochs"], "7", "--epochs") == 7
    assert convert(train["lr"], "1e-3", "--lr") == 1e-3
    assert convert(linear["class_weight"], ("a=2", "b=c=0.5"), "--class-weight") == {"a": 2.0, "b=c": 0.5}
    assert convert(options_of(FeedConfig)["ignore"], "id", "ignore") == ("id",)


@pytest.mark.parametrize(
    ("config", "name", "value"),
    [
        (TrainConfig, "epochs", "five"),
        (TrainConfig, "epochs", "1.5"),
        (TrainConfig, "epochs", 1.5),
        (TrainConfig, "epochs", True),
        (TrainConfig, "lr", "fast"),
        (TrainConfig, "trace", "yes"),
        (TrainConfig, "mode", 3),
        (LinearConfig, "class_weight", "spam"),
        (LinearConfig, "class_weight", {"spam": "much"}),
        (FeedConfig, "ignore", [["a"]]),
        (FeedConfig, "ignore", 2.5),
    ],
)
def test_texts_that_are_no_such_value(config, name, value):
    with pytest.raises(ConfigError, match=r"^--x is "):
        convert(options_of(config)[name], value, "--x")


def test_columns_are_given_with_commas_or_one_by_one():
    for given in (("w,pos, tag",), ("w", "pos", "tag"), ("w", "pos,tag")):
        assert TaggingConfig(columns=given).columns == ("w", "pos", "tag")


def test_nearest_knows_beginnings_and_slips():
    assert "epochs" in nearest("epcohs", ["epochs", "mode"])
    assert "make-dataset" in nearest("mak", ["make-dataset", "train"])
    assert nearest("zzz", ["epochs"]) == ""


def _round_trip(config, tmp_path):
    path = tmp_path / "run.toml"
    path.write_text(to_toml(config), encoding="utf-8")
    return read_toml(str(path), type(config))


@pytest.mark.parametrize(
    "config",
    [
        FeedConfig(label="a \"quoted\" näme\n\x7f\t", numeric=("x", "y"), bad_share=1 / 3, cache=False),
        TrainConfig(threads=3, lr=1e-7, mode="round-robin"),
        LinearConfig(class_weight={"sp am": 2.0, "=": 0.1}, l1=1e-300),
        WordTrainConfig(lr=0.5, shuffle=True),
        TaggingConfig(columns=("w", "-", "tag"), features="my templates.txt"),
        CRFConfig(l2=0.5, rich_edges=False, average=True),
        SparseConfig(nonzeros="3:7"),
        ShowConfig(json=True),
    ],
)
def test_toml_round_trip(config, tmp_path):
    assert type(config)(**_round_trip(config, tmp_path)) == config


def test_toml_round_trip_of_groups(tmp_path):
    values = _round_trip(Both(train=TrainConfig(epochs=9), linear=LinearConfig(bias=False)), tmp_path)
    assert values["epochs"] == 9
    assert values["bias"] is False
    assert "threads" not in values     # None: the default


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("epoch = 3", "unknown key 'epoch' .*epochs"),
        ("learning_rate = 3", "unknown key 'learning_rate' .did you mean lr"),
        ("epochs = 'three'", "run.toml: epochs is 'three'; it must be a whole number"),
        ("hot-rows = 1\nhot_rows = 2", "given twice"),
        ("epochs = ", "not valid TOML"),
        ("mode = 'seriel'", "did you mean serial"),
    ],
)
def test_toml_that_cannot_be_used(text, said, tmp_path):
    path = tmp_path / "run.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=said):
        read_toml(str(path), TrainConfig)


def test_toml_keys_may_have_dashes(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text("hot-rows = 7\nlr = 1")
    assert read_toml(str(path), TrainConfig) == {"hot_rows": 7, "lr": 1.0}


def test_toml_file_that_is_missing():
    with pytest.raises(ConfigError, match=r"nowhere.toml: No such file"):
        read_toml("nowhere.toml", TrainConfig)
