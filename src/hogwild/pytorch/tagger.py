"""A Bi-LSTM tagger as a PyTorch module that gives the same scores."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from hogwild.kernels.nn.letters import EDGE
from hogwild.programs.taggers.bilstm import BiLSTM


class BiLSTMModule(nn.Module):
    """Embeddings, an `nn.LSTM` and a linear layer, as `hogwild.BiLSTM` has them.

    Parameters have the names `words`, `features` (rows, numbers), `lstm.weight_ih_l0`, … as PyTorch has them,
    `output.weight`, `output.bias`, and with a CRF `pairs` (tags, tags); with letters `letters`, `filters` and
    `filter_bias`. A diagonal recurrence becomes full matrices with zeros.

    Examples
    --------
    >>> module = hogwild.pytorch.module_of(program)                                         # doctest: +SKIP
    >>> scores = module(**module.tensors([["to", "be"], ["or"]]))                           # doctest: +SKIP
    """

    def __init__(self, program: BiLSTM) -> None:
        super().__init__()
        arrays, shape = program.arrays(), program.shape
        self._program = program
        self.words = nn.Parameter(_tensor(arrays["words"]))
        self.features = nn.Parameter(_tensor(arrays["features"]))
        self.lstm = nn.LSTM(shape.inputs, shape.hidden, shape.layers, batch_first=True, bidirectional=True)
        for layer in range(shape.layers):
            for direction, suffix in (("forward", ""), ("backward", "_reverse")):
                name, place = f"lstm_{layer + 1}_{direction}", f"l{layer}{suffix}"
                parts = [part for part in arrays if part.startswith(f"{name}_input")]
                self._set(f"weight_ih_{place}", np.concatenate([arrays[part] for part in parts]).T)
                hidden = arrays[f"{name}_hidden"]
                if shape.diagonal:
                    gates = hidden.reshape(4, shape.hidden)
                    hidden = np.concatenate([np.diag(gate) for gate in gates], axis=1)
                self._set(f"weight_hh_{place}", hidden.T)
                self._set(f"bias_ih_{place}", arrays[f"{name}_bias"][0])
                self._set(f"bias_hh_{place}", np.zeros(4 * shape.hidden))
        self.output = nn.Linear(2 * shape.hidden, shape.tags)
        weight = np.concatenate([arrays["output_forward"], arrays["output_backward"]]).T
        self.output.weight = nn.Parameter(_tensor(weight))
        self.output.bias = nn.Parameter(_tensor(arrays["output_bias"]))
        for name in ("pairs", "letters", "filters", "filter_bias"):
            setattr(self, name, nn.Parameter(_tensor(arrays[name])) if name in arrays else None)

    def _set(self, name: str, array: Any) -> None:
        getattr(self.lstm, name).data = _tensor(array)

    def tensors(self, data: Any) -> dict[str, Tensor]:
        """What `forward` takes, of what the program tags: sentences, a path, or a feed."""
        program = self._program
        feed = program.feed_of(data)
        samples = program.samples(feed)
        lengths = torch.from_numpy(np.diff(samples.offsets))
        found = {"rows": torch.from_numpy(samples.rows.reshape(feed.tokens, -1).astype(np.int64)), "lengths": lengths}
        if self.letters is not None:
            sizes = np.diff(samples.word_starts)
            table = np.full((len(sizes), int(sizes.max()) + 2), EDGE, np.int64)
            table[:, 1:-1][np.arange(int(sizes.max())) < sizes[:, None]] = samples.letters
            found["spelling"] = torch.from_numpy(table[samples.words])
            found["sizes"] = torch.from_numpy(sizes[samples.words])
        return found

    def forward(
        self, rows: Tensor, lengths: Tensor, spelling: Tensor | None = None, sizes: Tensor | None = None
    ) -> Tensor:
        """Scores, (tokens, tags), of the tokens of all sentences one after the other.

        rows: (tokens, templates), numbered over words and then features; spelling: letters, with EDGE before and after
        and to fill up; sizes: how many letters each token has.
        """
        tokens = self._embedded(rows, spelling, sizes)
        whole = nn.utils.rnn.pad_sequence(list(tokens.split(lengths.tolist())), batch_first=True)
        packed = nn.utils.rnn.pack_padded_sequence(whole, lengths, batch_first=True, enforce_sorted=False)
        given, _ = nn.utils.rnn.pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        inside = torch.arange(given.shape[1])[None, :] < lengths[:, None]
        scores: Tensor = self.output(given[inside])
        return scores

    def one_sentence(self, rows: Tensor, spelling: Tensor | None = None, sizes: Tensor | None = None) -> Tensor:
        """Scores, (tokens, tags), of one sentence: `forward` without what sentences of several lengths need."""
        found: Tensor = self.output(self.lstm(self._embedded(rows, spelling, sizes)[None])[0][0])
        return found

    def _embedded(self, rows: Tensor, spelling: Tensor | None, sizes: Tensor | None) -> Tensor:
        parts = [self.words[rows[:, 0]], self.features[rows[:, 1:] - self.words.shape[0]].flatten(1)]
        if spelling is not None and sizes is not None:
            parts.append(self._look_into(spelling, sizes))
        return torch.cat(parts, 1)

    def _look_into(self, spelling: Tensor, sizes: Tensor) -> Tensor:
        letters = self.letters[spelling]
        windows = torch.cat([letters[:, :-2], letters[:, 1:-1], letters[:, 2:]], 2)
        found = windows @ self.filters.T + self.filter_bias
        outside = torch.arange(found.shape[1])[None, :] >= sizes[:, None]
        return torch.tanh(found.masked_fill(outside[:, :, None], -torch.inf).amax(1))


def _tensor(array: Any) -> Tensor:
    return torch.from_numpy(np.array(array, np.float32))
