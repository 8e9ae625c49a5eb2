from lib import chapters
from lib.simulate import simulate
from lib.tune import with_constants

FAST = chapters.load("misspecified-users/fast")


def quick(
    level=0.2,  # deviation ε* of a user from linearity, in [0, 1]
    alpha1=2.0,  # scale α₁ of the threshold, in [0, 4]
    alpha2=0.0,  # tolerance α₂ for deviations, in [0, 1]
):
    """Does tolerance for deviating users help? RCLUMB deletes an edge later, and explores more,
    the larger a deviation it is told to expect.
    """
    names = ("LinUCB-Ind", "CLUB", "RCLUMB")
    policies = {name: with_constants(FAST.METHODS[name], beta=0.1) for name in names}
    policies["CLUB"] = with_constants(policies["CLUB"], alpha=alpha1)
    policies["RCLUMB"] = with_constants(policies["RCLUMB"], alpha1=alpha1, alpha2=alpha2)
    problem = {"users": 20, "m": 3, "d": 8, "items": 200, "arms": 20, "noise": 0.3}
    run = {"T": 4_000, "trials": 3, "seed": 1, "checkpoints": 40}
    table = simulate(FAST.MIS.MISSPECIFIED, policies, settings=[{**problem, "level": level}], **run)
    return table[["policy", "trial", "t", "regret"]]
