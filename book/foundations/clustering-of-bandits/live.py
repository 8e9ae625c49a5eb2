from lib import chapters
from lib.simulate import simulate
from lib.tune import with_constants

CLUBS = chapters.load("clustering-of-bandits")


def quick(
    alpha=1.0,  # scale α of CLUB's threshold, in [0, 4]
    gap=1.2,  # least distance of two clusters, in [0.2, 1.4]
    clusters=4,  # hidden clusters of 40 users, in [1, 8]
):
    """When does pooling users pay? With a small threshold CLUB separates everybody and is
    LinUCB-Ind, with a large one nobody and is LinUCB.
    """
    policies = {
        name: with_constants(CLUBS.POLICIES[name], beta=0.5)
        for name in ("LinUCB", "LinUCB-Ind", "CLUB", "Oracle")
    }
    policies["CLUB"] = with_constants(policies["CLUB"], alpha=alpha)
    problem = {"users": 40, "m": clusters, "d": 10, "items": 300, "arms": 20}
    setting = {**problem, "noise": 0.3, "gap": gap}
    run = {"T": 10_000, "trials": 3, "seed": 1, "checkpoints": 40}
    table = simulate(CLUBS.CLUSTERED, policies, settings=[setting], **run)
    return table[["policy", "trial", "t", "regret"]]
