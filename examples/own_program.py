"""A program of your own: ratings, from one vector for each user and one for each item.

The guess for a rating is the dot product of the two vectors. Everything that hogwild needs is a task (`Rate`), what
one visit reads and computes (`rate_gradient`), and what it writes (`rate_apply`): plain Python that is compiled for
you. docs/guide-own.md goes through it line by line. Run it: python examples/own_program.py
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import hogwild

USERS, ITEMS, WIDTH = 300, 200, 8


class Ratings(NamedTuple):
    """Samples: one entry a rating."""

    users: np.ndarray  # int32
    items: np.ndarray  # int32
    stars: np.ndarray  # float32


class Vectors(NamedTuple):
    """Weights: one row a user, one row an item."""

    users: np.ndarray  # float32, (users, width)
    items: np.ndarray  # float32, (items, width)


class Rate(NamedTuple):
    """The task: squared error of a rating, plus `decay` times the squared vectors that it uses."""

    decay: np.float32


@hogwild.gradient_of(Rate)
def rate_gradient(task: Any, samples: Any, visit: int, weights: Any, scratch: Any) -> Any:
    """Read weights, fill scratch with the gradient of one rating, return its loss."""
    user, item = samples.users[visit], samples.items[visit]
    width = weights.users.shape[1]
    guess = np.float32(0)  # a bare 0.0 would make it float64
    for k in range(width):
        guess += weights.users[user, k] * weights.items[item, k]
    error = guess - samples.stars[visit]

    # Rows are numbered through all weight arrays: those of `items` come after those of `users`.
    scratch.rows[0] = user
    scratch.rows[1] = len(weights.users) + item
    for k in range(width):
        scratch.grads[0, k] = error * weights.items[item, k] + task.decay * weights.users[user, k]
        scratch.grads[1, k] = error * weights.users[user, k] + task.decay * weights.items[item, k]
    scratch.count[0] = 2
    return np.float32(0.5) * error * error


@hogwild.apply_of(Rate)
def rate_apply(task: Any, weights: Any, scratch: Any, step: Any) -> None:
    """Write all rows in scratch: those of one visit or, in mode `minibatch`, the summed ones of many."""
    first_item = len(weights.users)
    for e in range(scratch.count[0]):
        row = scratch.rows[e]
        for k in range(weights.users.shape[1]):
            move = step.rate * scratch.grads[e, k]
            if row < first_item:
                weights.users[row, k] -= move
            else:
                weights.items[row - first_item, k] -= move


def make_vectors(seed: int = 0) -> Vectors:
    """The startup: small random vectors."""
    random = np.random.default_rng(seed)
    users, items = (random.normal(0, 0.3, (rows, WIDTH)).astype(np.float32) for rows in (USERS, ITEMS))
    return Vectors(users, items)


def make_ratings(count: int, seed: int = 0) -> Ratings:
    """Ratings that vectors can explain, up to a noise of 0.1. The lower its number, the more often a user or item."""
    truth = np.random.default_rng(7)
    tastes, traits = truth.normal(0, 0.7, (USERS, 3)), truth.normal(0, 0.7, (ITEMS, 3))
    random = np.random.default_rng(seed)
    users, items = ((limit * random.random(count) ** 2).astype(np.int32) for limit in (USERS, ITEMS))
    stars = (tastes[users] * traits[items]).sum(axis=1) + random.normal(0, 0.1, count)
    return Ratings(users, items, stars.astype(np.float32))


def errors(weights: Vectors, feed: Ratings) -> dict[str, float]:
    """The metrics; early stopping and `is_best` look at `loss`."""
    guess = (weights.users[feed.users] * weights.items[feed.items]).sum(axis=1)
    square = float(np.mean((guess - feed.stars) ** 2, dtype=np.float64))
    return {"loss": square / 2, "rmse": square**0.5}


def make_program() -> hogwild.CustomProgram:
    """The program: the task, its startup, and what the executor should know of it."""
    return hogwild.CustomProgram(
        Rate(decay=np.float32(0.01)),
        make_vectors,
        room=hogwild.Room(rows=2, width=WIDTH),
        tables={
            "users": hogwild.Table(USERS, WIDTH, kind="ranked"),
            "items": hogwild.Table(ITEMS, WIDTH, kind="ranked"),
        },
        evaluate=errors,
    )


def main() -> None:
    """Train it, once as a program and once in the functional form."""
    train, test = make_ratings(50_000, seed=1), make_ratings(5_000, seed=2)

    program = hogwild.train(make_program(), train, valid=test, threads=2, epochs=10, lr=0.1)
    print("program:         ", program.evaluate(test))

    weights = hogwild.async_executor(
        startup_program=make_vectors,
        main_program=Rate(decay=np.float32(0.01)),
        feed=train,
        threads=2,
        room=hogwild.Room(rows=2, width=WIDTH),
        epochs=10,
        lr=0.1,
    )
    print("functional form: ", errors(weights, test))


if __name__ == "__main__":
    main()
