"""Objectives of which everything is known: against a twin, closed forms, and points in the ball."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

import hogwild
from hogwild.errors import ConfigError
from hogwild.observe.theory.objective import objective_of
from reference import theory as twin


def problem(loss: str = "logistic", l2: float = 0.1, rows: int = 60, features: int = 5, seed: int = 0):
    random = np.random.default_rng(seed)
    matrix = random.normal(size=(rows, features)).astype(np.float32)
    score = matrix @ random.normal(size=features)
    labels = score + random.normal(size=rows) if loss == "squared" else score + random.normal(size=rows) > 0
    feed = hogwild.feed_of(matrix, labels, random.uniform(0.5, 2.0, rows))
    return objective_of(hogwild.Linear(loss, l2=l2, bias=False), feed)


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_values_and_gradients_are_those_of_the_twin(loss):
    f = problem(loss)
    random = np.random.default_rng(1)
    for _ in range(3):
        weight, way = random.normal(size=5), random.normal(size=5)
        assert f.value(weight) == pytest.approx(twin.objective(f.rows, weight, loss, f.l2), rel=1e-12)
        ahead, behind = (twin.objective(f.rows, weight + step * way, loss, f.l2) for step in (1e-5, -1e-5))
        assert f.gradient(weight) @ way == pytest.approx((ahead - behind) / 2e-5, rel=1e-7)
        each = f.sample_gradients(np.arange(60), np.tile(weight, (60, 1)))
        assert each.mean(axis=0) == pytest.approx(f.gradient(weight), rel=1e-10)
        x, y, i = (array[7] for array in f.rows)
        assert each[7] == pytest.approx(twin.sample_gradient(x, float(y), float(i), weight, loss, f.l2), rel=1e-10)


def test_it_is_what_the_program_minimises():
    random = np.random.default_rng(3)
    feed = hogwild.feed_of(random.normal(size=(200, 4)), random.random(200) < 0.4)
    program = hogwild.Linear("logistic", "sgd", l2=0.05, bias=False, class_weight="balanced")
    f = objective_of(program, feed)
    assert program.weights is None  # it is left as it is
    hogwild.train(program, feed, epochs=60, lr=0.1, threads=1, quiet=True)
    weight = program.arrays()["weight"]
    assert f.value(weight) == pytest.approx(program.evaluate(feed)["loss"] + 0.025 * float(weight @ weight), rel=1e-5)
    assert 0 <= f.gap(weight) < 1e-3 < f.gap(np.zeros(4))


@pytest.mark.parametrize(("loss", "l2"), [("logistic", 0.1), ("logistic", 1e-4), ("logistic", 0.0), ("squared", 0.3)])
def test_the_optimum_is_one(loss, l2):
    f = problem(loss, l2)
    assert np.linalg.norm(f.gradient(f.optimum)) < 1e-12
    assert f.gap(f.optimum) == f.distance(f.optimum) == 0.0
    random = np.random.default_rng(2)
    assert all(f.gap(f.optimum + 1e-3 * random.normal(size=5)) > 0 for _ in range(20))


def test_a_quadratic_with_known_answers():
    """X'X / n = diag(1, 2, 4), so f bends by 1.5, 2.5 and 4.5 with l2 = 0.5, everywhere; and w* is in closed form."""
    random = np.random.default_rng(4)
    basis = np.linalg.qr(random.normal(size=(50, 3)))[0] * np.sqrt(50)
    matrix = (basis * np.sqrt([1.0, 2.0, 4.0])).astype(np.float32)
    targets = random.normal(size=50).astype(np.float32)
    f = objective_of(hogwild.Linear("squared", l2=0.5, bias=False), hogwild.feed_of(matrix, targets))
    assert f.curvature() == pytest.approx((1.5, 4.5), rel=1e-6)
    assert f.curvature(radius=10.0) == f.curvature()
    closed = (matrix.astype(float).T @ targets / 50) / [1.5, 2.5, 4.5]
    assert f.optimum == pytest.approx(closed, rel=1e-5)
    assert f.gap(f.optimum + np.eye(3)[0]) == pytest.approx(0.75, rel=1e-5)
    alone = np.linalg.norm((matrix @ f.optimum - targets)[:, None] * matrix + 0.5 * f.optimum, axis=1)
    assert f.largest_term() == pytest.approx(alone.max(), rel=1e-6)


