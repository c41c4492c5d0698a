"""PyTorch and our programs; needs the extra `torch`."""

from hogwild.pytorch.export import SparseMLPModule, module_of

__all__ = ["SparseMLPModule", "module_of"]
