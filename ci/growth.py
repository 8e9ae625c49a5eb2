"""How the cost of a round grows: with time, arms and dimension, and up to a million users."""

import time
from itertools import product

import numpy as np
import pandas as pd
from sklearn.metrics import adjusted_rand_score

from ci import algorithms, bare, implicit
from ci.game import WARM, Game, size_of
from lib import chapters
from lib.simulate import Policy
from lib.tune import with_constants

SLICES, SLICE = 20, 10_000  # rounds of the cost against time
TIMED = ("LinUCB", "CLUB", "SCLUB", "RCLUMB", "RSCLUMB", "RCLUB-WCU")
AXES = {
    "users": ((100, 300, 1000, 3000), ("CLUB", "SCLUB", "RCLUMB", "RSCLUMB")),
    "arms": ((5, 20, 50, 200), ("LinUCB", "CLUB", "RCLUMB")),
    "d": ((15, 20, 50, 100), ("LinUCB", "CLUB", "RCLUMB")),
}
ROUNDS = 3_000  # of a point on the other axes
CROWDS = (1_000, 10_000, 100_000, 1_000_000)
# Users above which a method is not tried: its graph, its counts or its comparisons take too much.
FITS = {"CLUB": 10_000, "RSCLUMB": 100_000, "CLUB, implicit graph": 100_000}
SERVED, OFTEN, LOOKS = (20_000, 100_000), 25, 5  # users, how often each comes, looks on the way
COMPARED = 20_000  # users above which SCLUB is not: a set is compared with all the others


def _game(name: str, T: int, small: bool, policy: Policy | None = None, **changes) -> Game:
    """Return an algorithm at play in its problem, with some sizes changed."""
    algorithm = algorithms.ALGORITHMS[name]
    problem = algorithms.PROBLEMS[algorithm.problem]
    environment = getattr(chapters.load(problem.page), problem.environment)
    setting = {**algorithms.setting_of(problem, T, small), **changes}
    return Game(environment, policy or algorithms.policy_of(algorithm), setting, T)


def cost(small: bool) -> pd.DataFrame:
    """Return microseconds a round, environment included, along every axis."""
    slices, length, rounds = (2, 30, 30) if small else (SLICES, SLICE, ROUNDS)
    rows = []
    for name in TIMED[: 2 if small else None]:
        game = _game(name, 1 + WARM + slices * length, small)
        for k in range(slices):
            took = game.play(length)
            rows.append(("t", name, (k + 1) * length, 1e6 * took, size_of(game.state) / 1e6))
    for axis, (values, names) in AXES.items():
        for name in names[: 1 if small else None]:
            for value in values[: 1 if small else None]:
                changed = {axis: max(value // 50, 4) if small else value}
                if axis == "users" and not small:
                    changed["d"] = 20
                game = _game(name, 1 + WARM + rounds, small, **changed)
                took, size = game.play(rounds), size_of(game.state)
                rows.append((axis, name, changed[axis], 1e6 * took, size / 1e6))
    return pd.DataFrame(rows, columns=["axis", "algorithm", "value", "microseconds", "megabytes"])


def crowds(small: bool, rounds: int = 20_000) -> pd.DataFrame:
    """Return what rounds take with very many users at d = 20: sets, and CLUB without a graph."""
    club = with_constants(implicit.IMPLICIT_CLUB, beta=0.5, alpha=1.0)
    named = {"SCLUB": None, "RSCLUMB": None, "CLUB": None, "CLUB, implicit graph": club}
    rows = []
    for users in (20, 40) if small else CROWDS:
        for title, policy in named.items():
            if not small and users > FITS.get(title, users):
                continue
            count = 60 if small else rounds if title[:4] != "CLUB" else rounds // 10
            sizes = {"users": users} if small else {"users": users, "d": 20}
            begin = time.thread_time()
            game = _game(title.split(",")[0], 1 + WARM + count, small, policy, **sizes)
            made = time.thread_time() - begin
            took, size = game.play(count), size_of(game.state)
            groups = len(np.unique(_groups(game.state, users)))
            rows.append((title, users, count, 1e6 * took, size / 1e6, made, groups))
            del game
    columns = ["algorithm", "users", "rounds", "microseconds", "megabytes", "start", "groups"]
    return pd.DataFrame(rows, columns=columns)


def _groups(state, users: int) -> np.ndarray:
    """Return the group of every user, wherever a method keeps it; else everybody is alone."""
    kept = getattr(state, "sets", state)
    found = getattr(kept, "cluster", getattr(kept, "group", None))
    return np.arange(users) if found is None else found


def served(small: bool) -> pd.DataFrame:
    """Return what a crowd costs and loses that comes often enough for clusters to be found."""
    known = with_constants(bare.RIDGE, beta=0.5, sharing="clusters")
    named = {"LinUCB-Ind": None, "SCLUB": None, "ReCLUB": None, "clusters known": known}
    rows = []
    for users, title in product((40,) if small else SERVED, named):
        if title == "SCLUB" and users > COMPARED:
            continue
        policy, length = named[title], users * OFTEN // LOOKS
        sizes = {"users": users} if small else {"users": users, "d": 20}
        like = title if policy is None else "LinUCB-Ind"
        game = _game(like, 1 + WARM + LOOKS * length, small, policy, **sizes)
        for k in range(LOOKS):
            took = game.play(length)
            group, size = _groups(game.state, users), size_of(game.state) / 1e6
            alike = adjusted_rand_score(game.problem.label, group)
            seen = len(np.unique(group)), alike, game.total[0], size
            rows.append((title, users, (k + 1) * length, 1e6 * took, *seen))
        del game
    seen = ["groups", "agreement", "regret", "megabytes"]
    return pd.DataFrame(rows, columns=["algorithm", "users", "rounds", "microseconds", *seen])
