from lib import chapters
from lib.simulate import simulate

DRIFTS = chapters.load("nonstationary")


def quick(
    budget=2.0,  # how far the parameter moves in all, in [0, 10]
    times=0.4,  # rounds between restarts, in swings of the parameter, in [0.1, 2.1]
    beta=1.0,  # radius β of all methods, in [0, 4]
):
    """How often should a learner forget? Restarting too early throws knowledge away, too late keeps
    what is no longer true; the oracle restarts exactly where the best arm changes.
    """
    K = 10_000
    clock = {"window": "swing", "times": times, "lam": 1.0, "beta": beta}
    told = {**clock, "alpha": 0.1, "gamma": 0.1}
    oracle = {**DRIFTS.ORACLE_RESTART.parameters, "lam": 1.0, "beta": beta}
    policies = {
        "Oracle restart": DRIFTS.ORACLE_RESTART._replace(parameters=oracle),
        "Restarted-WeightedOFUL+": DRIFTS.WEIGHTED._replace(parameters=told),
        "RestartUCB": DRIFTS.RESTART_UCB._replace(parameters={**clock, **DRIFTS.BLIND}),
    }
    setting = {"K": K, "budget": budget, "noise": "bursts", "variance": K / 10}
    run = {"T": K, "trials": 4, "seed": 1, "checkpoints": 40}
    table = simulate(DRIFTS.DRIFTING, policies, settings=[setting], **run)
    return table[["policy", "trial", "t", "regret"]]
