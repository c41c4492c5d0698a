"""A trained program as an ONNX graph, for other runtimes; needs the extra `onnx`."""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from importlib.util import find_spec
from io import StringIO
from typing import Any

import torch
from torch import Tensor, nn

from hogwild.errors import ConfigError
from hogwild.pytorch.export import SparseMLPModule, module_of
from hogwild.pytorch.tagger import BiLSTMModule

_MOST = 2 << 30  # bytes of a file: protobuf takes no more


def onnx_bytes(program: Any) -> bytes:
    """The file. Inputs are those of the program's module (docs/guide-pytorch.md), the output is its scores."""
    if missing := [name for name in ("onnx", "onnxscript") if find_spec(name) is None]:
        needed = " and ".join(missing)
        raise ConfigError(f'ONNX files need {needed}, not installed here: pip install "hogwild[onnx]".')
    module = module_of(program)
    size = sum(parameter.nbytes for parameter in module.parameters())
    if size >= _MOST:
        raise ConfigError(f"the model has {size / 1e9:.1f} GB, and an ONNX file holds 2; write .safetensors instead.")
    inputs, sizes = _inputs(module)
    graph = _OneSentence(module) if isinstance(module, BiLSTMModule) else module
    names = ["scores", "pairs"] if getattr(module, "pairs", None) is not None else ["scores"]
    with _quiet():
        made = torch.onnx.export(
            graph.eval(), (), kwargs=inputs, dynamo=True, dynamic_shapes=sizes, output_names=names, verbose=False
        )
    scores = made.model.graph.outputs[0]
    scores.shape = type(scores.shape)(["tokens" if isinstance(module, BiLSTMModule) else "rows", scores.shape[1]])
    labels = getattr(program, "tags", None) or getattr(program, "classes", None)
    made.model.metadata_props["hogwild"] = json.dumps({"program": program.name, "labels": _plain(labels)})
    found: bytes = made.model_proto.SerializeToString()
    return found


class _OneSentence(nn.Module):
    """A tagger for one sentence at a time; with a CRF it gives the scores of pairs of tags too."""

    def __init__(self, tagger: BiLSTMModule) -> None:
        super().__init__()
        self.tagger = tagger

    def forward(self, rows: Tensor, spelling: Tensor | None = None, sizes: Tensor | None = None) -> Any:
        scores, pairs = self.tagger.one_sentence(rows, spelling, sizes), self.tagger.pairs
        return scores if pairs is None else (scores, pairs.clone())


def _inputs(module: nn.Module) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Inputs of the size that the graph is traced with, and which of their sizes differ from call to call."""
    entries, rows = torch.export.Dim("entries"), torch.export.Dim("rows")
    if isinstance(module, BiLSTMModule):
        tokens = letters = torch.export.Dim.DYNAMIC  # under names, what letters are cut into fails
        templates = module.lstm.input_size - (0 if module.letters is None else len(module.filters))
        count = 1 + (templates - module.words.shape[1]) // max(1, module.features.shape[1])
        numbers = torch.full((5, count), module.words.shape[0])
        numbers[:, 0] = 0
        given, sizes = {"rows": numbers}, {"rows": {0: tokens}}
        if module.letters is not None:
            given |= {"spelling": torch.zeros(5, 9, dtype=torch.int64), "sizes": torch.full((5,), 7)}
            sizes |= {"spelling": {0: tokens, 1: letters}, "sizes": {0: tokens}}
        return given, sizes
    given = {"ids": torch.zeros(5, dtype=torch.int64), "offsets": torch.tensor([0, 2, 2, 5]), "values": torch.ones(5)}
    sizes = {"ids": {0: entries}, "offsets": {0: rows + 1}, "values": {0: entries}}
    slotted = module.slots if isinstance(module, SparseMLPModule) else getattr(module, "fields", 1) - 1
    if slotted:
        given["slots"], sizes["slots"] = torch.zeros(5, dtype=torch.int64), {0: entries}
    if isinstance(module, SparseMLPModule):
        dense = module.layers[0].in_features - module.slots * module.embedding.shape[1]
        if dense:
            given["dense"], sizes["dense"] = torch.zeros(3, dense), {0: rows}
    return given, sizes


def _plain(labels: Any) -> Any:
    return None if labels is None else [label if isinstance(label, str) else str(label) for label in labels]


@contextmanager
def _quiet() -> Iterator[None]:
    """PyTorch's exporter speaks of its own inner life, to everyone."""
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(), redirect_stdout(StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(logging.NOTSET)
