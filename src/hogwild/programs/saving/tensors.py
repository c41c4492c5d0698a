"""Arrays as safetensors: a JSON header that names dtype, shape and place of each array, then their bytes.

Our own few lines rather than the library's because saving needs no copy of the weights and takes the checksum on the
way, and loading maps the file; tests exchange files with the library in both directions.
Everything in a header is checked before an array is made of it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.errors import ModelError, SaveError, brief, shorten

# -- JSON from a file that nobody vouches for: one object, no key twice, no surprise from its depth or its numbers ----


_DEPTH = 32
_LEAST, _MOST = -(2**63), 2**64 - 1  # whole numbers that arrays can hold


def parse_object(text: bytes, where: str) -> dict[str, Any]:
    """The JSON object in `text`; `where` begins the error message."""
    try:
        found = json.loads(text.decode("utf-8"), object_pairs_hook=_no_key_twice, parse_int=_whole_number)
        deep = _is_deep(found)
    except RecursionError:
        deep = True
    except ValueError as error:  # malformed JSON, invalid UTF-8, an endless number
        raise ModelError(f"{where}: not valid JSON ({shorten(error)}); copy it again from where it was made.") from None
    if deep:
        raise ModelError(f"{where}: nested too deeply to be ours; do not trust this file.")
    if not isinstance(found, dict):
        raise ModelError(f"{where}: holds no JSON object; copy the directory again from where it was made.")
    return found


def _no_key_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"the key {brief(twice)} stands twice")
    return found


def _whole_number(digits: str) -> int:
    number = int(digits) if len(digits) < 24 else _MOST + 1
    if not _LEAST <= number <= _MOST:
        raise ValueError(f"the number {shorten(digits, 24)} has more than 64 bits")
    return number


def _is_deep(found: Any) -> bool:
    """Whether lists and objects are nested deeper than anything of ours: what comes after need not count."""
    level = [found]
    for _ in range(_DEPTH):
        inner = [v.values() if isinstance(v, dict) else v for v in level if isinstance(v, dict | list)]
        level = [item for values in inner for item in values]
    return bool(level)


# -- Arrays by name ---------------------------------------------------------------------------------------------------


Arrays = Mapping[str, npt.NDArray[Any]]
Buffer = bytes | memoryview

HEADER_LIMIT = 16 << 20
"""Bytes of the longest header that is read."""
_DIMENSIONS = 8
_CELLS = 1 << 48
_LENGTH = 8  # bytes of the number before the header
_DTYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "|u1", "BOOL": "|b1",
}  # fmt: skip
_CODES = {np.dtype(name): code for code, name in _DTYPES.items()}


def encode(arrays: Arrays) -> Iterator[Buffer]:
    """The file as a run of buffers; those of the arrays are views, not copies."""
    # Wide cells first, so that every array stands at a multiple of its cell.
    ordered = sorted(arrays.items(), key=lambda item: (-item[1].dtype.itemsize, item[0]))
    header, end = {}, 0
    for name, array in ordered:
        begin, end = end, end + array.nbytes
        code = _CODES.get(array.dtype.newbyteorder("<"))
        if code is None:
            kinds = "plain integers, floats and truth values only"
            raise SaveError(f"the array {brief(name)} holds {array.dtype}; it saves {kinds}.")
        header[name] = {"dtype": code, "shape": list(array.shape), "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % _LENGTH)
    yield len(text).to_bytes(_LENGTH, "little")
    yield text
    for _, array in ordered:
        little = np.asarray(array, dtype=array.dtype.newbyteorder("<"), order="C")
        yield little.reshape(-1).view(np.uint8).data


def decode(buffer: Any, where: str) -> dict[str, npt.NDArray[Any]]:
    """Arrays by name, as views of `buffer` (bytes or a memory map); `where` begins the error message."""
    size = len(buffer)
    length = int.from_bytes(buffer[:_LENGTH], "little")
    if size < _LENGTH or length > min(HEADER_LIMIT, size - _LENGTH):
        raise damaged(where, f"a header of {length:,} bytes does not fit a file of {size:,}")
    header = parse_object(buffer[_LENGTH : _LENGTH + length], f"{where} (header)")
    header.pop("__metadata__", None)
    places = sorted((_place(name, entry, where), name) for name, entry in header.items())
    data, end, arrays = _LENGTH + length, 0, {}
    for (begin, stop, code, shape), name in places:
        if begin != end or stop > size - data:
            place = f"bytes {begin:,} to {stop:,}, over another or past the end"
            raise damaged(where, f"array {brief(name)} lies at {place}")
        end = stop
        dtype = np.dtype(_DTYPES[code])
        flat = np.frombuffer(buffer, dtype, math.prod(shape), data + begin)
        if dtype.kind == "b" and (flat.view(np.uint8) > 1).any():  # NumPy trusts that they are not
            raise damaged(where, f"array {brief(name)} holds what is neither true nor false")
        arrays[name] = flat.reshape(shape)
    if end != size - data:
        raise damaged(where, f"{size - data - end:,} bytes belong to no array")
    return arrays


def _place(name: str, entry: Any, where: str) -> tuple[int, int, str, tuple[int, ...]]:
    """begin, end, dtype code and shape of an entry of the header, after every check that concerns it alone."""
    shown = brief(name)
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise damaged(where, f"array {shown} needs dtype, shape and data_offsets")
    code, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(code, str) or code not in _DTYPES:
        raise damaged(where, f"array {shown} has the unknown dtype {brief(code)}")
    # Dimensions of 0 do not count: NumPy multiplies the others before it sees that there is nothing.
    if not _lengths(shape) or len(shape) > _DIMENSIONS or math.prod(n or 1 for n in shape) >= _CELLS:
        raise damaged(where, f"array {shown} has an impossible shape")
    if not _lengths(offsets) or len(offsets) != 2:
        raise damaged(where, f"array {shown} has impossible offsets")
    begin, end = offsets
    needed = math.prod(shape) * np.dtype(_DTYPES[code]).itemsize
    if end - begin != needed:
        raise damaged(where, f"array {shown} of shape {brief(shape)} and dtype {code} has {end - begin:,} bytes")
    return begin, end, code, tuple(shape)


def required(arrays: Arrays, name: str, shape: tuple[int, ...], dtype: npt.DTypeLike = np.float32) -> npt.NDArray[Any]:
    """The array of this name, for a program that is given its arrays back; raises ModelError where it does not fit."""
    found = arrays.get(name)
    if found is None or found.dtype != dtype or found.shape != shape or not np.isfinite(found).all():
        what = "missing" if found is None else f"{found.dtype} {found.shape}"
        raise ModelError(f"array {name} is {what}, not {shape} finite {np.dtype(dtype)}.")
    return found


def no_others(arrays: Arrays, known: Iterable[str], program: str) -> None:
    """Raise ModelError for an array that a program does not know."""
    if unknown := set(arrays) - set(known):
        raise ModelError(f"{program} has no array {brief(min(unknown))}.")


def _lengths(numbers: Any) -> bool:
    return isinstance(numbers, list) and all(type(n) is int and n >= 0 for n in numbers)


def damaged(where: str, what: str) -> ModelError:
    """The error of a file that is not as it was written."""
    return ModelError(f"{where}: {what}; copy the directory again from where it was made.")
