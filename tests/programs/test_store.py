"""Saving and loading models: what goes in comes out, what is damaged or hostile is refused."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hogwild.config import FeedConfig
from hogwild.errors import ConfigError, ModelError, SaveError
from hogwild.programs import store
from hogwild.programs.saving import sealed
from hogwild.programs.store import Model, check_model_output, load_model
from problems.tiny import Tiny, save, value_at, value_of


@pytest.fixture(autouse=True)
def known_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(store.PROGRAMS, "tiny", "problems.tiny:Tiny")


LONG = "x" * 100_000


def edit(path: Path, change: Any) -> None:
    """Change the config.json of a model."""
    file = path / "config.json"
    config = json.loads(file.read_text(encoding="utf-8"))
    change(config)
    file.write_text(json.dumps(config), encoding="utf-8")


def reseal(path: Path, name: str, content: bytes) -> None:
    """Change a file and its checksum with it, as an attacker would."""
    (path / name).write_bytes(content)

    def change(config: Any) -> None:
        config["files"][name] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}

    edit(path, change)


# -- there and back ---------------------------------------------------------------------------------------------


def test_everything_comes_back(tmp_path: Path) -> None:
    words = [f"word {n}" for n in range(100)] + ["back\\slash", "line\nfeed", "\\n", "", "\r", "naïve ☃", "\x85\u2028"]
    schema = {"parts": [{"name": "city", "values": words}, {"name": "n"}], "bits": 20, "short": ["a", "b"]}
    config = FeedConfig(format="csv", label="y", numeric=("a", "b"), bad_share=0.25)
    labels = tuple(f"label {n}" for n in range(40))
    metrics = {"loss": 0.5, "auc": np.nan}
    save(tmp_path / "m", 2.5, feed_schema=schema, feed_config=config, labels=labels, metrics=metrics)
    model = load_model(tmp_path / "m")
    assert isinstance(model, Model)
    assert value_of(model.program) == 2.5  # type: ignore[arg-type]
    assert model.schema == schema
    assert model.feed_config == config
    assert model.labels == labels
    assert model.metrics["loss"] == 0.5
    assert np.isnan(model.metrics["auc"])
    assert sorted(os.listdir(tmp_path / "m")) == [
        "config.json", "vocabulary-1.txt", "vocabulary-2.txt", "weights.safetensors"
    ]  # fmt: skip
    assert "word 7" not in (tmp_path / "m" / "config.json").read_text(encoding="utf-8")
    assert "\nword 7\n" in (tmp_path / "m" / "vocabulary-2.txt").read_text(encoding="utf-8")


def test_a_command_of_the_user_never_travels_in_a_model(tmp_path: Path) -> None:
    path = save(tmp_path / "m", feed_config=FeedConfig(pipe="zcat", cache=False))
    assert "zcat" not in (path / "config.json").read_text(encoding="utf-8")
    assert load_model(path).feed_config == FeedConfig()
    edit(path, lambda config: config["feed"].update(pipe="touch owned"))
    with pytest.raises(ModelError, match="do not trust"):
        load_model(path)


def test_loaded_arrays_may_be_written_to_and_do_not_change_the_file(tmp_path: Path) -> None:
    path = save(tmp_path / "m", 1.0)
    found = sealed.read_sealed(path, "model").arrays["weights.safetensors"]["matrix"]
    found[:] = 9
    assert value_at(path) == 1.0


def test_missing_parents_are_made_and_links_stay(tmp_path: Path) -> None:
    real = save(tmp_path / "a" / "b" / "m", 1.0)
    link = tmp_path / "latest"
    link.symlink_to(real)
    save(link, 2.0)
    assert link.is_symlink()
    assert value_at(real) == value_at(link) == 2.0


def test_an_empty_directory_is_taken_and_the_mode_is_the_users(tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    check_model_output(tmp_path / "m")
    save(tmp_path / "m")
    umask = os.umask(0)
    os.umask(umask)
    assert (tmp_path / "m").stat().st_mode & 0o777 == 0o777 & ~umask


def test_a_program_of_the_users_own_is_given_to_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save(tmp_path / "m", 3.0)
    monkeypatch.delitem(store.PROGRAMS, "tiny")
    with pytest.raises(ModelError, match="give load_model the program"):
        load_model(path)
    own = Tiny()
    assert load_model(path, own).program is own
    assert value_of(own) == 3.0
    own.name = "other"  # type: ignore[misc]
    with pytest.raises(ModelError, match="'tiny', not of 'other'"):
        load_model(path, own)


def test_a_program_that_cannot_be_saved_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Tiny) -> dict[str, Any]:
        raise NotImplementedError("Tiny does not say how it is saved")

    monkeypatch.setattr(Tiny, "options", refuse)
    with pytest.raises(SaveError, match="options"):
        save(tmp_path / "m")
    monkeypatch.setattr(Tiny, "options", lambda self: {"rows": {1, 2}})
    with pytest.raises(SaveError, match="JSON values"):
        save(tmp_path / "m")
    assert os.listdir(tmp_path) == []


# -- damaged and hostile ----------------------------------------------------------------------------------------


def refused(path: Path, match: str) -> None:
    """Loading is refused in one line that names the directory."""
    with pytest.raises(ModelError, match=match) as caught:
        load_model(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 2


def test_nothing_there(tmp_path: Path) -> None:
    refused(tmp_path / "m", "no such model")
    (tmp_path / "file").write_text("x")
    refused(tmp_path / "file", "is a file")
    (tmp_path / "empty").mkdir()
    refused(tmp_path / "empty", "config.json is missing")


def test_every_truncation_and_every_changed_byte_of_the_weights_is_seen(tmp_path: Path) -> None:
    path = save(tmp_path / "m")
    file = path / "weights.safetensors"
    whole = file.read_bytes()
    for length in range(len(whole)):
        file.write_bytes(whole[:length])
        refused(path, "cut short")
    for place in range(0, len(whole), 7):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        refused(path, "checksum")
    file.unlink()
    refused(path, "weights.safetensors is missing")


def test_every_truncation_of_config_is_seen(tmp_path: Path) -> None:
    path = save(tmp_path / "m", labels=[str(n) for n in range(20)])
    whole = (path / "config.json").read_bytes()
    for length in range(len(whole.rstrip())):
        (path / "config.json").write_bytes(whole[:length])
        refused(path, "not valid JSON")


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda c: c.update(version=99), "upgrade hogwild"),
        (lambda c: c.update(version="1"), "version"),
        (lambda c: c.update(version=True), "version"),
        (lambda c: c.pop("version"), "version"),
        (lambda c: c.update(format="other"), "not written by hogwild"),
        (lambda c: c.update(format="hogwild checkpoint"), "a checkpoint, not a model"),
        (lambda c: c.update(program="os:system"), "is not one of"),
        (lambda c: c.update(program=3), "'program'"),
        (lambda c: c.pop("options"), "'options'"),
        (lambda c: c.update(options={"colour": 1}), "make no 'tiny' program"),
        (lambda c: c.update(options={"rows": -1}), "make no 'tiny' program"),
        (lambda c: c.update(options={"rows": 4}), "does not fit"),
        (lambda c: c.update(labels="ab"), "'labels'"),
        (lambda c: c.update(labels=[1]), "label"),
        (lambda c: c.update(metrics={"loss": "low"}), "metric"),
        (lambda c: c.update(schema=[]), "no place"),
        (lambda c: c.pop("metrics"), "'metrics'"),
        (lambda c: c.update(feed={"colour": 1}), "feed"),
        (lambda c: c.update(feed={"hash_bits": 99}), "hash_bits"),
        (lambda c: c.update(feed={"hash_bits": {}}), "hash_bits"),
        (lambda c: c.update(feed={"format": "exe"}), "format"),
        (lambda c: c.update(feed={"min_count": "few"}), "min_count"),
        (lambda c: c.update(feed={"format": LONG}), "format"),
        (lambda c: c.update(feed={"hash_bits": LONG}), "hash_bits"),
        (lambda c: c.update(program=LONG), "is not one of"),
        (lambda c: c.update(options={LONG: 1}), "make no 'tiny' program"),
        (lambda c: c.update(version=LONG), "version"),
        (lambda c: c["files"].update({LONG: 1}), "do not trust"),
        (lambda c: c["schema"].update(labels={"kind": "words", "names": ["a", 1]}), "schema is damaged: labels"),
        (lambda c: c["schema"].update(labels={"kind": "words", "names": ["a", "a"]}), "schema is damaged: labels"),
        (lambda c: c["schema"].update(labels={"kind": [], "names": []}), "schema is damaged: labels"),
        (lambda c: c["schema"].update(min_count="5"), "schema is damaged: min_count"),
        (lambda c: c["schema"].update(min_count=LONG), "schema is damaged: min_count"),
        (lambda c: c["schema"].update(format=LONG), "schema is damaged: format"),
        (lambda c: c["schema"].update(format="svmlight", zero_based=True), "schema is damaged: features is missing"),
        (lambda c: c["schema"].update(features=2**31), "schema is damaged: features"),
        (lambda c: c["schema"].update(scales=[1.0, float("nan")]), "schema is damaged: scales"),
        (lambda c: c["schema"].update(scales=[0]), "schema is damaged: scales"),
        (lambda c: c["schema"].update(hashing={"bits": 31, "seed": 1}), "schema is damaged: hashing"),
        (lambda c: c["schema"].update(hashing={"bits": 20, "seed": "1"}), "schema is damaged: hashing"),
        (lambda c: c["schema"].update(sizes=[2**31, 1]), "schema is damaged: sizes"),
        (lambda c: c["schema"].update(plan=[{"name": []}]), "schema is damaged: plan"),
        (lambda c: c["schema"].update(columns=["\ud800"]), "schema is damaged: columns"),
        (lambda c: c.update(files=None), "files|cannot be one"),
        (lambda c: c.update(files={}), "lists no weights|vocabularies"),
        (lambda c: c["files"].update({"../outside.safetensors": c["files"]["weights.safetensors"]}), "do not trust"),
        (lambda c: c["files"].update({"/etc/passwd": {"bytes": 1, "sha256": ""}}), "do not trust"),
        (lambda c: c["files"].update({"config.json": {"bytes": 1, "sha256": ""}}), "do not trust"),
        (lambda c: c["files"]["weights.safetensors"].update(bytes="8"), "do not trust"),
        (lambda c: c["files"]["weights.safetensors"].update(bytes=1 << 62), "cut short"),
        (lambda c: c["files"]["weights.safetensors"].update(sha256=7), "do not trust"),
        (lambda c: c["files"].update({"vocabulary-2.txt": {"bytes": 1, "sha256": ""}}), "vocabulary-2.txt is missing"),
        (lambda c: c.update(vocabularies={}), "vocabularies"),
        (lambda c: c.update(vocabularies={"vocabulary-1.txt": []}), "no place"),
        (lambda c: c.update(vocabularies={"vocabulary-1.txt": ["files"]}), "no place"),
        (lambda c: c.update(vocabularies={"vocabulary-1.txt": ["schema", "words", "x"]}), "no place"),
        (lambda c: c.update(vocabularies={"vocabulary-1.txt": 5}), "no place"),
    ],
)
def test_hostile_config(tmp_path: Path, change: Any, match: str) -> None:
    path = save(tmp_path / "m", feed_schema={"words": [str(n) for n in range(20)]})
    edit(path, change)
    refused(path, match)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        (b'{"a": 1, "a": 2}', "twice"),
        (b"[" * 200_000, "deeply"),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "deeply"),
        (b'{"version": ' + b"9" * 10_000 + b"}", "not valid JSON"),
        (b'{"a": 18446744073709551616}', "more than 64 bits"),
        (b'{"a": -9223372036854775809}', "more than 64 bits"),
        (b'{"a":' * 40 + b"1" + b"}" * 40, "deeply"),
        (b"[]", "no JSON object"),
        (b"\xff\xfe", "not valid JSON"),
        (b"", "not valid JSON"),
        (b" " * (sealed.CONFIG_LIMIT + 1), "too many"),
    ],
)
def test_config_that_is_not_ours(tmp_path: Path, text: bytes, match: str) -> None:
    path = save(tmp_path / "m")
    (path / "config.json").write_bytes(text)
    refused(path, match)


def test_links_pipes_and_directories_are_not_followed(tmp_path: Path) -> None:
    path = save(tmp_path / "m")
    file = path / "weights.safetensors"
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    refused(path, "link")
    file.unlink()
    os.mkfifo(file)
    refused(path, "not a plain file")
    file.unlink()
    file.mkdir()
    refused(path, "not a plain file")


@pytest.mark.parametrize("text", [b"no end", b"bad \\x escape\n", b"bad end \\\n", b"bad \\u12\n", b"\xff\n"])
def test_hostile_vocabulary(tmp_path: Path, text: bytes) -> None:
    path = save(tmp_path / "m", labels=[str(n) for n in range(20)])
    reseal(path, "vocabulary-1.txt", text)
    refused(path, "vocabulary")


def test_too_much_to_say_in_config_is_refused_when_saving(tmp_path: Path) -> None:
    with pytest.raises(SaveError, match="bytes"):
        save(tmp_path / "m", feed_schema={"x": "y" * sealed.CONFIG_LIMIT})


def test_resealed_weights_still_have_to_fit(tmp_path: Path) -> None:
    path = save(tmp_path / "m")
    header = json.dumps({"matrix": {"dtype": "F32", "shape": [2**40, 2**40], "data_offsets": [0, 2**60]}}).encode()
    reseal(path, "weights.safetensors", len(header).to_bytes(8, "little") + header)
    refused(path, "impossible shape")


def test_an_option_refused_by_the_program_is_an_error_of_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = save(tmp_path / "m")

    def refuse(self: Tiny, **options: Any) -> None:
        raise ConfigError("rows is 3; it must be 4.")

    monkeypatch.setattr(Tiny, "__init__", refuse)
    refused(path, "must be 4")


def test_path_and_program_in_the_wrong_order(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"is no program; write save_model\(path, program\)"):
        store.save_model(Tiny(value=1.0), tmp_path / "m")  # type: ignore[arg-type]
