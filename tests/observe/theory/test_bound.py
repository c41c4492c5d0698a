"""The theorem of AsynGrad as formulas: by hand, against the recursion itself, and where they must refuse."""

from __future__ import annotations

import math
import re
import subprocess
import sys

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import hogwild
from hogwild.errors import ConfigError
from hogwild.observe.theory.bound import Recursion, gap_bound, largest_tau, learning_rate, smallest_epsilon, updates

VALUES = {"c": 0.5, "q": 1.0, "kappa": 2.0, "epsilon": 0.1, "tau": 0.005}


# -- by hand ---------------------------------------------------------------------------------------------------------


def test_numbers_computed_by_hand() -> None:
    # c eps - 2 tau q = 0.05 - 0.01 = 0.04; q kappa^2 = 4; log(q a0 / eps) = log 40 = 3.688879; 4 * 3.688879 / 0.02
    assert learning_rate(**VALUES) == pytest.approx(0.01)
    assert updates(**VALUES, a0=4.0) == 738
    assert learning_rate(**VALUES, beta=2.0) == pytest.approx(0.005)
    assert updates(**VALUES, a0=4.0, beta=2.0) == 1476
    assert largest_tau(0.5, 1.0, 0.1) == pytest.approx(0.025)
    assert smallest_epsilon(0.5, 1.0, 0.005) == pytest.approx(0.02)
    recursion = Recursion(c=0.5, kappa=2.0, tau=0.005, gamma=0.01)
    assert recursion.next(4.0) == pytest.approx(0.995 * 4 + 1e-4 + 4e-4)
    assert recursion.steady == pytest.approx((0.01 + 0.04) / 0.5)
    assert recursion.after(4.0, 2) == pytest.approx(recursion.next(recursion.next(4.0)))
    assert gap_bound(3.0, 0.5) == pytest.approx(0.75)


def test_without_errors_the_rate_is_the_largest() -> None:
    assert learning_rate(**{**VALUES, "tau": 0.0}) == pytest.approx(0.05 / 4)
    assert learning_rate(**{**VALUES, "tau": 0.0}) > learning_rate(**VALUES)


@pytest.mark.parametrize(("weight", "loss"), [(10.0, 1.0), (1.0, 1000.0), (0.01, 7.0)])
def test_units_cancel(weight: float, loss: float) -> None:
    """In other units of weight and loss the rate is a squared weight a loss, and the number of updates the same."""
    other = {
        "c": VALUES["c"] * loss / weight**2,
        "q": VALUES["q"] * loss / weight**2,
        "kappa": VALUES["kappa"] * loss / weight,
        "epsilon": VALUES["epsilon"] * loss,
        "tau": VALUES["tau"] * loss,
    }
    assert learning_rate(**other) == pytest.approx(learning_rate(**VALUES) * weight**2 / loss)
    assert abs(updates(**other, a0=4.0 * weight**2) - 738) <= 1
    assert largest_tau(other["c"], other["q"], other["epsilon"]) == pytest.approx(0.025 * loss)


# -- against the recursion -------------------------------------------------------------------------------------------


@st.composite
def constants(draw: st.DrawFn, least_folds: float = 0.0) -> dict[str, float]:
    """Valid ones of any size, chosen so that there are at most some ten thousand updates."""
    q = 10 ** draw(st.floats(-4, 4))
    c = q * draw(st.floats(0.01, 1.0))
    epsilon = 10 ** draw(st.floats(-6, 3))
    tau = draw(st.floats(0.0, 0.99)) * c * epsilon / (2 * q)
    beta = draw(st.floats(1.0, 5.0))
    pace = 10 ** draw(st.floats(-2.5, -0.01))  # gamma c
    kappa = math.sqrt(c * (c * epsilon - 2 * tau * q) / (beta * q * pace))
    a0 = epsilon / q * math.exp(draw(st.floats(least_folds, 15.0)))
    return {"c": c, "q": q, "kappa": kappa, "epsilon": epsilon, "tau": tau, "a0": a0, "beta": beta}


def iterated(values: dict[str, float], gamma: float, count: int) -> float:
    a = values["a0"]
    for _ in range(count):
        drift = 2 * gamma * values["tau"]
        a = (1 - values["c"] * gamma) * a + drift + gamma**2 * values["kappa"] ** 2
    return a


def rate_of(values: dict[str, float]) -> float:
    return learning_rate(**{name: value for name, value in values.items() if name != "a0"})


@given(constants())
@settings(max_examples=60, deadline=None)
def test_after_that_many_updates_the_recursion_is_within_epsilon(values: dict[str, float]) -> None:
    gamma, count = rate_of(values), updates(**values)
    a = iterated(values, gamma, count)
    assert gap_bound(values["q"], a) <= values["epsilon"] * (1 + 1e-9)
    recursion = Recursion(values["c"], values["kappa"], values["tau"], gamma)
    assert recursion.after(values["a0"], count) == pytest.approx(a, rel=1e-9)
    assert gap_bound(values["q"], recursion.steady) <= values["epsilon"] / 2 * (1 + 1e-9)


