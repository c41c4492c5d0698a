"""A trained program as an ONNX graph, for other runtimes; needs the extra `onnx`."""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from importlib.util import find_spec
from io import BytesIO, StringIO
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
    with _quiet():
        made = _traced(module) if isinstance(module, BiLSTMModule) else _exported(module)
    made.graph.output[0].type.tensor_type.shape.dim[0].dim_param = "tokens" if hasattr(module, "lstm") else "rows"
    labels = getattr(program, "tags", None) or getattr(program, "classes", None)
    told = made.metadata_props.add()
    told.key, told.value = "hogwild", json.dumps({"program": program.name, "labels": _plain(labels)})
    found: bytes = made.SerializeToString()
    return found


def _traced(tagger: BiLSTMModule) -> Any:
    """By PyTorch's older exporter: the other one makes a graph for sentences of one length."""
    import onnx

    inputs, sizes, file = {"rows": _numbers(tagger)}, {"rows": {0: "tokens"}}, BytesIO()
    if tagger.letters is not None:
        inputs |= {"spelling": torch.zeros(5, 9, dtype=torch.int64), "sizes": torch.full((5,), 7)}
        sizes |= {"spelling": {0: "tokens", 1: "letters"}, "sizes": {0: "tokens"}}
    names = ["scores"] if tagger.pairs is None else ["scores", "pairs"]
    torch.onnx.export(
        _OneSentence(tagger).eval(), tuple(inputs.values()), file, dynamo=False, input_names=list(inputs),
        output_names=names, dynamic_axes=sizes,
    )  # fmt: skip
    return onnx.load_from_string(file.getvalue())


def _numbers(tagger: BiLSTMModule) -> Tensor:
    """Five tokens."""
    templates = tagger.lstm.input_size - (0 if tagger.letters is None else len(tagger.filters))
    count = 1 + (templates - tagger.words.shape[1]) // max(1, tagger.features.shape[1])
    numbers = torch.full((5, count), tagger.words.shape[0])
    numbers[:, 0] = 0
    return numbers


class _OneSentence(nn.Module):
    """A tagger for one sentence at a time; with a CRF it gives the scores of pairs of tags too."""

    def __init__(self, tagger: BiLSTMModule) -> None:
        super().__init__()
        self.tagger = tagger

    def forward(self, rows: Tensor, spelling: Tensor | None = None, sizes: Tensor | None = None) -> Any:
        scores, pairs = self.tagger.one_sentence(rows, spelling, sizes), self.tagger.pairs
        return scores if pairs is None else (scores, pairs.clone())


def _exported(module: nn.Module) -> Any:
    """By PyTorch's exporter of today: the graph of the older one gives other scores."""
    entries, rows = torch.export.Dim("entries"), torch.export.Dim("rows")
    given = {"ids": torch.zeros(5, dtype=torch.int64), "offsets": torch.tensor([0, 2, 2, 5]), "values": torch.ones(5)}
    sizes: dict[str, Any] = {"ids": {0: entries}, "offsets": {0: rows + 1}, "values": {0: entries}}
    slotted = module.slots if isinstance(module, SparseMLPModule) else getattr(module, "fields", 1) - 1
    if slotted:
        given["slots"], sizes["slots"] = torch.zeros(5, dtype=torch.int64), {0: entries}
    if isinstance(module, SparseMLPModule):
        dense = module.layers[0].in_features - module.slots * module.embedding.shape[1]
        if dense:
            given["dense"], sizes["dense"] = torch.zeros(3, dense), {0: rows}
    made = torch.onnx.export(
        module.eval(), (), kwargs=given, dynamo=True, dynamic_shapes=sizes, output_names=["scores"], verbose=False
    )
    return made.model_proto


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
