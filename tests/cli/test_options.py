"""Options: values from texts and TOML, their checks, and the dataclasses that are chosen."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Literal

import numpy as np
import pytest

from hogwild.config import (
    BiLSTMConfig,
    ClassConfig,
    CorpusConfig,
    CRFConfig,
    FeedConfig,
    FMConfig,
    LinearConfig,
    RatingConfig,
    RecommenderConfig,
    RecommenderTrainConfig,
    SaveConfig,
    ShowConfig,
    SparseConfig,
    SparseMLPConfig,
    TaggerTrainConfig,
    TaggingConfig,
    TextConfig,
    TrainConfig,
    WatchConfig,
    Word2VecConfig,
    WordTrainConfig,
)
from hogwild.config.classifying import CtrOptions
from hogwild.config.options import (
    build,
    choices_of,
    convert,
    flags_of,
    groups_of,
    nearest,
    options_of,
    read_toml,
    values_of,
)
from hogwild.errors import ConfigError

ALL = (
    FeedConfig, TrainConfig, LinearConfig, SaveConfig, WatchConfig, ShowConfig, SparseConfig, CorpusConfig,
    Word2VecConfig, WordTrainConfig, TaggingConfig, CRFConfig, TaggerTrainConfig, ClassConfig, TextConfig, FMConfig,
    BiLSTMConfig, SparseMLPConfig, RatingConfig, RecommenderConfig, RecommenderTrainConfig,
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
    assert sorted(options_of(config)) == sorted(item.name for item in fields(config))


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
        (ClassConfig, {"class_weight": {"a": 0.0}}, "positive"),
        (ClassConfig, {"class_weight": {"a": 2.0}, "balanced": True}, "choose one"),
        (TaggingConfig, {"min_count": 0}, "at least 1"),
        (TaggingConfig, {"format": "conl"}, "did you mean conll"),
        (CRFConfig, {"l2": -1.0}, "negative"),
        (CRFConfig, {"l1": float("nan")}, "finite"),
        (CRFConfig, {"rich_edge_min_count": 0}, "at least 1"),
        (CRFConfig, {"structure_regularization": 1001}, "between 0"),
        (BiLSTMConfig, {"hidden": 0}, "between 1 and 4096. Try 200."),
        (BiLSTMConfig, {"layers": 9}, "between 1 and 8. Try 1."),
        (BiLSTMConfig, {"word_dim": -1}, "between 1 and 4096. Try 100."),
        (BiLSTMConfig, {"feature_dim": 1025}, "between 1 and 1024. Try 25."),
        (BiLSTMConfig, {"letter_dim": 0}, "between 1 and 256. Try 25."),
        (BiLSTMConfig, {"letter_filters": 0}, "between 1 and 1024. Try 50."),
        (BiLSTMConfig, {"batch_size": 0}, "between 1 and 4096. Try 8."),
        (BiLSTMConfig, {"dropout": 1.0}, "from 0 to below 1. Try 0.3."),
        (BiLSTMConfig, {"word_dropout": -0.1}, "from 0 to below 1"),
        (BiLSTMConfig, {"unknown_share": 1.1}, "between 0 and 1. Try 0.5."),
        (BiLSTMConfig, {"clip": -1.0}, "negative. Try 5"),
        (BiLSTMConfig, {"l2": -1.0}, "negative"),
        (BiLSTMConfig, {"recurrence": "ful"}, "did you mean full"),
        (BiLSTMConfig, {"products": "bf16"}, "did you mean bfloat16"),
        (BiLSTMConfig, {"letters": "lstm"}, "choose one of none, convolution"),
        (TaggerTrainConfig, {"lr": 0.0}, "Try 0.05 with sgd, 0.002 with adam, or leave it out."),
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
    train, classes = options_of(TrainConfig), options_of(ClassConfig)
    assert convert(train["epochs"], "7", "--epochs") == 7
    assert convert(train["lr"], "1e-3", "--lr") == 1e-3
    assert convert(classes["class_weight"], ("a=2", "b=c=0.5"), "--class-weight") == {"a": 2.0, "b=c": 0.5}
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
        (ClassConfig, "class_weight", "spam"),
        (ClassConfig, "class_weight", {"spam": "much"}),
        (FeedConfig, "ignore", [["a"]]),
        (FeedConfig, "ignore", 2.5),
    ],
)
def test_texts_that_are_no_such_value(config, name, value):
    with pytest.raises(ConfigError, match=r"^--x is "):
        convert(options_of(config)[name], value, "--x")


@pytest.mark.parametrize("model", [FMConfig, LinearConfig, SparseMLPConfig, TextConfig])
def test_an_update_rule_may_be_left_to_the_model_by_name(model):
    rule = options_of(model)["optimizer"]
    assert convert(rule, "auto", "--optimizer") == model().optimizer
    assert "auto" not in rule.choices


def test_columns_are_given_with_commas_or_one_by_one():
    for given in (("w,pos, tag",), ("w", "pos", "tag"), ("w", "pos,tag")):
        assert TaggingConfig(columns=given).columns == ("w", "pos", "tag")


def test_nearest_knows_beginnings_and_slips():
    assert "epochs" in nearest("epcohs", ["epochs", "mode"])
    assert "make-dataset" in nearest("mak", ["make-dataset", "train"])
    assert nearest("zzz", ["epochs"]) == ""


@dataclass(frozen=True)
class Clicks:
    """A command with a choice."""

    model: Literal["mlp", "wide-deep", "fm", "ffm", "linear"] = "mlp"
    """Which."""
    own: CtrOptions = field(default_factory=SparseMLPConfig)
    train: TrainConfig = field(default_factory=TrainConfig)


def test_the_chosen_dataclass_is_in_line_without_what_is_fixed():
    assert choices_of(Clicks) == options_of(Clicks)["model"].choices
    assert choices_of(Both) == ("",)
    assert {"hidden", "epochs"} <= set(options_of(Clicks))
    assert "hidden" not in options_of(Clicks, "ffm")
    assert "field_aware" not in options_of(Clicks, "fm")
    assert [group.title for group in groups_of(Clicks, "fm")] == [
        "A command with a choice", "Options of factorization machines", "How training runs",
    ]  # fmt: skip


def test_the_chosen_dataclass_is_built_with_what_is_fixed():
    assert build(Clicks, {"dim": 3, "epochs": 2}, "ffm").own == FMConfig(dim=3, field_aware=True)
    assert build(Clicks, {"hidden": (3,)}, "wide-deep").own == SparseMLPConfig(hidden=(3,), wide=True)
    assert build(Clicks, {}).own == SparseMLPConfig()


def test_options_of_a_class_come_before_those_that_it_inherits():
    names = list(options_of(FeedConfig))
    assert names[:2] == ["format", "label"]
    assert names[-5:] == ["bad_lines", "bad_share", "invalid_utf8", "pipe", "cache"]
    assert list(options_of(TaggerTrainConfig)) == list(options_of(TrainConfig))


def test_whole_numbers_with_commas():
    hidden = options_of(SparseMLPConfig)["hidden"]
    for given in ("128,64", ["128", "64"], [128, 64], ("128,64",)):
        assert convert(hidden, given, "--hidden") == (128, 64)
    with pytest.raises(ConfigError, match=r"^--hidden is 'x'; write whole numbers with commas .* such as 128,64"):
        convert(hidden, "12,x", "--hidden")
    assert SparseMLPConfig(hidden=[128, np.int64(0), 3]).hidden == (128, 3)  # 0: no such layer


def test_numbers_are_those_of_python():
    config = FMConfig(dim=np.int64(3), l2=np.float32(0.5), bias=np.bool_(False))
    assert [type(value) for value in (config.dim, config.l2, config.bias)] == [int, float, bool]
    assert type(LinearConfig(l2=1).l2) is float


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
        values_of(read_toml(str(path)), str(path), flags_of(TrainConfig))


def test_toml_keys_may_have_dashes(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text("hot-rows = 7\nlr = 1")
    assert values_of(read_toml(str(path)), str(path), flags_of(TrainConfig)) == {"hot_rows": 7, "lr": 1.0}


def test_toml_file_that_is_missing():
    with pytest.raises(ConfigError, match=r"nowhere.toml: No such file"):
        read_toml("nowhere.toml")
