"""`hogwild evaluate`: how good a trained model is on labelled files, or word vectors are on tests of words."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from hogwild.cli.apply.options import EVALUATE as PAGE
from hogwild.cli.apply.options import RECOMMENDERS, ReadConfig, TaggedConfig, refuse
from hogwild.cli.apply.options import EvaluateOptions as Options
from hogwild.errors import ConfigError

__all__ = ["PAGE", "Options", "measure", "run"]


def run(options: Options) -> int:
    """Print the metrics."""
    from hogwild.cli.own import program_from
    from hogwild.programs.store import load_model
    from hogwild.programs.taggers.tagger import Tagger
    from hogwild.programs.words.mapped import holds_words

    if holds_words(Path(options.model)):
        from hogwild.cli.apply.words import evaluate_words

        refuse(options.tagged, "taggers", "these are word vectors")
        return evaluate_words(options)
    began = time.perf_counter()
    model = load_model(options.model, program_from(options.program) if options.program else None)
    refuse(options.words, "word vectors", "this model has none")
    if isinstance(model.program, Tagger):
        from hogwild.cli.apply.taggers import evaluate_tags

        return evaluate_tags(options, model, began)
    refuse(options.tagged, "taggers", "this model is none")
    if model.program.name == "doc2vec":
        from hogwild.cli.apply.words import evaluate_documents

        return evaluate_documents(options, model, began)
    if model.program.name in RECOMMENDERS:
        from hogwild.cli.apply.recommenders import evaluate_pairs

        if options.recommended.threshold is not None:
            raise ConfigError("--threshold is for classifiers, and this model is none; leave it out.")
        return evaluate_pairs(options, model, began)
    if model.program.name == "module":
        refuse(options.recommended, "recommenders and classifiers", "this model is none")
        from hogwild.cli.apply.modules import evaluate_module

        return evaluate_module(options, model, began)
    from hogwild.cli.apply.rows import evaluate_rows

    return evaluate_rows(options, model, began)


def measure(path: str, files: tuple[str, ...]) -> dict[str, float]:
    """The metrics that `hogwild evaluate` prints for a model and files that are read as those of training."""
    from hogwild.machine import cores
    from hogwild.programs.store import load_model
    from hogwild.programs.taggers.tagger import Tagger
    from hogwild.programs.words.mapped import holds_words

    if holds_words(Path(path)):
        from hogwild.cli.apply.words import measure_words

        return measure_words(path, files)
    model = load_model(path)
    program: Any = model.program
    if isinstance(program, Tagger):
        from hogwild.cli.apply.taggers import open_tagged

        found: dict[str, float] = program.evaluate(open_tagged(model, files, ReadConfig(), TaggedConfig()), cores())
    elif program.name == "doc2vec":
        from hogwild.cli.apply.words import open_documents_for

        found = program.evaluate(open_documents_for(model, files, ReadConfig()), cores())
    elif program.name in RECOMMENDERS:
        from hogwild.cli.apply.recommenders import open_pairs

        found = program.evaluate(open_pairs(model, files, ReadConfig(), program.loss == "squared"), cores())
    else:
        from hogwild.cli.apply.rows import open_for

        found = program.evaluate(open_for(model, files, ReadConfig()), cores())
    return found
