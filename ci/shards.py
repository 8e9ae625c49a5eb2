"""Users' statistics on several workers: what they share, how stale it may be, and what that costs.

A worker keeps the regressions of its own users and serves nobody else. What the users of a cluster
have in common, the sums M and b of each cluster, everybody needs: a worker adds its own rounds to
its copy at once and learns those of the others when sums are exchanged, after every `block` rounds
of a worker. The same shards play in this process or as actors of Dask, with the same numbers.
"""

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd

from lib.graphs import equal_groups
from lib.kernels import (
    add_outer,
    add_scaled,
    jit,
    multiply,
    random_index,
    random_normal,
    random_subset,
    rank_one_inverse,
    take_rows,
    ucb_argmax,
)
from lib.linear import directions

SIZES = {"users": 8_000, "m": 10, "d": 20, "items": 1000, "arms": 20, "noise": 0.3}
SMALL = {"users": 40, "m": 2, "d": 4, "items": 30, "arms": 5, "noise": 0.3}
SEED = 2025
BETA = 0.3


class Shared(NamedTuple):
    """The sums of every cluster, without the λI."""

    M: np.ndarray  # (m, d, d)
    b: np.ndarray  # (m, d)


def nothing(m: int, d: int) -> Shared:
    return Shared(np.zeros((m, d, d)), np.zeros((m, d)))


@jit
def serve(theta, label, own, pool, order, M, b, inverse, estimate, count, arms, noise, beta, rng):
    """Serve `count` users of a shard; M and b are to be filled with what that adds."""
    regret, means, alone = 0.0, np.empty(arms), np.empty(pool.shape[1])
    for _ in range(count):
        user = random_index(rng, label.size)
        V = label[user]
        X = take_rows(pool, random_subset(rng, order, arms))
        multiply(X, theta[user], means)
        k = ucb_argmax(estimate[V], inverse[V], X, beta)
        reward = means[k] + noise * random_normal(rng)
        regret += means.max() - means[k]
        add_outer(M[V], X[k], 1.0)
        add_scaled(b[V], X[k], reward)
        step = reward
        for j in range(alone.size):
            step -= X[k, j] * estimate[V, j]
        rank_one_inverse(inverse[V], X[k], 1.0)
        multiply(inverse[V], X[k], alone)
        add_scaled(estimate[V], alone, step)
        rank_one_inverse(own[user], X[k], 1.0)
    return regret


class Shard:
    """The users of one worker: it draws who comes to it and keeps what it learns of each."""

    def __init__(self, index: int, shards: int, sizes: dict, seed: int = SEED):
        rng = np.random.default_rng(seed)
        users, m, d = sizes["users"], sizes["m"], sizes["d"]
        tastes, self.pool = directions(rng, m, d), directions(rng, sizes["items"], d)
        mine = np.arange(users) % shards == index
        self.label = equal_groups(users, m)[mine]
        self.theta, self.sizes = tastes[self.label], sizes
        self.own = np.tile(np.eye(d), (len(self.label), 1, 1))
        self.order, self.rng = np.arange(sizes["items"]), np.random.default_rng([seed, index])

    def serve(self, shared: Shared, count: int) -> tuple[Shared, float, float]:
        """Serve users with these sums; return what to add to them, regret and processor time."""
        begin = time.process_time()
        shared = Shared(*shared)
        added, eye = nothing(*shared.b.shape), np.eye(shared.b.shape[1])
        inverse = np.linalg.inv(shared.M + eye)
        inverse = (inverse + inverse.transpose(0, 2, 1)) / 2
        estimate = np.einsum("kij,kj->ki", inverse, shared.b)
        who = self.theta, self.label, self.own, self.pool, self.order
        how = count, self.sizes["arms"], self.sizes["noise"], BETA, self.rng
        regret = serve(*who, *added, inverse, estimate, *how)
        return added, regret, time.process_time() - begin


def play(ask: Callable, shards: int, sizes: dict, block: int, rounds: int) -> dict:
    """Let all shards serve users, exchanging sums after every block; return totals.

    `ask(shared, count)` returns what every shard answers.
    """
    shared, regret, cpu, done = nothing(sizes["m"], sizes["d"]), 0.0, 0.0, 0
    begin = time.perf_counter()
    while done < rounds:
        count = min(block, (rounds - done + shards - 1) // shards)
        for added, lost, seconds in ask(shared, count):
            shared = Shared(shared.M + added.M, shared.b + added.b)
            regret, cpu = regret + lost, cpu + seconds
        done += count * shards
    wall = time.perf_counter() - begin
    return {"rounds": done, "regret": regret, "cpu": cpu, "wall": wall, "M": shared.M}


def here(shards: int, sizes: dict) -> Callable:
    """Return how to ask shards that are in this process."""
    all_shards = [Shard(index, shards, sizes) for index in range(shards)]
    return lambda shared, count: [each.serve(shared, count) for each in all_shards]


def on_workers(client, shards: int, sizes: dict) -> Callable:
    """Return how to ask shards that are actors on the workers of a Dask cluster."""
    made = [
        client.submit(Shard, index, shards, sizes, actor=True, pure=False)
        for index in range(shards)
    ]
    actors = [future.result() for future in made]

    def ask(shared, count):
        return [f.result() for f in [each.serve(tuple(shared), count) for each in actors]]

    return ask


def staleness(small: bool) -> pd.DataFrame:
    """Return regret for several distances between two exchanges, eight shards."""
    sizes, shards, rounds = (SMALL, 4, 400) if small else (SIZES, 8, 40_000)
    blocks = [1, 10, 100, 1000, 5000] if not small else [1, 100]
    rows = []
    for block in blocks:
        found = play(here(shards, sizes), shards, sizes, block, rounds)
        rows.append((shards, block, found["rounds"], found["regret"]))
    return pd.DataFrame(rows, columns=["shards", "block", "rounds", "regret"])


def throughput(small: bool, workers: tuple[int, ...] = (1, 2, 4)) -> pd.DataFrame:
    """Return rounds a second of shards on Dask workers, real processes, one shard each."""
    from distributed import Client

    sizes, each = (SMALL, 500) if small else (SIZES, 200_000)
    rows = []
    for count in workers:
        with (
            _cluster(count) as cluster,
            Client(cluster) as client,
        ):  # actors look for the default one
            ask = on_workers(client, count, sizes)
            play(ask, count, sizes, 1, count)  # compiles, or loads machine code
            for block in (each // 500, each // 10):
                found = play(ask, count, sizes, block, each * count)
                exchanged = 8 * sizes["m"] * sizes["d"] * (sizes["d"] + 1)
                rows.append((count, block, found["rounds"], found["wall"], found["cpu"], exchanged))
    columns = ["workers", "block", "rounds", "wall", "cpu", "bytes"]
    return pd.DataFrame(rows, columns=columns)


def _cluster(workers: int):
    import logging

    from distributed import LocalCluster

    return LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        processes=True,
        dashboard_address="127.0.0.1:0",
        memory_limit=0,
        silence_logs=logging.CRITICAL,
        scheduler_kwargs={"dashboard": False},
    )
