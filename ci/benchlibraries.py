"""Linear bandits of public libraries beside ours: the same data, the same rounds, in turns."""

import contextlib
import json
import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from ci import libraries, replay
from ci.game import Game
from lib import chapters
from lib.paths import CODE, Project
from lib.tune import with_constants

PYTHON = Path(".venv-bench/bin/python")
ROUNDS = 200  # of a repeat: some libraries take ten milliseconds for one
SIZES = {"d": 50, "arms": 50, "noise": 0.1}
FEW = {"d": 4, "arms": 5, "noise": 0.1}
OURS = "this book"
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class Player:
    """A library at play in a process of its own; `error` says why it cannot."""

    def __init__(self, python: Path, name: str, data: Path):
        command = [str(python), str(CODE / "ci" / "libraries.py"), name, str(data)]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, **ONE_THREAD},
        )
        answer = self._answer()
        self.error, self.version = answer.get("error", ""), answer.get("version", "")

    def _answer(self) -> dict:
        line = self.process.stdout.readline()
        return json.loads(line) if line.strip() else {"error": "it ended without a word"}

    def play(self, start: int, stop: int) -> dict:
        """Play rounds start, …, stop − 1; return seconds and regret, or an error."""
        try:
            self.process.stdin.write(f"{start} {stop}\n")
            self.process.stdin.flush()
        except OSError:
            return {"error": "it ended early"}
        return self._answer()

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def compare(
    project: Project, repeats: int, small: bool, python: Path | None = None
) -> tuple[pd.DataFrame, dict[str, str]]:
    """Return times and regrets of all libraries that can play, and why the others cannot."""
    linear = chapters.load("linear-bandits")
    sizes, rounds = (FEW, 20) if small else (SIZES, ROUNDS)
    T = 1 + rounds * (repeats + 1)
    width = {"beta": libraries.BETA}
    kinds = {
        "shared": (
            replay.OFFERS,
            with_constants(linear.LINUCB, **width),
            {**sizes, "T": T, "items": 40 if small else 1000},
            libraries.SHARED,
        ),
        "disjoint": (
            replay.CONTEXTS,
            with_constants(replay.DISJOINT, **width),
            {**sizes, "T": T},
            libraries.DISJOINT,
        ),
    }
    python = python or project.root / PYTHON
    tables, absent = [], {}
    for kind, (environment, policy, setting, names) in kinds.items():
        table, missing = _contest(environment, policy, setting, names, python, repeats, rounds)
        tables.append(table.assign(problem=kind))
        absent |= missing
    return pd.concat(tables, ignore_index=True), absent


def _contest(environment, policy, setting, names, python, repeats, rounds):
    """Let our policy and the libraries play one problem in turns, a repeat each."""
    ours, rows, absent = Game(environment, policy, setting, setting["T"]), [], {}
    ours.play(rounds + 1 - ours.t)
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="regretbook-bench-"))
        data, players = Path(folder) / "problem.npz", {}
        np.savez(data, **ours.problem._asdict())
        for name in names:
            if not python.exists():
                absent[name] = "no environment for libraries; `make bench` makes it"
                continue
            player = Player(python, name, data)
            stack.callback(player.close)
            why = player.error or player.play(1, rounds + 1).get("error", "")
            if why:
                absent[name] = why
            else:
                players[name] = player
        for repeat in range(repeats):
            start = 1 + rounds * (repeat + 1)
            before = ours.total[0]
            seconds = ours.play(rounds)
            rows.append((OURS, "", repeat, rounds, 1e6 * seconds, ours.total[0] - before))
            for name, player in players.items():
                found = player.play(start, start + rounds)
                if "error" in found:
                    absent[name] = found["error"]
                    continue
                took = 1e6 * found["seconds"] / rounds
                rows.append((name, player.version, repeat, rounds, took, found["regret"]))
    columns = ["library", "version", "repeat", "rounds", "microseconds", "regret"]
    return pd.DataFrame(rows, columns=columns), absent


def show(table: pd.DataFrame) -> None:
    """Print times and regrets of libraries, a line each."""
    print(f"\n{'LinUCB':<26}{'problem':<12}{'µs a round':<14}{'× ours':<12}regret")
    for problem, rows in table.groupby("problem", sort=False):
        wide = rows.pivot(index="repeat", columns="library", values="microseconds")
        regret = rows.groupby("library", sort=False)["regret"].sum()
        for name in regret.index:
            ratio = (wide[name] / wide[OURS]).median()
            middle = wide[name].median()
            print(f"{name:<26}{problem:<12}{middle:<14.1f}{ratio:<12.1f}{regret[name]:.1f}")
