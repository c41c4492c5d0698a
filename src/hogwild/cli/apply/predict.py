"""`hogwild predict`: one prediction a line; text with its tags."""

from __future__ import annotations

import time
from typing import Any

from hogwild.cli.apply.options import PREDICT as PAGE
from hogwild.cli.apply.options import RECOMMENDERS, given, refuse
from hogwild.cli.apply.options import PredictOptions as Options
from hogwild.cli.outputs import check_outputs
from hogwild.errors import ConfigError

__all__ = ["PAGE", "Options", "run"]


def run(options: Options) -> int:
    """Write the predictions."""
    from hogwild.cli.own import program_from
    from hogwild.feeds.open import description_path
    from hogwild.programs.store import load_model
    from hogwild.programs.taggers.tagger import Tagger

    if options.show.json and options.write.output == "-":
        raise ConfigError("--json and the predictions cannot both go to standard output; add --output FILE.")
    described = (str(description_path(file)) for file in options.files)
    check_outputs([options.write.output], [*options.files, *described, options.show.config], [options.model])
    began = time.perf_counter()
    model = load_model(options.model, program_from(options.program) if options.program else None)
    program: Any = model.program
    if program.name == "doc2vec":
        from hogwild.cli.apply.words import predict_documents

        refuse(options.tagged, "taggers", "this model is none")
        return predict_documents(options, model, began)
    refuse(options.inferred, "models of documents", "this model is none")
    if not hasattr(program, "predict"):
        raise ConfigError(f"{options.model}: a {program.name} model predicts nothing; see hogwild neighbors.")
    if isinstance(program, Tagger):
        for flag in {"--top", "--threshold"} & set(given(options.write)):
            raise ConfigError(f"{flag} is for classifiers, and this model is a tagger; see --nbest and --marginals.")
        from hogwild.cli.apply.taggers import predict_tags

        return predict_tags(options, model, began)
    refuse(options.tagged, "taggers", "this model is none")
    for flag in given(options.write):
        if flag in ("--nbest", "--marginals", "--scheme"):
            raise ConfigError(f"{flag} is for taggers, and this model is none; leave it out.")
    if program.name in (*RECOMMENDERS, "module"):
        for flag in {"--top", "--threshold"} & set(given(options.write)):
            raise ConfigError(f"{flag} is for classifiers, and this model is none; leave it out.")
    if program.name in RECOMMENDERS:
        from hogwild.cli.apply.recommenders import predict_pairs

        return predict_pairs(options, model, began)
    if program.name == "module":
        from hogwild.cli.apply.modules import predict_module

        return predict_module(options, model, began)
    from hogwild.cli.apply.rows import predict_rows

    return predict_rows(options, model, began)
