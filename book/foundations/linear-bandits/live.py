from lib import chapters
from lib.simulate import simulate
from lib.tune import with_constants

LINEAR = chapters.load("linear-bandits")


def quick(
    beta=0.5,  # width β of LinUCB, in [0, 2]
    items=20,  # items in the pool, in [20, 1_020]
    noise=0.5,  # noise of a reward, in [0, 2]
):
    """How much exploration is worth its price? LinUCB has the width you choose, OFUL that of the
    theory, and the greedy one explores nothing. With 20 items the same arms come back every round;
    with more, each round offers another 20 of them.
    """
    policies = {
        "OFUL": with_constants(LINEAR.OFUL, sigma=noise),
        "LinUCB": with_constants(LINEAR.LINUCB, beta=beta),
        "LinUCB (greedy)": with_constants(LINEAR.LINUCB, beta=0.0),
    }
    problem = {"d": 10, "noise": noise, "items": items, "arms": 20}
    run = {"T": 5_000, "trials": 5, "seed": 1, "checkpoints": 40}
    table = simulate(LINEAR.LINEAR, policies, settings=[problem], **run)
    return table[["policy", "trial", "t", "regret"]]
