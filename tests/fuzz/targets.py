"""All targets by name."""

from __future__ import annotations

from fuzz.loaders import LOADERS
from fuzz.memory import MEMORY
from fuzz.readers import READERS

TARGETS = {target.name: target for target in (*READERS, *MEMORY, *LOADERS)}
