"""The page on misspecified users: fast equals naive, decision by decision, and the mathematics."""

import numpy as np
import pandas as pd
import pytest

from lib import chapters, claims
from lib.errors import BookError
from lib.kernels import TIE
from lib.linear import directions
from lib.simulate import Policy, simulate
from lib.trial import generators
from lib.tune import with_constants

PAGE = chapters.load("misspecified-users")
BONUS = chapters.load("misspecified-users/bonus")
FAST = chapters.load("misspecified-users/fast")
SETS = chapters.load("misspecified-users/sets")
INSTANCES = chapters.load("misspecified-users/instances")
THEORY = chapters.load("misspecified-users/theory")
RATINGS = chapters.load("misspecified-users/ratings")
EXPERIMENTS = chapters.load("misspecified-users/experiments")
ABLATIONS = chapters.load("misspecified-users/ablations")
JUDGING = chapters.load("misspecified-users/judging")

SMALL = dict(users=9, m=3, d=4, items=30, arms=6, noise=0.2, level=0.15)


def f(count):
    return np.sqrt((1 + np.log(1 + count)) / (1 + count))


def first_best(scores):
    best = scores.max()
    return int(np.flatnonzero(scores >= best - TIE * max(1.0, abs(best)))[0])


def drive(fast, literal, T, seed, after=lambda *states: None, **changes):
    """Let the fast version play, ask the literal one in every round, and compare the choices."""
    rngs = generators(seed, 0, 0)
    problem = PAGE.make_misspecified(rngs[0], **{**SMALL, **changes})
    states = [p.init(problem, T, rngs[2], **p.parameters) for p in (fast, literal)]
    for t in range(1, T + 1):
        user, items, arms = PAGE.draw(problem, t, rngs[1])
        items = items.copy()
        k = fast.choose(states[0], t, user, arms, items)
        assert k == literal.choose(states[1], t, user, arms, items), f"round {t}"
        mean = PAGE.expected(problem, t, user, items, arms)[k]
        reward = mean + problem.noise * rngs[1].standard_normal()
        for policy, state in zip((fast, literal), states, strict=True):
            policy.learn(state, t, user, arms[k], reward, items[k])
        after(*states)
    return states


def both(name, parameters):
    fast, literal = getattr(FAST, name), getattr(PAGE, f"LITERAL_{name}")
    return fast._replace(parameters=parameters), literal._replace(parameters=parameters)


def with_history(choose, learn):
    """Return a literal policy made of two functions of this file."""
    return Policy(
        lambda problem, T, rng: None,
        lambda state, t, user, arms, items: choose(user, arms, items),
        lambda state, t, user, x, reward, item: learn(user, x, reward, item),
    )


SCALES = dict(lam=1.0, beta=0.4, alpha1=0.5, alpha2=0.5, eps=0.15)


@pytest.mark.parametrize(
    "changes",
    [{}, {"alpha1": 0.1, "alpha2": 0.0}, {"slack": 0.4}, {"eps": 0.0}, {"released": True}],
    ids=["tolerant", "falls to pieces", "own slack", "no bonus", "released"],
)
def test_rclumb_equals_its_literal_version(changes):
    def same_graph(state, literal):
        together = PAGE.together_of(state)
        np.testing.assert_array_equal(together, literal.edges)
        for i in range(len(together)):  # equal numbers of neighbourhoods mean equal neighbourhoods
            for j in range(i):
                settled = not (state.moved[i] or state.moved[j])
                if settled and state.shared[i] == state.shared[j]:
                    np.testing.assert_array_equal(together[i], together[j])

    _, literal = drive(*both("RCLUMB", {**SCALES, **changes}), 400, 3, same_graph)
    assert (~literal.edges).sum() > 10


def test_component_variant_equals_its_literal_version():
    _, literal = drive(*both("RCLUMB", {**SCALES, "component": True}), 300, 5)
    assert (~literal.edges).sum() > 10


