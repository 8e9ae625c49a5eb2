from lib import chapters
from lib.simulate import repeat

LEVELS = chapters.load("zero-shot")
LABELS = {"K": "trajectories per context K", "reward": "expected reward"}
SIZES = (10, 30, 100, 300, 1_000, 3_000, 10_000)


def quick(
    epsilon=0.1,  # ε of the example with two contexts, in [0.02, 0.42]
    contexts=50,  # training contexts n, in [10, 210]
    pessimism=1.0,  # scale b of everybody's pessimism, in [0, 2]
):
    """When do labels of contexts help? PEVI merges all contexts, PERM and PPPO keep them apart;
    data cover every action.
    """
    learners = ("BC", "PEVI", "PERM", "PPPO")
    scales = {name: pessimism for name in ("b_perm", "b_pevi", "b_vote", "b_pppo")}
    common = {"n": contexts, "ε": epsilon, "covered": True, "step": 1.0, **scales}
    settings = [{**common, "K": K} for K in SIZES]
    table = repeat(LEVELS.example_run, settings=settings, trials=6, seed=1, label="quick")
    long = table.melt(["K", "trial"], list(learners), "policy", "reward")
    return long[["policy", "trial", "K", "reward"]]
