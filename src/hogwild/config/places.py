"""Where things are kept."""

from __future__ import annotations

import os
from pathlib import Path


def cache_home() -> Path:
    """Where this package keeps what it can make again: HOGWILD_CACHE, else the user's cache directory."""
    chosen = os.environ.get("HOGWILD_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hogwild"