@pytest.mark.parametrize("seed", [7, 8])
@pytest.mark.parametrize("changes", [{}, {"pooled": True}, {"released": True}], ids=str)
def test_rsclumb_equals_its_literal_version(changes, seed):
    parameters = {**SCALES, "alpha1": 0.7, "alpha2": 1.0, **changes}

    def same_sets(state, literal):
        both = literal.cluster[:, None] == literal.cluster
        np.testing.assert_array_equal(PAGE.together_of(state), both)

    state, _ = drive(*both("RSCLUMB", parameters), 300, seed, same_sets, noise=0.5)
    assert state.work[1] >= 3  # splits
    assert state.work[2] >= (1 if seed == 7 and not changes else 0)  # merges


@pytest.mark.parametrize("alpha", [0.5, 0.8, 1.5])
def test_rsclumb_with_pooled_centres_is_sclub(alpha):
    """One split-and-merge: with SCLUB's centres and no ε* every arm and every set is SCLUB's."""
    constants = dict(beta=0.4, alpha1=alpha, eps=0.0, slack=0.0, pooled=True)
    sclub = with_constants(FAST.SCLUB, beta=0.4, alpha=alpha)

    def same_sets(ours, theirs):
        np.testing.assert_array_equal(ours.sets.cluster, theirs.cluster)

    state, _ = drive(with_constants(FAST.RSCLUMB, **constants), sclub, 600, 7, same_sets, noise=0.5)
    assert alpha > 1 or state.work[1] >= 3


def test_index_equals_the_sum_over_the_history():
    """Counts per item give the bonus of the whole history, for few and for most items seen."""
    rng = np.random.default_rng(4)
    for rounds in rng.integers(1, 60, 1000):
        pool, reward = directions(rng, 12, 4), rng.standard_normal(rounds)
        items = rng.integers(12, size=rounds)
        history, arms = (
            list(zip(pool[items], reward, strict=True)),
            directions(rng, 8, 4),
        )
        inverse = np.linalg.inv(np.eye(4) + pool[items].T @ pool[items])
        seen = np.bincount(items, minlength=12).astype(float)
        theta = inverse @ pool[items].T @ reward
        rough, counts = pool.astype(np.float32), seen.astype(np.float32)
        scales = PAGE.Scales(beta=0.4, eps=0.5)
        k = BONUS.robust_argmax(inverse, theta, counts, pool, rough, arms, scales)
        assert k == first_best(PAGE.index(history, arms, scales))


