"""All logs of a run together: what --log-dir asks for."""

from __future__ import annotations

from contextlib import ExitStack
from types import TracebackType

from hogwild.executor.events import Event
from hogwild.observe import tensorboard
from hogwild.observe.jsonlines import JsonLines
from hogwild.observe.tensorboard import TensorBoard


class Logs:
    """A reader of events that passes them to JSON lines and, where it is installed, to TensorBoard.

    An empty directory name means no logs. `notes` are sentences for the user.
    """

    def __init__(self, directory: str) -> None:
        self._stack = ExitStack()
        self._readers: list[JsonLines | TensorBoard] = []
        self._missing = ""
        if not directory:
            return
        self._readers.append(self._stack.enter_context(JsonLines(directory)))
        if tensorboard.available():
            self._readers.append(self._stack.enter_context(TensorBoard(directory)))
        else:
            self._missing = "JSON lines only: for curves too, pip install 'hogwild[tensorboard]'."

    @property
    def notes(self) -> list[str]:
        """What the user should know about the logs."""
        return [note for note in (self._missing, *(reader.problem for reader in self._readers)) if note]

    def __call__(self, event: Event) -> None:
        """Pass an event on."""
        for reader in self._readers:
            reader(event)

    def __enter__(self) -> Logs:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stack.close()
