"""Linear bandits of public libraries, played on the problems of `ci.replay` in their own process.

    python libraries.py NAME PROBLEM.npz

runs in the environment of the libraries, which has neither `lib` nor its packages. It says on a
line of JSON which version it found or why it cannot play; then, for each line `START STOP` that it
reads, it plays these rounds and says what they took of the processor and what they lost.
"""

import contextlib
import json
import sys
import time
from importlib import metadata

import numpy as np

BETA = 0.5  # width of the confidence set, wherever a library lets one choose


class MabWiser:
    package = "mabwiser"

    def __init__(self, data, beta=BETA):
        from mabwiser.mab import MAB, LearningPolicy

        arms, d = data["theta"].shape
        policy = LearningPolicy.LinUCB(alpha=beta, l2_lambda=1.0)
        self.mab = MAB(list(range(arms)), policy, seed=1)
        self.mab.fit([0], [0.0], np.zeros((1, d)))

    def choose(self, x):
        return self.mab.predict(x[None])

    def learn(self, x, arm, reward):
        self.mab.partial_fit([arm], [reward], x[None])


class ContextualBandits:
    package = "contextualbandits"

    def __init__(self, data, beta=BETA):
        from contextualbandits.online import LinUCB

        self.policy = LinUCB(
            len(data["theta"]),
            alpha=beta,
            lambda_=1.0,
            fit_intercept=False,
            njobs=1,
            random_state=1,
        )
        # It knows no arm before its first batch.
        arms, d = data["theta"].shape
        self.policy.partial_fit(np.zeros((arms, d)), np.arange(arms), np.zeros(arms))

    def choose(self, x):
        return int(self.policy.predict(x[None])[0])

    def learn(self, x, arm, reward):
        self.policy.partial_fit(x[None], np.array([arm]), np.array([reward]))


class River:
    package = "river"

    def __init__(self, data):
        from river.bandit import LinUCBDisjoint

        self.policy = LinUCBDisjoint(alpha=1.0, beta=1.0, seed=1)
        self.arms = list(range(len(data["theta"])))

    def choose(self, x):
        self.context = dict(enumerate(x.tolist()))
        return self.policy.pull(self.arms, context=self.context)

    def learn(self, x, arm, reward):
        self.policy.update(arm, self.context, reward)


class OpenBandit:
    package = "obp"

    def __init__(self, data, beta=BETA):
        from obp.policy import LinUCB

        arms, d = data["theta"].shape
        self.policy = LinUCB(dim=d, n_actions=arms, epsilon=beta, random_state=1)

    def choose(self, x):
        return int(self.policy.select_action(x[None])[0])

    def learn(self, x, arm, reward):
        self.policy.update_params(action=arm, reward=reward, context=x[None])


class VowpalWabbit:
    """Items are written down once; of a round only the lines of its items are joined."""

    package = "vowpalwabbit"
    arguments = "--epsilon 0.05"

    def __init__(self, data):
        from vowpalwabbit import Workspace

        self.vw = Workspace(f"--cb_explore_adf {self.arguments} --quiet --random_seed 1")
        self.lines = [
            "|x " + " ".join(f"{j}:{value:.6g}" for j, value in enumerate(row))
            for row in data["pool"]
        ]
        self.rng = np.random.default_rng(1)

    def choose(self, items):
        self.items = items
        chances = np.array(self.vw.predict([self.lines[i] for i in items]))
        chances /= chances.sum()
        arm = int(self.rng.choice(len(items), p=chances))
        self.chance = chances[arm]
        return arm

    def learn(self, items, arm, reward):
        lines = [self.lines[i] for i in items]
        lines[arm] = f"0:{-reward:.6g}:{self.chance:.6g} {lines[arm]}"
        self.vw.learn(lines)


class VowpalRegCB(VowpalWabbit):
    arguments = "--regcbopt"


DISJOINT = {
    "mabwiser": MabWiser,
    "contextualbandits": ContextualBandits,
    "river": River,
    "obp": OpenBandit,
}
SHARED = {"vowpalwabbit, epsilon": VowpalWabbit, "vowpalwabbit, regcbopt": VowpalRegCB}
LIBRARIES = SHARED | DISJOINT


def play(player, data, start, stop) -> tuple[float, float]:
    """Play rounds start, …, stop − 1; return seconds of the processor and regret."""
    seconds = regret = 0.0
    for t in range(start - 1, stop - 1):
        if "offered" in data:
            seen = data["offered"][t]
            means = data["pool"][seen] @ data["theta"][0]
        else:
            seen = data["context"][t]
            means = data["theta"] @ seen
        begin = time.process_time()
        arm = player.choose(seen)
        seconds += time.process_time() - begin
        reward = float(means[arm] + data["noise"][t])
        begin = time.process_time()
        player.learn(seen, arm, reward)
        seconds += time.process_time() - begin
        regret += float(means.max() - means[arm])
    return seconds, regret


def main(name: str, path: str) -> int:
    answers = sys.stdout
    with contextlib.redirect_stdout(sys.stderr), np.load(path) as file:
        data = dict(file)
        try:
            player = LIBRARIES[name](data)
            version = metadata.version(LIBRARIES[name].package)
        except Exception as error:
            why = f"{type(error).__name__}: {error}".splitlines()[0]
            print(json.dumps({"error": why}), file=answers, flush=True)
            return 1
        print(json.dumps({"version": version}), file=answers, flush=True)
        for line in sys.stdin:
            seconds, regret = play(player, data, *map(int, line.split()))
            print(json.dumps({"seconds": seconds, "regret": regret}), file=answers, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