def _hessian(f, weight):
    columns = [(f.gradient(weight + 1e-5 * e) - f.gradient(weight - 1e-5 * e)) / 2e-5 for e in np.eye(f.features)]
    return np.array(columns)


@pytest.mark.parametrize("radius", [0.0, 0.3, 2.0])
def test_constants_hold_in_the_whole_ball(radius):
    f = problem(features=4)
    c, q = f.curvature(radius)
    kappa = f.largest_term(radius)
    assert f.l2 <= c <= q
    random = np.random.default_rng(5)
    for _ in range(40):
        way = random.normal(size=4)
        weight = f.optimum + way / np.linalg.norm(way) * radius * random.random() ** 0.25
        bends = np.linalg.eigvalsh(_hessian(f, weight))
        assert c - 1e-8 <= bends[0] <= bends[-1] <= q + 1e-8
        each = f.sample_gradients(np.arange(60), np.tile(weight, (60, 1)))
        assert np.linalg.norm(each, axis=1).max() <= kappa * (1 + 1e-12)
    if radius == 0.0:
        assert (c, q) == pytest.approx((bends[0], bends[-1]), rel=1e-6)
        assert kappa == pytest.approx(np.linalg.norm(each, axis=1).max())
    else:
        inside = f.curvature(radius / 2)
        assert c < inside[0] < inside[1] < q


def test_a_beginning_on_the_way():
    f = problem()
    whole = f.gap(np.zeros(5))
    first = f.on_the_way(whole / 10)
    assert f.gap(first) == pytest.approx(whole / 10, rel=1e-4)
    assert (first.astype(np.float32) == first).all()
    assert first @ f.optimum == pytest.approx(np.linalg.norm(first) * np.linalg.norm(f.optimum))
    for gap in (2 * whole, 0.0):
        with pytest.raises(ConfigError, match="smaller epsilon"):
            f.on_the_way(gap)


@pytest.mark.parametrize("binary", [False, True])
def test_sparse_and_dense_samples_are_the_same(binary):
    random = np.random.default_rng(6)
    matrix = (random.random((80, 6)) < [0.2, 0.9, 0.4, 0.1, 0.6, 0.3]).astype(np.float32)
    matrix *= 1.0 if binary else random.normal(size=matrix.shape).astype(np.float32)
    labels = random.random(80) < 0.5
    program = hogwild.Linear(l2=0.1, bias=False)
    dense = objective_of(program, hogwild.feed_of(matrix, labels))
    sparse = objective_of(program, hogwild.feed_of(scipy.sparse.csr_array(matrix), labels))
    assert hogwild.feed_of(scipy.sparse.csr_array(matrix), labels).original.tolist() != list(range(6))
    np.testing.assert_array_equal(sparse.rows.matrix, dense.rows.matrix)
    np.testing.assert_allclose(sparse.optimum, dense.optimum, rtol=1e-12)


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (hogwild.Linear(l2=0.1), "bias=False"),
        (hogwild.Linear(l1=0.1, bias=False), "corners"),
        (hogwild.Linear("hinge", l2=0.1, bias=False), "hinge loss has a corner.*needs logistic or squared"),
        ("linear", "the program is a str"),
    ],
)
def test_what_is_not_convex_and_smooth_is_refused(program, words):
    with pytest.raises(ConfigError, match=words):
        objective_of(program, hogwild.feed_of([[1.0], [2.0], [0.5]], [0, 1, 1]))


def test_what_is_too_large_or_has_no_optimum_is_refused():
    program = hogwild.Linear(bias=False)
    with pytest.raises(ConfigError, match="3 classes"):
        objective_of(program, hogwild.feed_of([[1.0], [2.0], [0.5]], [0, 1, 2]))
    with pytest.raises(ConfigError, match="2,049 features"):
        objective_of(program, hogwild.feed_of(np.ones((2, 2049)), [0, 1]))
    apart = objective_of(program, hogwild.feed_of([[1.0], [2.0], [-0.5]], [1, 1, 0]))
    with pytest.raises(ConfigError, match="fall for ever"):
        _ = apart.optimum
    twice = objective_of(program, hogwild.feed_of([[1.0, 1.0], [2.0, 2.0], [0.5, 0.5]], [1, 0, 1]))
    with pytest.raises(ConfigError, match="Give an l2"):
        _ = twice.optimum
