"""The algorithms that `regretbook bench` times: where the book defines them, and at what size.

The sizes are those that the thesis prints, or those of its public code where it prints none. Tests
take the small ones.
"""

from typing import NamedTuple

from ci import bare
from lib import chapters
from lib.errors import BookError, nearest
from lib.simulate import Policy
from lib.tune import with_constants


class Problem(NamedTuple):
    """An environment of a page and the problem that is played in it."""

    page: str
    environment: str  # how the page calls it
    setting: dict
    small: dict  # for tests
    idle: Policy  # plays, but neither chooses nor learns: what the environment costs
    horizon: str = ""  # the setting that is told the number of rounds


class Algorithm(NamedTuple):
    """A policy of a page; `policy` is the name of a constant, or `CONSTANT/key` of an entry."""

    page: str
    policy: str
    problem: str
    bare: Policy | None = None  # a kernel that does the arithmetic of the formulas alone
    constants: dict = {}  # noqa: RUF012
    rounds: int = 10_000  # of one repeat


_PRINTED = 1_000_000  # rounds; who clusters anew at times that grow is timed over all of them
_CROWD = {"users": 1000, "m": 10, "d": 50, "items": 1000, "arms": 20, "noise": 0.3}
_FEW = {"users": 12, "m": 3, "d": 4, "items": 30, "arms": 6, "noise": 0.3}
_TALK = {"users": 20, "arms": 50, "d": 50, "items": 5000, "key_terms": 500}
_CHAT = {"users": 2, "arms": 6, "d": 4, "items": 40, "key_terms": 12, "most": 3}

PROBLEMS = {
    "arms": Problem(
        "linear-bandits",
        "LINEAR",
        {"d": 50, "arms": 50, "items": 1000, "noise": 0.5},
        {"d": 4, "arms": 6, "items": 30, "noise": 0.5},
        bare.IDLE,
    ),
    "clusters": Problem(
        "clustering-of-bandits",
        "CLUSTERED",
        {**_CROWD, "gap": 1.4},
        {**_FEW, "gap": 1.2},
        bare.IDLE,
    ),
    "deviations": Problem(
        "misspecified-users",
        "MISSPECIFIED",
        {**_CROWD, "level": 0.2},
        {**_FEW, "level": 0.2},
        bare.IDLE,
    ),
    "lies": Problem(
        "corrupted-users",
        "CORRUPTED",
        {**_CROWD, "stop": 20_000},
        {**_FEW, "stop": 20},
        bare.IDLE,
    ),
    "talk": Problem("conversational", "TALKING", _TALK, _CHAT, bare.IDLE_TALKER, "horizon"),
    "drift": Problem("nonstationary", "DRIFTING", {"budget": 10.0}, {}, bare.IDLE, "K"),
    "duels": Problem(
        "dueling",
        "DUELS",
        {"users": 200, "m": 5, "d": 20, "items": 1000, "arms": 20, "scale": 4.0},
        {"users": 8, "m": 2, "d": 3, "items": 30, "arms": 5, "scale": 4.0},
        bare.IDLE_PAIR,
    ),
}

_ONE = with_constants(bare.RIDGE, beta=0.5)
_EACH = with_constants(_ONE, sharing="none")
_KNOWN = with_constants(bare.GROUPS, beta=0.5)
_COMPARED = with_constants(_KNOWN, compared=True)
_BONUS = {"beta": 0.1, "eps": 0.2}
_ROBUST = with_constants(bare.ROBUST, **_BONUS)
_ROBUST_KNOWN = with_constants(bare.ROBUST_GROUPS, **_BONUS)
_TOLERANT = {"beta": 0.1, "alpha1": 2.0, "alpha2": 0.0}
_CLOCK = {"window": "swing", "times": 0.4, "lam": 0.1, "beta": 0.5}
_TALKER = {"beta": 0.1, "alpha": 0.1}

