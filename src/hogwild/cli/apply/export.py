"""`hogwild export`: word vectors, or the weights of any model, as a file that other tools open; or a smaller model."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from hogwild.cli.apply.options import given
from hogwild.cli.flags import Page
from hogwild.cli.outputs import check_outputs
from hogwild.cli.summary import add_row, make_table, print_json, print_tables, say_notes
from hogwild.config import Files, ShowConfig, SmallConfig
from hogwild.config.kinds import File
from hogwild.config.options import Shown
from hogwild.errors import ConfigError
from hogwild.messages import show

PAGE = Page(
    "hogwild export",
    """Write the vectors of a model of words in the text or binary format of word2vec, which gensim, spaCy, fastText
and others open, with subwords as a model of fastText; or the weights of a model of any kind as a safetensors file,
under the names that the guides give; or a model of rows, texts or tags as an ONNX graph, which other runtimes compute.
With --half, --int8 or --pruned: a smaller model directory, which hogwild uses as any other (--valid: what it costs).

Examples:
  hogwild export model vectors.vec
  hogwild export model vectors.bin
  hogwild export vectors.bin vectors.txt.gz --format text
  hogwild export documents docs.bin --documents
  hogwild export clicks weights.safetensors
  hogwild export clicks clicks.onnx
  hogwild export clicks small --int8 --pruned 0.5 --valid test.csv""",
)


@dataclass(frozen=True)
class WriteConfig:
    """What is written."""

    format: Literal["auto", "text", "binary", "fasttext", "safetensors", "onnx"] = "auto"
    """auto: text for .vec and .txt, binary for .bin, or fasttext where words have subwords; safetensors for
    .safetensors, onnx for .onnx."""
    documents: bool = False
    """Of a model of documents: write the vectors of its documents, by their tags, not those of its words."""
    words: File = ""
    """Write the vectors of the words of this file, one a line, instead of those of the vocabulary: with subwords, of
    words that were never seen too."""


@dataclass(frozen=True)
class Options:
    """All flags of the command."""

    model: Annotated[str, Shown("MODEL", positional=True)] = ""
    """Directory of a trained model, or a file of word vectors."""
    file: Annotated[str, Shown("FILE", positional=True)] = ""
    """File to write; names that end in .gz, .xz or .zst are compressed, - is standard output. With --half, --int8 or
    --pruned a directory."""
    small: SmallConfig = field(default_factory=SmallConfig)
    valid: Files = ()
    """With --half, --int8 or --pruned: measure both models on this file (what `hogwild evaluate` takes)."""
    write: WriteConfig = field(default_factory=WriteConfig)
    show: ShowConfig = field(default_factory=ShowConfig)


def run(options: Options) -> int:
    """Write the file."""
    check_outputs([options.file], [options.show.config, *options.valid], [options.model])
    smaller = given(options.small)
    if smaller:
        return _write_small(options, smaller[0])
    if options.valid:
        raise ConfigError("--valid tells what --half, --int8 or --pruned cost; give one of them, or leave it out.")
    wanted = options.write.format
    if wanted == "auto" and options.file.endswith((".safetensors", ".onnx")):
        wanted = "onnx" if options.file.endswith(".onnx") else "safetensors"
    whole = {"safetensors": _write_tensors, "onnx": _write_onnx}
    for flag, value in (("--words", options.write.words), ("--documents", options.write.documents)):
        if value and wanted in whole:
            raise ConfigError(f"{flag} is for files of vectors; leave it out.")
    if options.write.words and options.write.documents:
        raise ConfigError("--words names words, and --documents asks for documents; leave one of them out.")
    if options.show.json and options.file == "-":
        what = "weights" if wanted in whole else "vectors"
        raise ConfigError(f"--json and the {what} cannot both go to standard output; name a file.")
    return whole[wanted](options) if wanted in whole else _write_vectors(options, wanted)


def _write_small(options: Options, flag: str) -> int:
    """flag: what asks for it."""
    from hogwild.cli.apply.evaluate import measure
    from hogwild.programs.store import check_model_output, load_model, save_model
    from hogwild.programs.words.files import format_of_name

    for name in given(options.write):
        raise ConfigError(f"{name} is for files, and {flag} writes a model directory; leave one of them out.")
    if options.file == "-" or options.file.endswith((".safetensors", ".onnx")) or format_of_name(options.file):
        raise ConfigError(
            f"{flag} writes a model directory, and {options.file} is the name of a file; name a directory, or leave "
            f"{flag} out."
        )
    check_model_output(options.file)
    before = measure(options.model, options.valid) if options.valid else {}
    model = load_model(options.model)
    save_model(
        options.file, model.program, feed_schema=model.schema, feed_config=model.feed_config, labels=model.labels,
        small=options.small,
    )  # fmt: skip
    after = measure(options.file, options.valid) if options.valid else {}
    sizes = {"before": _size(options.model), "after": _size(options.file)}
    if options.show.json:
        print_json({
            "model": options.model, "output": options.file, "program": model.program.name, **vars(options.small),
            "bytes": sizes, "metrics": {"before": before, "after": after},
        })  # fmt: skip
    elif not options.show.quiet:
        table = make_table(["", options.model, options.file])
        add_row(table, "bytes", *(f"{size:,}" for size in sizes.values()))
        for name, value in before.items():
            add_row(table, name, f"{value:.4f}", f"{after.get(name, math.nan):.4f}")
        print_tables([table])
    return 0


def _size(directory: str) -> int:
    """Bytes of the files of a model."""
    return sum(file.stat().st_size for file in Path(directory).iterdir())


def _write_onnx(options: Options) -> int:
    from hogwild.feeds.io.outfile import write_file
    from hogwild.programs.store import load_model
    from hogwild.pytorch import require_torch

    require_torch()
    from hogwild.pytorch.onnx import onnx_bytes

    found = onnx_bytes(load_model(options.model).program)
    with write_file(options.file) as file:
        file.write(found)
    if options.show.json:
        print_json({"model": options.model, "file": options.file, "format": "onnx", "bytes": len(found)})
    elif not options.show.quiet and options.file != "-":
        show(f"{options.file}: {len(found):,} bytes, ONNX")
    return 0


def _write_tensors(options: Options) -> int:
    from hogwild.feeds.io.outfile import write_file
    from hogwild.programs.saving.tensors import encode
    from hogwild.programs.store import load_model

    program = load_model(options.model).program
    arrays = program.arrays()
    with write_file(options.file) as file:
        for part in encode(arrays):
            file.write(part)
    shapes = {name: list(array.shape) for name, array in arrays.items()}
    if options.show.json:
        print_json({"model": options.model, "file": options.file, "format": "safetensors", "arrays": shapes})
    elif not options.show.quiet and options.file != "-":
        names = ", ".join(f"{name} {tuple(shape)}" for name, shape in shapes.items())
        show(f"{options.file}: {names}")
    return 0


def _read_words(path: str) -> list[str]:
    """The words of a file, each once."""
    from hogwild.errors import InputError
    from hogwild.feeds.io.source import open_sources

    (source,) = open_sources(path)
    with source.open() as stream:
        try:
            words = list(dict.fromkeys(stream.read().decode("utf-8").split()))
        except UnicodeDecodeError as error:
            raise InputError(f"{source.name}: byte {error.start + 1:,} is not UTF-8; convert it with iconv.") from None
    if not words:
        raise InputError(f"{source.name}: holds no words; give one a line.")
    return words


def _write_vectors(options: Options, wanted: Any) -> int:
    from hogwild.messages import counted
    from hogwild.programs.words.files import format_of_name
    from hogwild.programs.words.vectors import Vectors

    piped = options.file == "-"
    began = time.perf_counter()
    if wanted == "auto" and format_of_name(options.file) is None and not piped:
        raise ConfigError(f"the name {options.file} tells no format; let it end in .vec or .bin, or give --format.")
    kind: Any = "documents" if options.write.documents else "words"
    if options.write.documents and Path(options.model).is_file():
        raise ConfigError(f"{options.model}: a file of vectors does not know documents; leave --documents out.")
    vectors = Vectors.load(options.model, kind=kind)
    if options.write.words:
        words = _read_words(options.write.words)
        vectors = Vectors(words, vectors[words])
    chosen = vectors.format_of(options.file) if wanted == "auto" else wanted
    changed = vectors.save(options.file, chosen or "text")
    names = counted(changed, "tag" if options.write.documents else "word")
    notes = [f"{names} with blanks or ends of lines written with `_` for each."] if changed else []
    say_notes(notes, options.show.quiet)
    if options.show.json:
        print_json({
            "model": options.model, "file": options.file, "format": chosen, kind: len(vectors), "dim": vectors.dim,
            "changed": changed, "seconds": time.perf_counter() - began, "notes": notes,
        })  # fmt: skip
    elif not options.show.quiet and not piped:
        show(f"{options.file}: {len(vectors):,} {kind}, {vectors.dim} numbers each, {chosen}")
    return 0
