"""For all tests."""

from __future__ import annotations

import gc
from typing import Any


def pytest_collection_finish(session: Any) -> None:
    """Look for garbage less often, and not in what was imported: compiling makes many objects, and took longer."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
