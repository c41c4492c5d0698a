"""PyTorch and our programs; needs the extra `torch`."""

from hogwild.pytorch.export import SparseMLPModule, module_of
from hogwild.pytorch.tagger import BiLSTMModule

__all__ = ["BiLSTMModule", "SparseMLPModule", "module_of"]
