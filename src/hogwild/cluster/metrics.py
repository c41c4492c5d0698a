"""What nodes send, wait for and take, among Ray's own metrics, for whoever collects those."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ray.util.metrics import Gauge

_TOLD = {
    "samples": "Samples that a node has visited.",
    "units_per_second": "Samples, or words, that a node trains on in a second.",
    "sent": "Bytes that a node has sent.",
    "received": "Bytes that a node has received.",
    "messages_sent": "Messages that a node has sent.",
    "messages_received": "Messages that a node has received.",
    "seconds_waited": "Seconds that a node has waited for others.",
    "seconds_exchanging": "Seconds that a node has spent on exchanges.",
    "exchanges": "Exchanges that a node has made.",
    "cores": "Cores that a node keeps busy.",
    "memory": "Bytes of memory that a node takes.",
}


class Mirror:
    """Gauges `hogwild_…`, one a number and with a tag `node`; nobody sees them where Ray has no exporter."""

    def __init__(self) -> None:
        self._gauges = {name: Gauge(f"hogwild_{name}", text, tag_keys=("node",)) for name, text in _TOLD.items()}

    def show(self, nodes: Sequence[dict[str, Any]]) -> None:
        """Numbers of all nodes, as events tell them."""
        for node in nodes:
            for name, gauge in self._gauges.items():
                if name in node:
                    gauge.set(float(node[name]), {"node": str(node["node"])})
