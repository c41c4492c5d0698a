"""Updates measured: in the executor against a twin, with planted errors in the simulation, and the bound on both."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import threading
from dataclasses import replace

import numpy as np
import pytest

import hogwild
from compiling import LATER, OFF
from hogwild import theory
from hogwild.errors import ConfigError, SaveError
from hogwild.kernels.compiler.atomics import swap
from hogwild.kernels.compiler.jit import kernel
from hogwild.observe.theory.objective import Objective
from hogwild.observe.theory.windows import Window, pool
from places import ROOT
from reference import theory as twin

EPSILON = 1e-4  # of the executor's runs
TARGET = 2e-3  # of simulations


def problem(loss: str = "logistic", rows: int = 300, features: int = 16, l2: float = 0.3) -> Objective:
    random = np.random.default_rng(0)
    matrix = random.normal(size=(rows, features))
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    score = matrix @ random.normal(size=features) * 4
    labels = score + random.normal(size=rows) if loss == "squared" else random.random(rows) < 1 / (1 + np.exp(-score))
    feed = hogwild.feed_of(matrix, labels, random.uniform(0.9, 1.1, rows))
    return theory.objective_of(hogwild.Linear(loss, l2=l2, bias=False), feed)


PROBLEM = problem()


# -- the meter -------------------------------------------------------------------------------------------------------


@kernel
def put_many(cells, first, count):
    taken = 0.0
    for value in range(first, first + count):
        taken += np.float64(swap(cells[0], 1, np.float32(value)))
    return taken


def test_an_exchange_loses_no_value():
    """Whatever is put into a cell comes out of it once, or is still there."""
    count = 20 if OFF else 100_000
    cells = np.zeros((1, 3), np.float32)
    taken = []
    crew = [
        threading.Thread(target=lambda k=k: taken.append(put_many(cells, k * count, count))) for k in range(4)
    ]
    for thread in crew:
        thread.start()
    for thread in crew:
        thread.join(timeout=60)
    assert sum(taken) + float(cells[0, 1]) == sum(range(4 * count))
    assert cells[0, 0] == cells[0, 2] == 0


@pytest.mark.parametrize(
    ("loss", "mode", "threads"),
    [
        ("logistic", "serial", 1),
        ("logistic", "round-robin", 3),
        pytest.param("squared", "round-robin", 3, marks=LATER),
    ],
)
def test_the_meter_adds_up_what_the_twin_does(loss, mode, threads):
    """In rounds of three, two of three updates are computed from weights that are overwritten since, by turns."""
    f = problem(loss, rows=40, features=4)
    first, gamma, count = np.float32([0.5, -0.25, 0.0, 1.0]).astype(float), 0.05, 90
    (window,) = theory.Measured(f, threads, mode).run(first, gamma, count, 1, seed=5)
    real = twin.rounds(f, first, gamma, count, threads, seed=5)
    assert (window.end, window.counted) == (count, count)
    assert window.distance == pytest.approx(f.distance(real.weight), rel=1e-4)
    assert window.gap == pytest.approx(f.gap(real.weight), rel=1e-4)
    assert window.error == pytest.approx(np.mean(real.errors), rel=1e-3, abs=1e-6)
    assert window.error_square == pytest.approx(np.mean(np.square(real.errors)), rel=1e-3, abs=1e-9)
    assert window.step_square == pytest.approx(np.mean(real.squares), rel=1e-4)
    assert window.largest_term == pytest.approx(max(real.terms), rel=1e-4)
    assert window.largest_step == pytest.approx(max(real.terms), rel=1e-4)
    assert window.farthest >= f.distance(first) * (1 - 1e-6)
    assert (window.stale, window.lost) == ((threads - 1) / threads, 0.0)
    assert window.moved * count == pytest.approx(window.distance - f.distance(first), rel=1e-9)
    if threads > 1:
        assert abs(np.mean(real.errors)) > 1e-5  # the errors that are compared are there


def test_one_worker_makes_no_errors_but_rounding():
    windows = theory.Measured(PROBLEM, threads=1).run(PROBLEM.on_the_way(1e-3), 1e-3, 300, 3, seed=1)
    assert [window.end for window in windows] == [100, 200, 300]
    for window in windows:
        assert window.stale == window.lost == 0.0
        assert abs(window.error) < 1e-6 < window.step_square


@pytest.mark.skipif(OFF, reason="many updates")
def test_many_updates_without_locks_add_up_exactly():
    """Equation 12 of the paper, summed over a run: whatever four workers overwrite, no step is missed or invented."""
    first = PROBLEM.on_the_way(1e-3)
    windows = theory.Measured(PROBLEM, threads=4).run(first, 3e-4, 60_000, 4, seed=2)
    assert [window.counted for window in windows] == [15_000] * 4
    distances = [PROBLEM.distance(first), *(window.distance for window in windows)]
    for k, window in enumerate(windows):
        assert window.moved * window.counted == pytest.approx(distances[k + 1] - distances[k], rel=1e-9, abs=1e-15)
        assert 0 <= window.lost <= window.stale <= 1
    assert windows[-1].gap < 0.5 * PROBLEM.gap(first)


@pytest.mark.skipif(OFF, reason="this is the inner run")
def test_the_meter_without_the_compiler(tmp_path):
    root = ROOT
    paths = os.pathsep.join(str(root / name) for name in ("src", "tests"))
    environment = {**os.environ, "PYTHONPATH": paths, "NUMBA_DISABLE_JIT": "1", "HOGWILD_CACHE": str(tmp_path)}
    chosen = "exchange or adds_up_what or one_worker"
    command = [sys.executable, "-W", "ignore", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", chosen, __file__]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]


# -- the simulation --------------------------------------------------------------------------------------------------


def _slow(f, first, gamma, count, engine, seed):
    """The simulation one copy and one update at a time, with the whole history; errors by the full gradient."""
    random = np.random.default_rng(seed)
    past = [np.tile(first, (engine.copies, 1))]
    exact = []
    for update in range(count):
        now, then = past[update], past[max(0, update - engine.delay)]
        samples = random.integers(len(f.rows.targets), size=engine.copies)
        late, over = random.random(now.shape) < engine.stale, random.random(now.shape) < engine.lost
        after = np.empty_like(now)
        for k in range(engine.copies):
            read = np.where(late[k], then[k], now[k])
            x, y, i = (array[samples[k]] for array in f.rows)
            term = twin.sample_gradient(x, float(y), float(i), read, f.loss, f.l2)
            after[k] = np.where(over[k], then[k], now[k]) - gamma * term
            undone = np.where(over[k], (now[k] - then[k]) / gamma, 0.0)
            exact.append((f.gradient(now[k]) - f.gradient(read) - undone) @ (now[k] - f.optimum))
        past.append(after)
    return past[-1], float(np.mean(exact))


@pytest.mark.parametrize(("delay", "stale", "lost"), [(0, 0.5, 0.5), (3, 0.5, 0.0), (1, 0.0, 0.3), (2, 1.0, 1.0)])
def test_simulated_updates_are_those_of_the_slow_form(delay, stale, lost):
    f = problem(rows=50, features=3)
    engine = theory.Simulated(f, delay, stale, lost, copies=2)
    first = f.on_the_way(1e-2)
    (window,) = engine.run(first, 0.02, 40, 1, seed=3)
    weights, _ = _slow(f, first, 0.02, 40, engine, seed=3)
    assert window.distance == pytest.approx(np.mean([f.distance(w) for w in weights]), rel=1e-9)
    assert window.moved * window.counted / 2 == pytest.approx(window.distance - f.distance(first), rel=1e-9)
    assert (window.error == pytest.approx(0.0, abs=1e-15)) == (delay == 0)
    assert (window.stale > 0) == (delay > 0 and stale > 0)
    assert (window.lost > 0) == (delay > 0 and lost > 0)
    assert engine.run(first, 0.02, 40, 1, seed=3) == [window]  # it repeats
    assert engine.run(first, 0.02, 40, 1, seed=4) != [window]


def test_the_error_of_drawn_samples_is_that_of_all_samples_on_average():
    """What is measured on one random sample an update estimates (grad f(w) - s(w)) (w - w*) without bias."""
    f = problem(rows=50, features=3)
    engine = theory.Simulated(f, delay=4, stale=0.7, lost=0.2, copies=16)
    first = f.on_the_way(1e-2)
    (window,) = engine.run(first, 0.02, 150, 1, seed=3)
    _, exact = _slow(f, first, 0.02, 150, engine, seed=3)
    assert exact > 1e-4  # lost updates do harm, and it shows
    assert window.error == pytest.approx(exact, rel=0.05)


def test_simulations_that_make_no_sense_are_refused():
    for wrong in ({"delay": -1}, {"stale": 1.5}, {"lost": -0.1}, {"copies": 0}):
        with pytest.raises(ConfigError, match=next(iter(wrong))):
            theory.Simulated(PROBLEM, **wrong)
    with pytest.raises(ConfigError, match="batch"):
        theory.Measured(PROBLEM, mode="minibatch")


# -- estimates and the experiment ------------------------------------------------------------------------------------


def test_windows_are_put_together_by_their_updates():
    one = Window(10, 1.0, 0.5, counted=10, error=2.0, error_square=5.0, largest_step=3.0, stale=0.5)
    two = Window(10, 3.0, 1.5, counted=30, error=6.0, error_square=40.0, largest_step=2.0, stale=0.1)
    (both,) = pool([[one], [two]])
    assert (both.distance, both.gap, both.counted, both.error, both.largest_step) == (2.0, 1.0, 40, 5.0, 3.0)
    assert both.stale == pytest.approx(0.2)
    assert both.uncertainty == pytest.approx(((5 * 10 + 40 * 30) / 40 - 25) ** 0.5 / 40**0.5)


def test_estimates_of_a_simulation_without_errors():
    known = theory.estimate(theory.Simulated(PROBLEM, delay=0, copies=2), 1e-3, runs=1)
    assert known.tau < 1e-12
    assert (known.c, known.q) == PROBLEM.curvature(known.radius)
    assert known.kappa == PROBLEM.largest_term(known.radius)
    assert 0.5 * known.kappa < known.kappa_seen <= known.kappa
    assert known.kappa_rms < known.kappa_seen
    assert known.gap0 == pytest.approx(4e-3, rel=1e-3)
    assert known.a0 == PROBLEM.distance(PROBLEM.on_the_way(4e-3))


@pytest.fixture(scope="module")
def simulated():
    engine = theory.Simulated(PROBLEM, delay=3, stale=0.5, lost=0.02)
    return theory.experiment(engine, TARGET, theory.estimate(engine, TARGET, runs=1), runs=2)


def test_the_bound_holds_in_a_simulation_with_errors(simulated):
    assert simulated.checks == dict.fromkeys(["condition", "distance", "gap", "tau", "kappa", "region"], True)
    assert simulated.holds
    known = simulated.estimates
    assert 0.02 * simulated.largest_tau < known.tau < simulated.largest_tau
    assert simulated.gamma == theory.learning_rate(known.c, known.q, known.kappa, TARGET, known.tau)
    assert simulated.updates == theory.updates(known.c, known.q, known.kappa, TARGET, known.tau, known.a0)
    assert simulated.updates <= simulated.windows[-1].end < simulated.updates + 10
    assert simulated.gamma < known.gamma  # errors ask for a smaller rate than the trial had
    assert len(simulated.distances) == len(simulated.gaps) == 2
    assert simulated.windows[-1].gap == pytest.approx(np.mean([gaps[-1] for gaps in simulated.gaps]))


def test_planted_errors_that_are_too_large_are_reported():
    """Half of the weights of every update are written back to what they were 20 updates ago."""
    engine = theory.Simulated(PROBLEM, delay=20, stale=0.5, lost=0.5)
    check = theory.experiment(engine, TARGET, theory.estimate(engine, TARGET, runs=1))
    assert check.checks == {"condition": False}
    assert not check.holds
    assert check.estimates.tau > check.largest_tau
    assert check.smallest_epsilon > TARGET
    assert "The condition fails" in check.problem
    assert check.problem in str(check)
    assert (check.gamma, check.updates, check.windows) == (0.0, 0, ())
    json.dumps(check.record(), allow_nan=False)
    with pytest.raises(ConfigError, match="nothing to draw"):
        theory.draw(check, "nowhere.png")


def test_a_planted_tau_is_reported(simulated):
    large = replace(simulated.estimates, tau=2 * simulated.largest_tau)
    check = theory.experiment(theory.Simulated(PROBLEM, delay=0), TARGET, large)
    assert not check.checks["condition"]
    assert check.smallest_epsilon == pytest.approx(2 * TARGET)


def test_wrong_constants_are_found_out(simulated):
    """With a kappa of a fifth the rate is 25 times what it should be: the runs end too far away, and it shows."""
    known = replace(simulated.estimates, kappa=simulated.estimates.kappa / 5, tau=0.0)
    check = theory.experiment(theory.Simulated(PROBLEM, delay=3, stale=0.5, lost=0.02), TARGET, known, runs=1)
    assert not check.holds
    assert not check.checks["kappa"]
    assert not check.checks["gap"]
    slow = theory.experiment(theory.Simulated(PROBLEM, delay=0), TARGET, replace(known, c=1.0, q=1.0), runs=1)
    assert not slow.checks["distance"]  # it does not fall as fast as a strongly convex one would


@pytest.mark.parametrize(
    "engine", [*(theory.Measured(PROBLEM, threads) for threads in (1, 2, 4)), theory.Trained(PROBLEM)]
)
def test_many_workers_stay_below_the_bound(engine):
    """With a quarter of the errors that the target allows; on a machine that is quiet there are fewer.

    Where one worker is stopped in the middle of an update there may be more: the measured errors tell, and nothing is
    promised then.
    """
    start = theory.estimate(theory.Measured(PROBLEM, 1), EPSILON, start=2.0, runs=1)
    limit = theory.largest_tau(start.c, start.q, EPSILON)
    check = theory.experiment(engine, EPSILON, replace(start, tau=limit / 4), runs=4)
    assert check.checks["condition"]
    assert check.windows[-1].end >= check.updates > 10_000
    measured = isinstance(engine, theory.Measured)
    assert ("tau" in check.checks) == measured
    if not measured or engine.threads == 1 or (check.checks["tau"] and check.checks["kappa"]):
        assert check.checks["distance"], str(check)
        assert check.checks["gap"], str(check)
        assert check.windows[0].gap < start.gap0


def test_estimates_need_a_meter():
    with pytest.raises(ConfigError, match="Trained measures no errors"):
        theory.estimate(theory.Trained(PROBLEM), 1e-3, runs=1)
    with pytest.raises(ConfigError, match="start is 0"):
        theory.estimate(theory.Simulated(PROBLEM), 1e-3, start=0)
    with pytest.raises(ConfigError, match="smaller epsilon"):
        theory.estimate(theory.Simulated(PROBLEM), 1.0)
    with pytest.raises(ConfigError, match="runs"):
        theory.experiment(theory.Simulated(PROBLEM), 1e-3, runs=0)


def test_workers_are_estimated():
    known = theory.estimate(theory.Measured(PROBLEM, 2), EPSILON, start=2.0, runs=2)
    assert known.measured >= 2 * theory.updates(known.c, known.q, known.kappa, EPSILON, 0.0, known.a0)
    assert known.tau >= 0
    assert known.kappa_seen <= known.kappa
    alone = theory.estimate(theory.Measured(PROBLEM, 1), EPSILON, start=2.0, runs=1)
    assert (alone.stale, alone.lost) == (0.0, 0.0)
    assert alone.tau < 0.01 * theory.largest_tau(alone.c, alone.q, EPSILON)  # rounding


# -- the example -----------------------------------------------------------------------------------------------------


def test_the_example_runs(tmp_path, monkeypatch, capsys):
    path = ROOT / "examples" / "theory.py"
    spec = importlib.util.spec_from_file_location("theory_example", path)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    monkeypatch.setattr(example, "EPSILON", 5e-4)  # a tenth of the updates
    example.main(str(tmp_path / "theory.png"))
    records = json.loads((tmp_path / "theory.json").read_text(encoding="utf-8"))
    assert [record["label"].partition(",")[0] for record in records] == ["2 workers", "4 workers", "hogwild.Linear"]
    assert all(record["estimates"]["c"] >= 0.1 for record in records)
    ran = [record for record in records if not record["problem"]]
    assert capsys.readouterr().out.count("promised 0.0005") == len(ran)
    assert (tmp_path / "theory.png").exists() == bool(ran)


@pytest.mark.parametrize("share", [0.25, 2.0])
def test_the_guide_goes_on_whether_the_condition_holds_or_not(share, simulated, tmp_path, monkeypatch, capsys):
    """How large tau is, is up to the machine: both ends of the guide are tried with one that is planted."""
    text = (ROOT / "docs" / "theory.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```python\n(check = .*?)^```$", text, re.MULTILINE | re.DOTALL)
    limit = theory.largest_tau(simulated.estimates.c, simulated.estimates.q, 5e-4)
    names = {"theory": theory, "objective": PROBLEM, "known": replace(simulated.estimates, tau=share * limit)}
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "theory.md", "exec"), names)
    assert ("The condition fails" in capsys.readouterr().out) == (share > 1)
    assert (tmp_path / "theory.png").exists() == (share < 1)
    assert names["record"]["checks"]["condition"] == (share < 1)


# -- numbers and pictures --------------------------------------------------------------------------------------------


def test_everything_goes_into_json(simulated):
    again = json.loads(json.dumps(simulated.record(), allow_nan=False))
    assert again["holds"] is True
    assert again["estimates"]["tau"] == simulated.estimates.tau
    assert [window["end"] for window in again["windows"]] == [window.end for window in simulated.windows]
    assert again["gaps"] == [list(run) for run in simulated.gaps]


def test_a_picture_without_matplotlib_is_refused_in_a_line(simulated, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ConfigError, match=r"^pictures need matplotlib, .*: pip install 'hogwild\[report\]'$"):
        theory.draw(simulated, tmp_path / "bound.png")


def test_a_picture_is_drawn(simulated, tmp_path):
    theory.draw([simulated, simulated], tmp_path / "bound.svg")
    text = (tmp_path / "bound.svg").read_text(encoding="utf-8")
    assert "</svg>" in text
    theory.draw(simulated, tmp_path / "bound.png")
    assert (tmp_path / "bound.png").read_bytes().startswith(b"\x89PNG")
    for path in (tmp_path / "none" / "bound.png", tmp_path / "bound.nothing"):
        with pytest.raises(SaveError, match="choose another place"):
            theory.draw(simulated, path)
