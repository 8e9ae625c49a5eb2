from lib import chapters
from lib.simulate import simulate
from lib.tune import with_constants

CORRUPTED = chapters.load("corrupted-users")


def quick(
    share=0.1,  # share of corrupted users, in [0, 1]
    flips=200,  # first rounds in which they flip rewards, in [0, 2_000]
    alpha=0.2,  # weight parameter α of RCLUB-WCU, in [0.05, 1.05]
):
    """Do weights protect against users who lie at first? RCLUB-WCU counts uncertain rounds less;
    apart from that it is CLUB.
    """
    policies = {
        "LinUCB-Ind": with_constants(CORRUPTED.BANDITS.LINUCB_IND, beta=0.2),
        "CLUB": with_constants(CORRUPTED.CLUB, beta=0.2, alpha=1.5),
        "RCLUB-WCU": with_constants(CORRUPTED.RCLUB_WCU, beta=0.2, alpha1=1.5, alpha=alpha),
    }
    problem = {"users": 30, "m": 3, "d": 8, "items": 300, "arms": 20, "noise": 0.1}
    setting = {**problem, "share": share, "stop": flips}
    run = {"T": 6_000, "trials": 3, "seed": 1, "checkpoints": 40}
    table = simulate(CORRUPTED.CORRUPTED, policies, settings=[setting], **run)
    return table[["policy", "trial", "t", "regret"]]