@given(constants(least_folds=5.0))
@settings(max_examples=40, deadline=None)
def test_a_tenth_of_the_updates_is_not_enough(values: dict[str, float]) -> None:
    """So the number is not merely large: at small rates it is what the recursion needs."""
    gamma, count = rate_of(values), updates(**values)
    assume(gamma * values["c"] < 0.1)
    assert gap_bound(values["q"], iterated(values, gamma, count // 10)) > values["epsilon"]


@given(constants())
@settings(max_examples=40, deadline=None)
def test_twice_the_rate_without_errors_is_all_that_can_be_taken(values: dict[str, float]) -> None:
    values = {**values, "tau": 0.0, "beta": 1.0}
    pace = values["c"] ** 2 * values["epsilon"] / values["q"] / values["kappa"] ** 2
    assume(3 * pace < 1)
    gamma = rate_of(values)
    assert gap_bound(values["q"], Recursion(values["c"], values["kappa"], 0.0, gamma).steady) <= values["epsilon"]
    too_fast = Recursion(values["c"], values["kappa"], 0.0, 2.5 * gamma)
    assert gap_bound(values["q"], too_fast.steady) > values["epsilon"]


# -- edges and refusals ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("a0", [0.0, 1e-12, 0.05, 0.1])
def test_nothing_to_do_where_the_beginning_is_near(a0: float) -> None:
    """q a0 / epsilon <= 1: and the bound never leaves epsilon afterwards."""
    assert updates(**VALUES, a0=a0) == 0
    recursion = Recursion(0.5, 2.0, 0.005, learning_rate(**VALUES))
    assert max(gap_bound(1.0, recursion.after(a0, t)) for t in range(0, 5000, 50)) <= 0.1
    assert updates(**VALUES, a0=0.1001) > 0


def test_tau_below_its_limit_only() -> None:
    limit = largest_tau(0.5, 1.0, 0.1)
    with pytest.raises(ConfigError, match=r"tau is 0\.025; .* below 0\.025.*epsilon above 0\.1"):
        learning_rate(**{**VALUES, "tau": limit})
    with pytest.raises(ConfigError, match=r"below 0\.025"):
        updates(**{**VALUES, "tau": 1.0}, a0=4.0)
    near = updates(**{**VALUES, "tau": 0.999 * limit}, a0=4.0)
    assert near > 500 * updates(**{**VALUES, "tau": 0.0}, a0=4.0)
    with pytest.raises(ConfigError, match="tau"):
        learning_rate(**{**VALUES, "epsilon": smallest_epsilon(0.5, 1.0, 0.005)})
    assert learning_rate(**{**VALUES, "epsilon": 1.001 * smallest_epsilon(0.5, 1.0, 0.005)}) > 0


def test_a_rate_past_one_over_c_asks_for_a_beta_that_helps() -> None:
    values = {**VALUES, "kappa": 0.1}
    with pytest.raises(ConfigError, match="gamma c would be 2; it must be below 1") as refusal:
        learning_rate(**values)
    least = float(re.search(r"beta above ([\d.e+-]+)", str(refusal.value))[1])
    assert learning_rate(**values, beta=1.001 * least) * values["c"] < 1
    assert updates(**values, a0=4.0, beta=1.001 * least) > 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"c": 0.0}, "c is 0.0; f must be strongly convex"),
        ({"c": -1.0}, "l2"),
        ({"c": 1.1}, "c is 1.1 and q is 1"),
        ({"q": 0.0}, "q is 0.0"),
        ({"kappa": 0.0}, "kappa is 0.0; update terms that are all zero change nothing"),
        ({"kappa": -1.0}, "kappa"),
        ({"kappa": math.inf}, "finite"),
        ({"epsilon": 0.0}, "epsilon is 0.0"),
        ({"epsilon": math.nan}, "epsilon is nan"),
        ({"tau": -0.1}, "tau is -0.1; it must not be negative"),
        ({"beta": 0.99}, "beta is 0.99; it must be at least 1"),
    ],
)
def test_refusals_say_what_is_wrong(change: dict[str, float], words: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(words)):
        learning_rate(**{**VALUES, **change})
    with pytest.raises(ConfigError, match=re.escape(words)):
        updates(**{**VALUES, "a0": 1.0, **change})


def test_refusals_of_the_rest() -> None:
    with pytest.raises(ConfigError, match="a0"):
        updates(**VALUES, a0=-1.0)
    with pytest.raises(ConfigError, match="gamma c"):
        Recursion(0.5, 2.0, 0.0, 2.0)
    with pytest.raises(ConfigError, match="gamma is 0"):
        Recursion(0.5, 2.0, 0.0, 0.0)
    with pytest.raises(ConfigError, match="squared distance"):
        Recursion(0.5, 2.0, 0.0, 0.1).after(-1.0, 3)
    with pytest.raises(ConfigError, match="tau"):
        smallest_epsilon(0.5, 1.0, -0.1)


def test_extreme_numbers_do_not_overflow() -> None:
    assert updates(c=1e-200, q=1e-200, kappa=1e-200, epsilon=1e-100, tau=0.0, a0=1e300, beta=1e302) > 0
    with pytest.raises(ConfigError, match="a unit is off"):
        learning_rate(**{**VALUES, "kappa": 1e200})


# -- the module ------------------------------------------------------------------------------------------------------


def test_the_formulas_are_there_and_light() -> None:
    code = (
        "import hogwild, sys; print(round(hogwild.theory.learning_rate(0.5, 1.0, 2.0, 0.1, 0.005), 9));"
        "print(sorted({'numpy', 'numba', 'scipy', 'matplotlib'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split("\n")[:2] == ["0.01", "[]"]


def test_every_name_of_the_module_is_there_and_documented() -> None:
    assert "theory" in dir(hogwild)
    assert {"learning_rate", "estimate", "experiment", "draw"} <= set(dir(hogwild.theory))
    for name in hogwild.theory.__all__:
        assert getattr(hogwild.theory, name).__doc__, name
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = hogwild.theory.nothing