@pytest.mark.parametrize("sharing", ["all", "none", "clusters"])
def test_rlinucb_equals_its_literal_version(sharing):
    parameters = dict(lam=1.0, beta=0.4, eps=0.15, sharing=sharing)
    u, m = SMALL["users"], SMALL["m"]
    group = {"all": np.zeros(u, int), "none": np.arange(u), "clusters": np.arange(u) * m // u}
    rounds = [[] for _ in range(u)]
    literal = with_history(
        lambda user, arms, items: first_best(
            PAGE.index(rounds[group[sharing][user]], arms, PAGE.Scales(beta=0.4, eps=0.15))
        ),
        lambda user, x, r, item: rounds[group[sharing][user]].append((x.copy(), r)),
    )
    drive(BONUS.RLINUCB._replace(parameters=parameters), literal, 200, 9)


def test_informed_oracle_equals_its_literal_version():
    """It is LinUCB on rewards without their deviations, which it adds back when it predicts."""
    u, m = SMALL["users"], SMALL["m"]
    rounds, label = [[] for _ in range(m)], np.arange(u) * m // u
    problem = PAGE.make_misspecified(generators(13, 0, 0)[0], **SMALL)
    deviation = problem.mean - problem.theta @ problem.pool.T
    literal = with_history(
        lambda user, arms, items: first_best(
            PAGE.index(rounds[label[user]], arms, PAGE.Scales(beta=0.4)) + deviation[user, items]
        ),
        lambda user, x, r, item: rounds[label[user]].append((x.copy(), r - deviation[user, item])),
    )
    drive(PAGE.INFORMED._replace(parameters=dict(lam=1.0, beta=0.4)), literal, 200, 13)
    assert np.abs(deviation).max() > 0.1


def test_neighbourhoods_keep_the_sums_of_their_members():
    """When a user comes, its regression equals the sum over its closed neighbourhood."""
    state, literal = drive(*both("RCLUMB", {**SCALES, "alpha1": 0.3}), 300, 11)
    u = SMALL["users"]
    for user in range(u):
        g = FAST.pool_neighbours(state, 301, user)
        members = np.flatnonzero(literal.edges[user])
        for sums in (state.ridge.M, state.ridge.b, state.ridge.count, state.seen):
            np.testing.assert_allclose(sums[g], sums[members].sum(axis=0), atol=1e-9)
        np.testing.assert_array_equal(state.seen[g], state.inside[g - u])
    assert state.seen[:u].sum() == 300


def test_nothing_is_deleted_with_an_infinite_tolerance():
    state, literal = drive(*both("RCLUMB", {**SCALES, "alpha1": np.inf}), 150, 1)
    assert state.sharing[0] == SMALL["users"]
    assert literal.edges.all()


def test_inverse_by_half_equals_the_inverse():
    rng = np.random.default_rng(2)
    for d in (1, 2, 7, 30):
        X = rng.standard_normal((3 * d, d))
        A = np.eye(d) + X.T @ X
        half = A.copy()
        SETS.invert_half(half)
        np.testing.assert_allclose(half, np.linalg.inv(A), atol=1e-12)
        np.testing.assert_array_equal(half, half.T)


def test_single_precision_never_decides():
    """Arms that single precision cannot tell apart are summed again: the last digits decide."""
    rng = np.random.default_rng(6)
    pool, n = directions(rng, 40, 4), rng.integers(0, 50_000, 40).astype(float)
    inverse = np.linalg.inv(np.eye(4) + (pool * n[:, None]).T @ pool)
    for _ in range(200):
        x = directions(rng, 1, 4)[0]
        arms = x + 1e-7 * rng.standard_normal((5, 4))  # closer than the rounding of float32
        bonus = np.abs(arms @ inverse @ pool.T) @ n
        scores = arms @ np.ones(4) + 0.5 * bonus
        pools = pool, pool.astype(np.float32)
        scales = PAGE.Scales(beta=0.0, eps=0.5)
        k = BONUS.robust_argmax(inverse, np.ones(4), n.astype(np.float32), *pools, arms, scales)
        assert k == first_best(scores)


def test_agreement_is_the_adjusted_rand_index_of_partitions():
    from sklearn.metrics import adjusted_rand_score

    rng = np.random.default_rng(3)
    for _ in range(50):
        a, b = rng.integers(4, size=(2, 30))
        found = PAGE.agreement(a[:, None] == a, b[:, None] == b)
        np.testing.assert_allclose(found, adjusted_rand_score(b, a), atol=1e-12)


@pytest.mark.parametrize("name", ["RCLUMB", "RSCLUMB", "CLUB"])
def test_methods_contain_the_lone_learner(name):
    """At the constants that the search names, every decision is that of LinUCB-Ind."""
    space = EXPERIMENTS.SPACES[name]
    constants = space.parameters_of(space.constants_as("LinUCB-Ind", {"radius": 0.3}))
    fast = with_constants(FAST.METHODS[name], **constants)
    drive(fast, with_constants(FAST.METHODS["LinUCB-Ind"], beta=0.3), 300, 4)


@pytest.mark.parametrize(
    ("sizes", "word"),
    [
        (dict(eps_star=-0.1), "eps_star"),
        (dict(eps_star=float("nan")), "eps_star"),
        (dict(m=11), "clusters"),
        (dict(arms=51), "arms"),
        (dict(d=51), "d is"),
    ],
)
def test_bad_sizes_are_refused_in_a_sentence(sizes, word):
    good = dict(users=10, m=2, d=3, items=50, arms=5, eps_star=0.1)
    PAGE.check_sizes(**good)
    with pytest.raises(BookError, match=word):
        PAGE.check_sizes(**{**good, **sizes})


def test_separation_of_an_instance():
    """Two users share a vector, a third is close to them, the fourth is far from all."""
    theta = np.array([[0.0, 0.0], [0.0, 0.0], [0.3, 0.0], [0.0, 2.0]])
    assert THEORY.separation(theta, 0.5) == (2.0, 0.75)
    assert THEORY.separation(theta, 0.1) == (0.3, 0.0)
    assert THEORY.separation(theta, 9.0) == (np.inf, 1.0)


def test_terms_of_the_bound():
    """On the line λ̃ = 1; no gap above ζ leaves the second part of the clustering time."""
    terms = THEORY.terms_rclumb(1, 2, 4, 2, 1000, 0.1, np.inf, hard=0.5)
    ell = np.log(1001)
    np.testing.assert_allclose(
        list(terms.values()),
        [
            5 + 64 * np.log(4000) + 16 * 16 * np.log(8000),
            0.5 * 0.2 * np.sqrt(2) * 1000,
            200 * (1 + np.sqrt(4 * ell)),
            2 * (1 + np.sqrt(2 * np.log(1000) + ell)) * np.sqrt(4000 * ell),
        ],
    )


def test_more_users_than_the_matrix_has_are_refused():
    assert RATINGS.served(10, 3).tolist() == [0, 3, 6]
    with pytest.raises(BookError, match="only 10"):
        RATINGS.served(10, 11)


def test_exploration_constant_against_its_closed_cases():
    """One arm: the integral is explicit; the lemma holds for the worst arm; at the printed size."""
    assert THEORY.lambda_tilde(1, 5) == 1.0
    z = np.linspace(0, 0.5, 200_001)
    direct = np.trapezoid((1 - np.exp(-((0.5 - z) ** 2) * 4)) ** 2, z)
    np.testing.assert_allclose(THEORY.lambda_tilde(2, 2), direct, rtol=1e-6)
    rng = np.random.default_rng(0)
    arms = directions(rng, 40_000, 3).reshape(10_000, 4, 3)
    assert (arms[:, :, 0] ** 2).min(axis=1).mean() > THEORY.lambda_tilde(3, 4)
    assert 1e-17 < THEORY.lambda_tilde(50, 20) < 1e-15
    assert THEORY.zeta(50, 20, 0.2) > 1e7


def test_theory_constants_cover_the_radii_of_the_proof():
    constants = THEORY.theory_constants(1, 2, 4, 10_000, delta=1e-4)
    n = np.arange(10_001)
    radius = (1 + np.sqrt(2 * np.log(40_000) + np.log1p(n))) / np.sqrt(1 + 2 * n)
    assert (constants["alpha1"] * f(n) >= radius - 1e-3).all()
    np.testing.assert_allclose(constants["alpha2"] * 0.02, 2 * 0.02 * np.sqrt(1 / 2))


def test_printed_example_of_the_lemma_is_zero():
    left, right = THEORY.sides(np.array([[0.0, 1], [1, 0]]), np.array([[1.0, 0], [0, 1]]))
    assert left == 0
    np.testing.assert_allclose(right, np.sqrt(2))


@pytest.mark.parametrize("name", ABLATIONS.TOLD)
def test_a_method_that_is_told_a_level_reckons_with_it_whatever_the_truth(name):
    rng = np.random.default_rng(0)
    problem = PAGE.make_misspecified(rng, **{**SMALL, "level": 0.4})
    released, tuned = EXPERIMENTS.as_released(9)[name], FAST.METHODS[name]
    for level, expected in ((0.2, 0.2), (0.4, 0.4)):
        policy = ABLATIONS.told({name: released}, level)[name]
        assert policy.init(problem, 10, rng, **policy.parameters).scales.eps == expected
        policy = ABLATIONS.told({name: with_constants(tuned, eps=0.05)}, level)[name]
        state = policy.init(problem, 10, rng, **policy.parameters)
        assert state.scales.eps == pytest.approx(0.05 * expected / 0.2)


@pytest.mark.parametrize("d, K, exact", [(1, 5, 1.0), (2, 1, 1 / 2), (3, 2, 1 / 6), (50, 1, 0.02)])
def test_the_least_square_of_some_arms_has_its_closed_form(d, K, exact):
    """For d = 3 a coordinate is uniform; for one arm the mean is 1/d."""
    assert THEORY.least_square(d, K) == pytest.approx(exact)


@pytest.mark.parametrize("d, K", [(2, 2), (3, 2), (15, 20), (50, 20)])
def test_the_constant_of_the_theory_is_below_the_mean_that_it_bounds(d, K):
    exact = THEORY.least_square(d, K)
    assert 0 < THEORY.lambda_tilde(d, K) < exact
    arms = directions(np.random.default_rng(1), 20_000, K, d)[:, :, 0]
    assert (arms**2).min(axis=1).mean() == pytest.approx(exact, rel=0.05)


def test_the_better_control_counts_unless_the_baseline_is_shared_itself():
    names = ("RCLUMB", "CLUB", "LinUCB", "RLinUCB", "LinUCB-Ind", JUDGING.CONTROL)
    rewards = pd.DataFrame([[3.0, 2.0, 2.5, 1.0, 2.4, 1.5]] * 2, columns=names)
    assert JUDGING.blind(rewards, "CLUB").value == pytest.approx(25)
    assert JUDGING.blind(rewards, "RLinUCB").value == pytest.approx(50)
    assert JUDGING.blind(rewards, "LinUCB").value == pytest.approx(-40)


def test_rclumb_notes_the_exact_round_in_which_its_rarest_user_is_separated():
    setting = {name: value for name, value in INSTANCES.rare(4).items() if name != "T"}
    problem = PAGE.make_misspecified(generators(7, 0, 0)[0], **setting)
    other, seen = problem.label != problem.label[0], []

    def note(state, literal):
        wrong = literal.edges[0, other].any()
        seen.append(PAGE.separated_at(state, problem))
        assert seen[-1] == (0 if wrong else next(filter(None, seen), len(seen)))

    drive(*both("RCLUMB", dict(beta=0.3, alpha1=1.0, alpha2=2.0)), 400, 7, note, **setting)
    assert 1 < seen[-1] < 400


def test_users_come_as_often_as_told():
    rng = np.random.default_rng(1)
    arrival = np.array([1.0, 2.0, 0.0, 5.0])
    problem = PAGE.make_misspecified(
        rng, arms=2, noise=0.1, theta=np.zeros((4, 2)), pool=directions(rng, 3, 2),
        label=np.zeros(4, dtype=np.int64), arrival=arrival, menu=np.array([[2, 0]]), rounds=8000,
    )  # fmt: skip
    drawn = [PAGE.draw(problem, t, rng) for t in range(1, 8001)]
    counts = np.bincount([user for user, _, _ in drawn], minlength=4)
    np.testing.assert_allclose(counts / 8000, arrival / 8, atol=0.02)
    assert all(items.tolist() == [2, 0] for _, items, _ in drawn)


def test_deviations_that_hide_a_gap_hide_it_exactly_up_to_twice_the_bound():
    rng = np.random.default_rng(2)
    assert INSTANCES.hidden_gap(rng, gap=0.04, eps=0.02)["visible"] < 1e-15
    assert INSTANCES.hidden_gap(rng, gap=0.1, eps=0.02)["visible"] > 0.01


def grouped(**methods):
    """Return a table of groups and sizes over three checkpoints, two trials of each method."""
    rows = [
        dict(policy=name, trial=trial, t=100 * t, groups=g, size=s)
        for name, path in methods.items()
        for t, (g, s) in enumerate(path, 1)
        for trial in (0, 1)
    ]
    return pd.DataFrame(rows)


def test_who_keeps_everybody_apart_or_together_never_clustered():
    apart, together = [(9, 1.0)] * 3, [(1, 9.0)] * 3
    table = grouped(RCLUMB=apart, RSCLUMB=together)
    assert JUDGING.never_clustered(table) == {"RCLUMB": "apart", "RSCLUMB": "together"}
    said = JUDGING.with_clusters(table, ["RCLUMB"])
    assert not said["clustered"]
    assert said["note"].startswith("RCLUMB never clustered: it kept everybody apart. ")
    # From one group by way of some to nobody with anybody: it had clusters on the way.
    table = grouped(RCLUMB=[(1, 9.0), (3, 3.0), (9, 1.0)], RSCLUMB=[(1, 9.0), (9, 1.0), (9, 1.0)])
    assert JUDGING.with_clusters(table)["clustered"]


def test_users_whom_nobody_has_served_yet_are_no_clusters():
    """LinUCB-Ind's constants kept a thousand users apart, whom an early look found together."""
    u, looks = 1000, np.array([1000, 2000, 3000, 4000, 5000])
    rows = {"policy": "RCLUMB", "trial": 0, "t": looks, "groups": [640, 875, 950, 983, u]}
    table = pd.DataFrame({**rows, "size": [130.96, 16.75, 3.55, 1.306, 1.0]})
    assert JUDGING.never_clustered(table, ["RCLUMB"]) == {"RCLUMB": "apart"}
    shared = table.assign(size=[130.96, 16.75, 6.0, 1.306, 1.0])
    assert JUDGING.never_clustered(shared, ["RCLUMB"]) == {}


@pytest.mark.parametrize("case", ["syn", "yelp1", "yelp2", "ml1", "ml2"])
def test_without_clusters_no_gain_is_judged_where_methods_are_tuned_alike(case):
    claim = claims.find(f"mis-{case}-vs-club")
    facts = {"best_reading": 1.0, "clustered": False}
    gain = claim.number.value
    assert claims.at_point(claim, "advantage", gain, facts) == "vacuous at this scale"
    assert claims.at_point(claim, "advantage", 0.0, facts) == "vacuous at this scale"
    facts["clustered"] = True
    assert claims.at_point(claim, "advantage", gain, facts) == "reproduced"
    assert claims.at_point(claim, "reconstruction", gain, {"best_reading": 1.0}) == "reproduced"


def test_a_control_of_a_gain_is_never_the_baseline_itself():
    rewards = pd.DataFrame(
        {"CLUB": [1.0, 1.1], "LinUCB": [0.5, 0.6], "LinUCB-Ind": [2.0, 2.2], "Random groups": 0.9}
    )
    assert JUDGING.blind(rewards, "CLUB").value == pytest.approx(100)  # by the lone model
    assert JUDGING.blind(rewards, "LinUCB-Ind").value < 0
    assert JUDGING.blind(rewards, "LinUCB").value == pytest.approx(100 * (0.9 / 0.55 - 1))


def test_a_blind_twin_is_a_control_of_its_own_method_unless_the_baseline_is_shared():
    columns = {"CLUB": 1.0, "LinUCB": 0.5, "LinUCB-Ind": 1.1, "Random groups": 0.9, "RCLUMB": 1.4}
    twins = {"RCLUMB (blind)": 1.2, "RSCLUMB (blind)": 1.3}
    rewards = pd.DataFrame([{**columns, **twins}] * 2)
    assert JUDGING.blind(rewards, "CLUB").value == pytest.approx(20)
    assert JUDGING.blind(rewards, "CLUB", "RSCLUMB").value == pytest.approx(30)
    assert JUDGING.blind(rewards, "LinUCB").value == pytest.approx(80)
    beside = JUDGING.beside_control(rewards, "CLUB")
    assert beside["over_control"].value == pytest.approx(100 * (1.4 / 1.2 - 1))


@pytest.mark.parametrize("name", FAST.OURS)
def test_a_blind_twin_parts_users_without_knowing_whom(name):
    common = dict(T=6000, trials=1, seed=3, checkpoints=20)
    setting = dict(users=12, m=3, d=4, items=60, arms=6, noise=0.1, level=0.02)
    policy = with_constants(getattr(FAST, name), beta=0.3, alpha1=1.5, alpha2=0.0)
    pair = {"own": policy, "blind": with_constants(policy, blind=True)}
    runs = simulate(PAGE.MISSPECIFIED, pair, settings=[setting], **common)
    best = runs.groupby("policy")["ari"].max()
    assert best["own"] > 0.9 and best["blind"] < 0.5
    assert runs[runs["policy"] == "blind"]["size"].min() < 4  # it has parted users


@pytest.mark.parametrize("n", [1, 31, 33, 700])
def test_what_single_precision_loses_is_within_its_bound(n):
    rng, d = np.random.default_rng(n), 50
    pool, Y = directions(rng, n, d), 0.01 * rng.standard_normal((20, d))
    seen = rng.integers(0, 5000, n).astype(np.float32)
    rough = BONUS.rough_bonuses(Y, seen, pool.astype(np.float32))
    exact = np.array([BONUS.exact_bonus(y, seen, pool) for y in Y])
    np.testing.assert_allclose(exact, np.abs(Y @ pool.T) @ seen)
    length = seen.sum() * np.linalg.norm(Y, axis=1)
    bound = BONUS.HALF * ((d + 3) * length + (BONUS.BLOCK + 3) * rough)
    assert (np.abs(rough - exact) <= bound).all()


def test_a_search_with_fewer_users_keeps_the_rest_of_the_problem():
    setting = dict(users=1000, m=10, d=50, level=0.2)
    assert EXPERIMENTS.fewer_users(setting, 1.5) == setting
    assert EXPERIMENTS.fewer_users(setting, 0.2) == {**setting, "users": 200, "m": 4}
    assert EXPERIMENTS.fewer_users(dict(users=3, m=3), 0.1) == dict(users=2, m=2)


def searched_rows(name, *points):
    """Return rows of a search: number, origin, constants, regret, and whether the point won."""
    common = dict(stage="T = 9", policy=name)
    return [
        dict(point=k, origin=origin, trial=t, regret=r, won=w, **common, **constants)
        for k, (origin, constants, r, w) in enumerate(points)
        for t in range(3)
    ]


def test_a_runner_up_is_a_point_of_its_own_that_did_not_win():
    once = dict.fromkeys(EXPERIMENTS.RANGES, 0.1)  # of most methods nothing else was tried
    points = {name: [("search", once, 9.0, True)] for name in FAST.METHODS}
    points["LinUCB"] = [
        ("search", {**once, "radius": r}, 10 + r, r == 0.1) for r in (0.1, 0.2, 0.4)
    ]
    points["CLUB"] = [
        ("search", {**once, "threshold": 2.0}, 20.0, False),
        ("search", {**once, "threshold": 1.0}, 15.0, False),
        ("LinUCB-Ind", {**once, "threshold": -1.0}, 10.1, True),
    ]
    points["RCLUMB"] = [
        ("RLinUCB-Ind", {**once, "threshold": -1.0}, 9.0, True),
        *points["CLUB"][:2],
    ]
    rows = [row for name, tried in points.items() for row in searched_rows(name, *tried)]
    found = EXPERIMENTS.runners_up(pd.DataFrame(rows))
    assert set(found) == {"LinUCB", "CLUB", "RCLUMB"}
    assert found["LinUCB"].parameters["beta"] == 0.2
    assert found["CLUB"].parameters["alpha"] == 1.0
    assert found["RCLUMB"].parameters["alpha1"] == 1.0


BOUNDS = ("mis-regret-thm-explicit", "mis-rsclumb-thm", "cud-regret-thm", "cud-unknown-C")


@pytest.mark.parametrize("id", BOUNDS)
def test_a_bound_on_regret_is_judged_only_where_random_play_exceeds_it(id):
    claim = claims.find(id)
    facts = {"points": 0, "slope": 0.5}
    assert claims.at_point(claim, "", 0.5, facts) == "vacuous at this scale"
    assert claims.at_point(claim, "", 1.5, facts) == "vacuous at this scale"
    facts["points"] = 1
    assert claims.at_point(claim, "", 0.5, facts) == "reproduced"
    assert claims.at_point(claim, "", 1.5, facts) == "refuted"
    assert claim.questions[""].control == "arms chosen at random on the same problem"


def test_the_line_has_as_many_points_for_every_method_and_decides_with_the_search():
    small = dict(users=10, m=2, d=3, items=30, arms=4, noise=0.2, level=0.1)
    names = ["LinUCB-Ind", "RLinUCB-Ind", "CLUB", "RCLUMB"]
    policies = {name: EXPERIMENTS.POLICIES[name] for name in ["LinUCB", *names]}
    search = EXPERIMENTS.searched(policies, small, 200, 5, "search", tune_T=100)
    table = EXPERIMENTS.lined(search, small, 200, 5, "line")
    line = table[table["origin"] == "line"]
    assert set(line.groupby("policy").size()) == {9}  # three points, three trials
    tried = line[line["policy"] == "RCLUMB"].groupby("point")[["threshold", "tolerance"]].first()
    assert list(tried["threshold"]) == [3.0, 5.0, 7.0]
    assert tried["tolerance"].nunique() == 1
    alone = line[line["policy"] == "LinUCB-Ind"].sort_values(["point", "trial"])
    same = table[(table["policy"] == "CLUB") & (table["origin"] == "LinUCB-Ind")]
    same = same[same["point"] >= 100].sort_values(["point", "trial"])
    assert list(same["regret"]) == list(alone["regret"]) and (same["threshold"] == -1).all()
    means = table.groupby(["policy", "point"])["regret"].mean()
    assert means["CLUB"].min() <= means["LinUCB-Ind"].min()
    for name, rows in table.groupby("policy"):
        chosen = rows[rows["won"]]
        assert chosen["point"].nunique() == 1 and len(chosen) == 3
        assert chosen["regret"].mean() == pytest.approx(means[name].min())
    assert set(EXPERIMENTS.tuned_policies(table)) == set(policies)


def test_on_ratings_thresholds_of_the_line_meet_the_best_radius_of_any_cluster_method():
    small = dict(users=10, m=2, d=3, items=30, arms=4, noise=0.2, level=0.1)
    search = EXPERIMENTS.searched(FAST.METHODS, small, 200, 5, "search", tune_T=100)
    last = search[search["stage"] == search["stage"].iloc[-1]]
    points = RATINGS.line_of(last)
    assert set(points) == set(FAST.METHODS) and {len(each) for each in points.values()} == {3}
    means = last.groupby(["policy", "point"])[["regret", "radius"]].mean()
    clustering = ["CLUB", "SCLUB", *FAST.OURS]
    clustered = means.loc[clustering]
    best = clustered.loc[clustered["regret"].idxmin(), "radius"]
    for name in clustering:
        assert [point["threshold"] for point in points[name]] == list(RATINGS.THRESHOLDS)
        assert {point["radius"] for point in points[name]} == {best}
        assert not any(point.get("bonus", 0) or point.get("tolerance", 0) for point in points[name])
    assert [point["radius"] for point in points["LinUCB-Ind"]] == list(EXPERIMENTS.LINES["radius"])
    played = EXPERIMENTS.lined(search, small, 200, 5, "line", RATINGS.line_of)
    assert set(played[played["origin"] == "line"].groupby("policy").size()) == {9}
    found = RATINGS.along_the_line(played)
    assert list(found.columns) == list(RATINGS.THRESHOLDS) and list(found.index) == sorted(
        clustering
    )
    apart = played[played["threshold"] == -1].groupby(["policy", "point"])["regret"].mean().min()
    rows = played[(played["origin"] == "line") & (played["threshold"] == 2.5)]
    here = rows[rows["policy"] == "CLUB"]["regret"].mean()
    assert found.loc["CLUB", 2.5] == pytest.approx(here / apart)
