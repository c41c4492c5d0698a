"""Where a model goes that cannot be written to its place: what was trained is not lost."""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from hogwild.errors import SaveError
from hogwild.programs.store import remove_model


class Rescue:
    """A second place for a model, for this user only: beside the first, or else in the temporary place.

    place: the directory where the model stands, None as long as there is none.
    """

    def __init__(self, path: Path) -> None:
        self._path = Path(os.path.abspath(path))
        self._made: Path | None = None
        self.place: Path | None = None

    def save(self, save: Callable[[Path], None]) -> bool:
        """Save with this function, which is given a directory; whether that worked."""
        with suppress(SaveError):
            if self.place is not None:
                save(self.place)
                return True
        for made, place in self._places():
            try:
                save(place)
            except SaveError:
                with suppress(OSError):
                    made.rmdir()
                continue
            self.remove()
            self._made, self.place = made, place
            return True
        return False

    def remove(self) -> None:
        """The model stands in its own place now."""
        if self.place is not None and self._made is not None:
            with suppress(SaveError, OSError):
                remove_model(self.place)
                if self._made != self.place:
                    self._made.rmdir()
        self._made = self.place = None

    def _places(self) -> Iterator[tuple[Path, Path]]:
        """Directories that were made, and where in them the model goes."""
        with suppress(OSError):
            beside = self._path.with_name(f"{self._path.name}.rescued-{secrets.token_hex(4)}")
            beside.mkdir(0o700)
            yield beside, beside
        with suppress(OSError):
            private = Path(tempfile.mkdtemp(prefix="hogwild-rescued-"))
            yield private, private / self._path.name
