"""Five modes over the same program: repeatable, exclusive, summed, and always all of the work."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import hogwild
from compiling import compiled_in_full
from hogwild.config import TrainConfig
from hogwild.executor.modes import Turns, lockstep_of
from problems.tasks import Cells, Touches, count_program, touches

MODES = ["hogwild", "serial", "locked", "round-robin", "minibatch"]
ROWS = 7


def _train(mode: str, threads: int, samples: Touches, **options: object) -> tuple[hogwild.CustomProgram, object]:
    program = count_program(ROWS)
    events = list(hogwild.AsyncExecutor(threads=threads, mode=mode, **options).run(program, samples, lr=1.0, epochs=3))
    return program, events[-1]


@pytest.mark.parametrize("threads", [1, 2, 3, 10])
@pytest.mark.parametrize("mode", MODES)
def test_total_work_is_exact_for_any_number_of_workers(mode: str, threads: int) -> None:
    samples = touches(1009, ROWS)
    _, finished = _train(mode, threads, samples)
    assert finished.samples == 3 * 1009
    assert finished.reason == "done"
    assert finished.loss == pytest.approx(1.0)


@pytest.mark.parametrize("mode", ["locked", "round-robin", "minibatch"])
@pytest.mark.parametrize("threads", [2, 10])
def test_synchronous_modes_lose_no_update_on_shared_rows(mode: str, threads: int) -> None:
    samples = touches(5003, ROWS)
    program, _ = _train(mode, threads, samples)
    expected = 3 * np.bincount(samples.rows, minlength=ROWS)
    np.testing.assert_array_equal(program.weights.values[:, 0], expected)


def test_hogwild_on_disjoint_rows_is_exact() -> None:
    samples = Touches(np.arange(4000, dtype=np.int32), np.ones(4000, np.float32))
    program = count_program(4000)
    list(hogwild.AsyncExecutor(threads=4, sharing="all").run(program, samples, lr=1.0, epochs=2))
    np.testing.assert_array_equal(program.weights.values, 2)


@pytest.mark.parametrize("batch", [2, 3, 8])
def test_minibatch_applies_whole_batches_and_what_is_left_at_the_end(batch: int) -> None:
    samples = touches(101, ROWS)
    program, finished = _train("minibatch", 2, samples, batch=batch)
    assert finished.samples == 303
    np.testing.assert_array_equal(program.weights.values[:, 0], 3 * np.bincount(samples.rows, minlength=ROWS))


@pytest.mark.parametrize(
    ("mode", "threads", "batch", "expected"),
    [("hogwild", 4, 0, 0), ("round-robin", 4, 0, 4), ("minibatch", 4, 6, 12), ("minibatch", 3, 0, 3)],
)
def test_spans_of_modes_in_rounds_are_whole_rounds_and_batches(
    mode: str, threads: int, batch: int, expected: int
) -> None:
    assert lockstep_of(TrainConfig(mode=mode, threads=threads, batch=batch)) == expected


def test_weights_are_those_of_the_program() -> None:
    program, _ = _train("hogwild", 2, touches(50, ROWS))
    assert isinstance(program.weights, Cells)
    assert program.weights.values.dtype == np.float32


@pytest.mark.parametrize("room", [hogwild.Room(1 << 50), hogwild.Room(1, dense=1 << 50)])
def test_a_sum_of_gradients_that_no_machine_holds_is_refused(room: hogwild.Room) -> None:
    with pytest.raises(hogwild.ConfigError, match="batch is 2: its gradients need"):
        Turns(TrainConfig(mode="minibatch", threads=2), room, 10)


CODE = """
import hashlib, numpy as np, hogwild, scipy.sparse
data = scipy.sparse.random(3000, 400, 0.05, format="csr", random_state=1, dtype=np.float32)
sums = np.asarray(data.sum(1)).ravel()
for mode in ("serial", "round-robin", "minibatch"):
    program = hogwild.Linear(l2=1e-3)
    feed = hogwild.feed_of(data, (sums > np.median(sums)).astype(int))
    list(hogwild.AsyncExecutor(threads=2, mode=mode, epochs=2, lr=0.1, seed=1).run(program, feed))
    print(mode, hashlib.sha256(b"".join(array.tobytes() for array in program.arrays().values())).hexdigest())
"""


@compiled_in_full
def test_the_process_that_compiles_has_the_bits_of_those_that_find_the_code(tmp_path: Path) -> None:
    """It called its own copies of what modes share, made for others: sums were rounded in another order there."""
    said = []
    for _ in range(2):
        environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
        environment.pop("NUMBA_CACHE_DIR", None)
        command = [sys.executable, "-W", "ignore", "-c", CODE]
        said.append(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)
    assert len(said[0].split()) == 6
    assert said[0] == said[1]
