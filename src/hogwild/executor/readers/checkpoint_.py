"""Checkpoints: all that a run needs to go on after its process has ended, however it ended.

The checkpoint of the output `model` is the directory `model.checkpoint` beside it, sealed and replaced in one step like
a model: the old one goes only when the new one is complete. It stands beside and not inside, because a model directory
is replaced as a whole, and whoever reads or copies it gets a model and nothing else.
Numbers are stored as their bits in safetensors, never as decimal text, so that `serial` goes on bit for bit.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields
from os import PathLike
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np

from hogwild.config.kinds import Sharing
from hogwild.errors import ConfigError, ModelError, brief, shorten
from hogwild.executor.position import Position, RunState
from hogwild.programs.program import Program
from hogwild.programs.saving.sealed import Sealed, check_sealed_output, plain, read_sealed, write_sealed
from hogwild.programs.saving.tensors import Arrays
from hogwild.programs.store import STRAY, WEIGHTS, arrays_of, restore, saved_parts

KIND = "checkpoint"
STATE = "state.safetensors"
_MISSING = "nothing"
_MOST = 1 << 62  # epochs, and visits of one


def checkpoint_path(output: str | PathLike[str]) -> Path:
    """Where the checkpoint of an output directory stands.

    >>> checkpoint_path("models/spam").as_posix()
    'models/spam.checkpoint'
    """
    path = Path(output)
    return path.with_name(path.name + ".checkpoint")


def check_checkpoint_output(output: str | PathLike[str]) -> None:
    """Raise SaveError before a long training for what would keep `save_checkpoint` from saving."""
    check_sealed_output(checkpoint_path(output), KIND)


def save_checkpoint(
    output: str | PathLike[str], program: Program, state: RunState, identity: Mapping[str, Any]
) -> None:
    """Save the checkpoint of `output`. The workers must be parked.

    identity: what must be the same when the run goes on (options, data), by the name that the user knows it by; JSON
    values only.
    """
    options, arrays = saved_parts(program, state=True)
    words, numbers = _pack(state)
    config = {"program": program.name, "options": options, "identity": dict(identity), "state": words}
    write_sealed(checkpoint_path(output), KIND, config, {WEIGHTS: arrays, STATE: numbers})


def load_checkpoint(
    output: str | PathLike[str], program: Program, identity: Mapping[str, Any]
) -> tuple[Program, RunState] | None:
    """The program of the checkpoint of `output`, with its weights, and where the run stood; None without a checkpoint.

    It is `program` itself, or another of its class where training has settled options (classes, number of features).
    Raises ConfigError where the checkpoint is of another run: it names what differs.
    """
    path = checkpoint_path(output)
    try:
        sealed = read_sealed(path, KIND)
        _check_same(sealed, program, identity, path)
        state = _unpack(sealed, identity, path)
        program = _equal_program(program, sealed, path)
        restore(program, arrays_of(sealed, WEIGHTS, path), f"{path / WEIGHTS}")
    except FileNotFoundError:
        return None
    except ModelError as error:
        raise ModelError(f"{error} To start anew, leave --resume out.") from error
    return program, state


def _check_same(sealed: Sealed, program: Program, identity: Mapping[str, Any], path: Path) -> None:
    saved = sealed.config.get("identity")
    if not isinstance(saved, dict):
        raise ModelError(f"{path / 'config.json'}: does not tell which run it belongs to.")
    before = {**saved, "program": sealed.config.get("program")}
    now = _as_json({**identity, "program": program.name})
    differing = [key for key in {**before, **now} if before.get(key, _MISSING) != now.get(key, _MISSING)]
    if differing:
        what = "; ".join(
            f"the {key} is not the same" if key.endswith(" data") else
            f"{shorten(key, 80)} was {_told(before, key)}, is {_told(now, key)}"
            for key in differing[:4]
        )  # fmt: skip
        raise ConfigError(
            f"{path} is the checkpoint of another run: {what}. Give the same data and options, or leave --resume out."
        )


def _equal_program(program: Program, sealed: Sealed, path: Path) -> Program:
    options = sealed.config.get("options")
    if options == _as_json(program.options()):
        return program
    try:
        return type(program)(**options)  # type: ignore[arg-type]
    except STRAY as error:
        where = path / "config.json"
        raise ModelError(f"{where}: these options make no {program.name!r} program: {shorten(error)}.") from error


def _as_json(values: dict[str, Any]) -> Any:
    return json.loads(json.dumps(values, default=plain))


# -- RunState as JSON values and arrays -------------------------------------------------------------------------


def _pack(state: RunState) -> tuple[dict[str, Any], Arrays]:
    """Whole numbers and words as JSON; floats and arrays as arrays."""
    words: dict[str, Any] = {}
    arrays: dict[str, Any] = {}
    for item in fields(state):
        value = getattr(state, item.name)
        if isinstance(value, Mapping):
            arrays.update({f"{item.name}.{key}": array for key, array in value.items()})
        elif isinstance(value, float | np.ndarray):
            arrays[item.name] = np.asarray(value)
        else:
            words[item.name] = value
    return words, arrays


def _unpack(sealed: Sealed, identity: Mapping[str, Any], path: Path) -> RunState:
    words, arrays = sealed.config.get("state"), arrays_of(sealed, STATE, path)
    try:
        if not isinstance(words, dict):
            raise TypeError("state is no object")
        hints = get_type_hints(RunState)
        state = RunState(**{item.name: _value(item.name, hints[item.name], words, arrays) for item in fields(RunState)})
        _check_state(state, identity)
        return state
    except (LookupError, TypeError, ValueError, OverflowError) as error:
        where = path / "config.json"
        why = shorten(error)
        raise ModelError(f"{where}: does not tell where the run stood ({why}); hogwild of another version?") from None


def _check_state(state: RunState, identity: Mapping[str, Any]) -> None:
    """Raise ValueError for a state that this run does not leave behind. The executor checks it against the feed."""
    epoch, visits = state.position
    workers = identity.get("threads", state.random.size)
    sound = {
        "position": epoch <= identity.get("epochs", _MOST) and visits <= _MOST,
        "epoch_visits": 0 <= state.epoch_visits <= _MOST,
        "random": state.random.dtype == np.uint64 and state.random.shape == (workers,),
        "seed": 0 <= state.seed < 2**63,
        "sharing": state.sharing in get_args(Sharing) and state.sharing != "auto",
        "lr": 0 < state.lr < math.inf,
        "best_epoch": -1 <= state.best_epoch <= epoch,
        "train_seconds": 0 <= state.train_seconds < math.inf,
        "loss_sum": math.isfinite(state.loss_sum),
    }
    for name, fits in sound.items():
        if not fits:
            raise ValueError(f"{name} is {brief(getattr(state, name))}")


def _told(values: Mapping[str, Any], key: str) -> str:
    return shorten(values[key], 80) if key in values else _MISSING


def _value(name: str, hint: Any, words: dict[str, Any], arrays: Arrays) -> Any:
    if get_origin(hint) is Mapping:
        return {key.removeprefix(name + "."): arrays[key].copy() for key in arrays if key.startswith(name + ".")}
    if hint is float:
        if arrays[name].dtype != np.float64 or arrays[name].shape != ():
            raise TypeError(f"{name} is {arrays[name].dtype} {arrays[name].shape}")
        return arrays[name].item()
    if hint is Position:
        epoch, visits = words[name]
        if type(epoch) is not int or type(visits) is not int or min(epoch, visits) < 0:
            raise ValueError(f"{name} is {brief(epoch)}, {brief(visits)}")
        return Position(epoch, visits)
    if hint in (int, str):
        if type(words[name]) is not hint:
            raise TypeError(f"{name} is {brief(words[name])}")
        return words[name]
    return arrays[name].copy()
