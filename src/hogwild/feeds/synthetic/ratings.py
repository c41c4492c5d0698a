"""Ratings and interactions that a factorization of low rank can learn, made from a seed.

A user has a true vector p and bias b, an item q and c, both of `rank` numbers. A rating is 3 + b + c + p q and noise,
rounded to half stars between 0.5 and 5; b, c and p q have standard deviations of 0.3, 0.4 and 0.6 stars. A user has an
item with odds that grow with 2 (c + p q) and with its popularity, which falls with its rank as in Zipf's law.
Another `part` has other ratings by the same users; the items of lists in part 0 are none of those in other parts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.config import MadeRatingsConfig
from hogwild.errors import ConfigError
from hogwild.feeds.synthetic.truth import Doubles, Longs

TOP = 20
_CHUNK = 1 << 18      # ratings made at a time
_CELLS = 1 << 22      # scores of users and items made at a time
_CENTRE, _LOWEST, _HIGHEST = 3.0, 0.5, 5.0
_USER, _ITEM, _PRODUCT = 0.3, 0.4, 0.6   # standard deviations, in stars
_SHARPNESS = 2.0      # odds of having an item per star


class TrueModel(NamedTuple):
    """The true model."""

    users: Doubles
    items: Doubles
    user_biases: Doubles
    item_biases: Doubles
    activity: Doubles
    popularity: Doubles


@dataclass
class RatingTruth:
    """How well the true model does on the rows made so far."""

    rows: int = 0
    squares: float = 0.0
    users: int = 0
    ndcg: float = 0.0
    recall: float = 0.0

    @property
    def rmse(self) -> float:
        """Root mean square error of the true ratings, before noise and rounding."""
        return math.sqrt(self.squares / self.rows) if self.rows else math.nan


def true_model(config: MadeRatingsConfig) -> TrueModel:
    """The true vectors and biases of a seed, the same for all parts."""
    random = np.random.default_rng([config.seed, 0])
    side = math.sqrt(_PRODUCT) / config.rank**0.25  # of p q: rank times side^4
    return TrueModel(random.normal(0, side, (config.users, config.rank)),
                     random.normal(0, side, (config.items, config.rank)), random.normal(0, _USER, config.users),
                     random.normal(0, _ITEM, config.items), random.lognormal(0, 0.7, config.users),
                     1 / (1 + random.permutation(config.items).astype(np.float64)) ** 0.7)  # fmt: skip


def make_ratings(config: MadeRatingsConfig, truth: RatingTruth) -> Iterator[tuple[Longs, Longs, Doubles]]:
    """Users, items and ratings, a run at a time, counted in `truth`."""
    model = true_model(config)
    people, things = np.cumsum(model.activity), np.cumsum(model.popularity)
    for number, first in enumerate(range(0, config.rows, _CHUNK)):
        random = np.random.default_rng([config.seed, 1, config.part, number])
        count = min(_CHUNK, config.rows - first)
        users = np.searchsorted(people, random.random(count) * people[-1]).clip(max=config.users - 1)
        items = np.searchsorted(things, random.random(count) * things[-1]).clip(max=config.items - 1)
        true = _CENTRE + model.user_biases[users] + model.item_biases[items]
        true = (true + np.einsum("ij,ij->i", model.users[users], model.items[items])).clip(_LOWEST, _HIGHEST)
        ratings = np.round(2 * (true + random.normal(0, config.noise, count))) / 2
        ratings = ratings.clip(_LOWEST, _HIGHEST)
        truth.rows += count
        truth.squares += float(((ratings - true) ** 2).sum())
        yield users, items, ratings


def make_lists(config: MadeRatingsConfig, truth: RatingTruth) -> Iterator[tuple[int, Longs]]:
    """Each user with the items that the user has, counted in `truth`."""
    if config.rows > config.users * (config.items // 8):
        raise ConfigError(f"{config.users} users cannot have {config.rows} of {config.items} items; lower --rows.")
    model = true_model(config)
    wanted = _lengths(config, model.activity)
    gains = 1 / np.log2(np.arange(2, TOP + 2))
    at_once = max(1, _CELLS // config.items)
    for number, first in enumerate(range(0, config.users, at_once)):
        random = np.random.default_rng([config.seed, 2, config.part, number])
        people = slice(first, first + at_once)
        likes = _SHARPNESS * (model.item_biases + model.users[people] @ model.items.T) + np.log(model.popularity)
        # The n largest of log odds plus Gumbel noise are n draws without putting back.
        drawn = likes + random.gumbel(size=likes.shape)
        drawn[_held_out(config, first, likes.shape) == (config.part == 0)] = -np.inf
        for k, user in enumerate(range(first, first + len(likes))):
            count = int(wanted[user])
            if not count:
                continue
            items = np.argpartition(-drawn[k], count - 1)[:count]
            best = np.argsort(-likes[k])[:TOP]
            hits = np.isin(best, items)
            truth.rows += count
            truth.users += 1
            truth.recall += hits.sum() / count
            truth.ndcg += float(hits @ gains[: len(hits)] / gains[: min(count, TOP)].sum())
            yield user, np.sort(items)


def _held_out(config: MadeRatingsConfig, first: int, shape: tuple[int, int]) -> npt.NDArray[np.bool_]:
    """Which pairs of user and item may be in parts other than 0: a quarter of them."""
    random = np.random.default_rng([config.seed, 3, first])
    return np.asarray(random.integers(0, 4, shape, np.int8) == 0)


def _lengths(config: MadeRatingsConfig, activity: Doubles) -> Longs:
    """How many items each user has: together `rows`, no user more than an eighth of all."""
    most = config.items // 8
    share = config.rows * activity / activity.sum()
    for _ in range(60):
        over = share > most
        if not over.any():
            break
        left = config.rows - most * int(over.sum())
        share = np.where(over, most, share * left / max(share[~over].sum(), 1e-300))
    lengths: Longs = np.floor(share).astype(np.int64)
    short = config.rows - int(lengths.sum())
    room = np.flatnonzero(lengths < most)
    order = room[np.argsort(-(share - lengths)[room], kind="stable")]
    lengths[order[:short]] += 1
    return lengths


def csv_lines(users: Longs, items: Longs, ratings: Doubles) -> str:
    """Lines `user,item,rating`."""
    rows = zip(users.tolist(), items.tolist(), ratings.tolist(), strict=True)
    return "".join(f"{user},{item},{rating:g}\n" for user, item, rating in rows)
