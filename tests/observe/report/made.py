"""Records of a run with all that a report can show."""

from __future__ import annotations

from typing import Any


def records(threads: int = 3, epochs: int = 4, program: str = "linear", speed: float = 1e6) -> list[dict[str, Any]]:
    """A log as `hogwild train --trace --watch --log-dir` writes it."""
    found: list[dict[str, Any]] = [
        {
            "event": "run",
            "program": program,
            "version": "0.1.0",
            "command": "hogwild train classifier 'a b.svm'",
            "seed": 7,
            "machine": {"cores": 2, "processor": "Some CPU", "load_before": 0.25},
            "options": {"train": {"lr": 0.2}},
        },
        {
            "event": "started",
            "seconds": 0.0,
            "threads": threads,
            "mode": "hogwild",
            "sharing": "all",
            "lr": 0.2,
            "notes": ["learning rate 0.2 was given."],
        },
    ]
    for k in range(3 * epochs):
        found.append(
            {
                "event": "progress",
                "seconds": float(k),
                "epoch": k // 3,
                "samples": 100 * k,
                "total": 300 * epochs,
                "loss": 1 / (k + 1),
                "lr": 0.2 / (k + 1),
                "units_per_second": speed,
                "balance": [1 / threads] * threads,
            }
        )
        found.append({"event": "watched", "seconds": float(k), "samples": 100 * k, "values": {"norm": k, "w": [k, -k]}})
        if k % 3 == 2:
            epoch = k // 3 + 1
            found.append(
                {
                    "event": "epoch",
                    "epoch": epoch,
                    "seconds": float(k),
                    "samples": 300 * epoch,
                    "loss": 0.9**epoch,
                    "lr": 0.1,
                    "epoch_seconds": 3.0,
                    "metrics": {"loss": 0.95**epoch, "auc": 0.7 + epoch / 100},
                    "best": epoch == 2,
                    "trace": [worker(w) for w in range(threads)],
                }
            )
    found.append(
        {"event": "nodes", "seconds": 1.0, "nodes": [{"node": 0, "sent": 5, "received": 6, "seconds_waited": 1}]}
    )
    found.append(
        {
            "event": "finished",
            "reason": "done",
            "loss": 0.5,
            "units_per_second": speed,
            "train_seconds": 12.0,
        }
    )
    found.append(
        {
            "event": "summary",
            "program": program,
            "metrics": {"auc": 0.75, "loss": 0.6},
            "evaluated_on": "valid",
            "throughput": {"unit": "nonzeros"},
            "profile": {"phases": {"train": 9.0, "load": 1.0}, "workers": [{"train": 8.0}]},
            "notes": ["learning rate 0.2 was given.", "one more."],
        }
    )
    return found


def worker(number: int) -> dict[str, Any]:
    """A worker's trace of an epoch."""
    return {
        "worker": number,
        "gradients": 640,
        "looked_at": 10,
        "errors": 4,
        "delayed": 2,
        "error_rate": 0.4,
        "delay": {"mean": 1.5, "p99": 9, "counts": {"0": 6, "3": 4}},
        "wrong": {"samples": 10, "mean": 0.1, "p50": 0.05, "p99": 0.5, "max": 0.9},
    }