ALGORITHMS = {
    "LinUCB": Algorithm("linear-bandits", "LINUCB", "arms", _ONE, {"beta": 0.5}),
    "OFUL": Algorithm("linear-bandits", "OFUL", "arms", _ONE),
    "Thompson sampling": Algorithm(
        "linear-bandits/experiments", "THOMPSON", "arms", bare.SAMPLE, {"v": 0.3}
    ),
    "LinUCB-Ind": Algorithm("linear-bandits", "LINUCB_IND", "clusters", _EACH, {"beta": 0.5}),
    "CW-OFUL": Algorithm("corrupted-users", "CW_OFUL", "lies", _ONE, {"beta": 0.5}),
    "CLUB": Algorithm(
        "clustering-of-bandits", "CLUB", "clusters", _COMPARED, {"beta": 0.5, "alpha": 1.0}
    ),
    "SCLUB": Algorithm(
        "clustering-of-bandits", "SCLUB", "clusters", _KNOWN, {"beta": 0.5, "alpha": 1.0}
    ),
    "ReCLUB": Algorithm(
        "clustering-of-bandits/practice",
        "RECLUB",
        "clusters",
        _KNOWN,
        {"beta": 0.5},
        rounds=_PRINTED // 7,
    ),
    "ReCLUB-D": Algorithm(
        "clustering-of-bandits/deviations",
        "RECLUB_D",
        "clusters",
        _KNOWN,
        {"beta": 0.5},
        rounds=_PRINTED // 7,
    ),
    "RLinUCB": Algorithm(
        "misspecified-users/bonus", "RLINUCB", "deviations", _ROBUST, {"beta": 0.1}
    ),
    "RLinUCB-Ind": Algorithm(
        "misspecified-users/bonus",
        "RLINUCB_IND",
        "deviations",
        with_constants(_ROBUST, sharing="none"),
        {"beta": 0.1},
    ),
    "RCLUMB": Algorithm(
        "misspecified-users/fast",
        "RCLUMB",
        "deviations",
        with_constants(_ROBUST_KNOWN, compared=True),
        _TOLERANT,
    ),
    "RSCLUMB": Algorithm(
        "misspecified-users/fast", "RSCLUMB", "deviations", _ROBUST_KNOWN, _TOLERANT
    ),
    "RCLUB-WCU": Algorithm(
        "corrupted-users", "RCLUB_WCU", "lies", _COMPARED, {"beta": 0.5, "alpha1": 1.0}
    ),
    "ConLinUCB-BS": Algorithm(
        "conversational", "BS", "talk", bare.LAZY_TALKER, _TALKER, rounds=500
    ),
    "ConLinUCB-MCR": Algorithm(
        "conversational", "MCR", "talk", bare.LAZY_TALKER, _TALKER, rounds=500
    ),
    "ConLinUCB-UCB": Algorithm(
        "conversational", "UCB", "talk", bare.LAZY_TALKER, _TALKER, rounds=500
    ),
    "Arm-Con": Algorithm("conversational", "ARM_CON", "talk", bare.LAZY_TALKER, _TALKER, 500),
    "ConUCB": Algorithm(
        "conversational/conucb",
        "CONUCB",
        "talk",
        bare.LAZY_TALKER,
        {"lam": 0.5, "tilde_lam": 1.0, "alpha": 0.25, "tilde_alpha": 0.25},
        500,
    ),
    "SW-UCB": Algorithm("nonstationary/rivals", "SW_UCB", "drift", _ONE, _CLOCK, 200_000),
    "D-LinUCB": Algorithm("nonstationary/rivals", "D_LINUCB", "drift", _ONE, _CLOCK, 200_000),
    "LB-WeightUCB": Algorithm("nonstationary/rivals", "LB_WEIGHT", "drift", _ONE, _CLOCK, 200_000),
    "RestartUCB": Algorithm("nonstationary", "RESTART_UCB", "drift", _ONE, _CLOCK, 200_000),
    "MASTER": Algorithm(
        "nonstationary/rivals",
        "MASTER",
        "drift",
        _ONE,
        {"lam": 0.1, "beta": 0.5, "detect": 0.1},
        200_000,
    ),
    "EXP3.S": Algorithm(
        "nonstationary/rivals",
        "EXP3S",
        "drift",
        None,
        {"gamma": 0.05, "window": "swing"},
        200_000,
    ),
    "Restarted-WeightedOFUL+": Algorithm(
        "nonstationary",
        "WEIGHTED",
        "drift",
        _ONE,
        {"window": "swing", "times": 0.4, "alpha": 0.1, "gamma": 0.1},
        200_000,
    ),
    "Restarted-SAVE+": Algorithm(
        "nonstationary/save",
        "SAVE",
        "drift",
        _ONE,
        {"window": "swing", "times": 0.4, "scale": 0.5},
        200_000,
    ),
    "SAVE+-BOB": Algorithm("nonstationary/bob", "BOB", "drift", _ONE, {}, 200_000),
    "RestartUCB-BOB": Algorithm(
        "nonstationary/bob", "RESTART_BOB", "drift", _ONE, {"lam": 0.1, "beta": 0.5}, 200_000
    ),
    "COLDB": Algorithm("dueling/fast", "METHODS/COLDB", "duels", bare.PAIR, {"alpha": 4.0}),
    "COLDB (mended)": Algorithm("dueling/fast", "METHODS/COLDB (mended)", "duels", bare.PAIR),
    "LDB-Ind": Algorithm("dueling/fast", "METHODS/LDB-Ind", "duels", bare.PAIR),
    "CONDB": Algorithm("dueling/neural", "NETWORKS/CONDB", "duels", None, {"alpha": 4.0}, 2_000),
    "NDB-Ind": Algorithm("dueling/neural", "NETWORKS/NDB-Ind", "duels", None, {}, 2_000),
}


def chosen(names: list[str]) -> dict[str, Algorithm]:
    """Return the algorithms of these names, or all."""
    for name in names:
        if name not in ALGORITHMS:
            hint = nearest(name, ALGORITHMS) or f"; there are {', '.join(ALGORITHMS)}"
            raise BookError(f"no algorithm is called {name!r}{hint}")
    return {name: ALGORITHMS[name] for name in dict.fromkeys(names or ALGORITHMS)}


def policy_of(algorithm: Algorithm) -> Policy:
    """Return the policy of an algorithm as its page defines it, with the constants of the list."""
    name, _, key = algorithm.policy.partition("/")
    found = getattr(chapters.load(algorithm.page), name)
    return with_constants(found[key] if key else found, **algorithm.constants)


def setting_of(problem: Problem, T: int, small: bool = False) -> dict:
    """Return what `make` of the environment is told."""
    setting = problem.small if small else problem.setting
    return {**setting, **({problem.horizon: T} if problem.horizon else {})}
