from lib import chapters
from lib.simulate import repeat

MODELS = chapters.load("model-based")
LABELS = {"k": "episodes k", "regret": "regret"}


def quick(
    H=16,  # steps of an episode, in [4, 44]
    models=16,  # models in the class, in [4, 44]
    doubt=2.0,  # −log₁₀ δ, the failure that the slack allows, in [0, 6]
):
    """What does optimism cost here? O-MBRL trusts the most promising model that the data do not
    rule out; certainty equivalence trusts the likeliest.
    """
    common = {"K": 200, "delta": 0.5 * 10.0**-doubt, "H": H, "models": models}
    settings = [{"name": name, **common} for name in MODELS.CLASS_METHODS]
    table = repeat(MODELS.first_trial, settings=settings, trials=4, seed=1, label="quick")
    return table.rename(columns={"name": "policy"})[["policy", "trial", "k", "regret"]]
