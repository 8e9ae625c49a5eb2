from lib import chapters
from lib.simulate import simulate
from lib.tune import with_constants

TALKS = chapters.load("conversational")
LABELS = {"regret": "regret per user"}


def quick(
    f_q=5.0,  # questions for each unit of ln t, in [0, 20]
    width=0.1,  # exploration α of all methods, in [0, 1]
    noise=0.1,  # noise of rewards and answers, in [0, 1]
):
    """Which questions are worth asking? LinUCB asks none, and random questions are the control
    for those that are chosen with care.
    """
    constants = {"beta": 0.1, "alpha": width}
    policies = {name: with_constants(p, **constants) for name, p in TALKS.FIRST.items()}
    problem = {"generator": "printed", "users": 3, "d": 20, "items": 500, "key_terms": 100}
    setting = {**problem, "arms": 30, "horizon": 1_000, "f_q": f_q, "noise": noise}
    run = {"T": 1_000, "trials": 4, "seed": 1, "checkpoints": 40}
    table = simulate(TALKS.TALKING, policies, settings=[setting], **run)
    return table[["policy", "trial", "t", "regret"]]
