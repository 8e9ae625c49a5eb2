from lib import chapters
from lib.simulate import simulate
from lib.tune import with_constants

FAST = chapters.load("dueling/fast")


def quick(
    alpha=5.0,  # scale α of the printed threshold, in [0, 10]
    loud=8.0,  # how decided the users are, in [1, 21]
    users=20,  # users in two clusters, in [4, 44]
):
    """Does COLDB keep its clusters? Its threshold falls faster than its error; the oracle is told
    the clusters, LDB-Ind learns every user alone.
    """
    names = ("LDB-Ind", "COLDB", "Oracle")
    policies = {name: with_constants(FAST.METHODS[name], width=8.0) for name in names}
    policies["COLDB"] = with_constants(policies["COLDB"], alpha=alpha)
    problem = {"users": users, "m": 2, "d": 6, "items": 200, "arms": 10, "scale": loud}
    run = {"T": 10_000, "trials": 3, "seed": 1, "checkpoints": 40}
    table = simulate(FAST.DUELING.DUELS, policies, settings=[problem], **run)
    return table[["policy", "trial", "t", "regret"]]
