"""The fast conversational policies against line-by-line ones, twins, rules, and bad inputs."""

import inspect

import numpy as np
import pandas as pd
import pytest

from lib import chapters, claims, datasets, measure
from lib.errors import BookError

page = chapters.load("conversational")
two = chapters.load("conversational/conucb")
real = chapters.load("conversational/real-data")
theory = chapters.load("conversational/theory")


def small_problem(seed=0, terms=0, T=70):
    """Two users, d = 6, questions in most rounds at first and then after long silences."""
    rng = np.random.default_rng(seed)
    problem = page.make_problem(rng, 2, 8, T, d=6, items=40, key_terms=15, most=3, terms=terms)
    q = np.zeros(T + 1, dtype=np.int64)
    q[[1, 2, 3, 5, 8, 30, 60]] = 2
    return problem._replace(questions=q)


def play(problem, functions, state):
    """Run the loop of the page in plain Python and write down every decision."""
    decisions = []

    def noting(name):
        def decide(*arguments):
            decision = functions[name](*arguments)
            decisions.append((name, decision))
            return decision

        return decide

    scope = {**vars(page), **functions, "ask": noting("ask"), "choose": noting("choose")}
    exec(inspect.getsource(page.rounds), scope)
    orders = {key: np.arange(len(getattr(problem, key))) for key in ("order", "term_order")}
    problem = problem._replace(**orders)  # scratch that an earlier run has shuffled
    total = np.zeros(2)
    scope["rounds"](problem, state, 1, len(problem.questions), np.random.default_rng(1), total)
    return decisions, total


def play_fast(problem, policy, **parameters):
    state = policy.init(problem, 0, np.random.default_rng(2), **{**policy.parameters, **parameters})
    functions = {name: getattr(policy, name) for name in ("ask", "hear", "choose", "learn")}
    return play(problem, functions, state)


def first(scores):
    """The lowest index of the largest score, as the book breaks ties."""
    best = np.max(scores)
    return int(np.flatnonzero(scores >= best - 1e-10 * max(1, abs(best)))[0])


def naive_conlinucb(problem, strategy, beta, alpha, delta=0.05):
    """Algorithm and strategies with every matrix rebuilt from all the data at every step."""
    d = problem.theta.shape[1]
    data = [{"x": [], "y": [], "asked": 0} for _ in problem.theta]
    menu = page.spanner(problem.features)[0]
    plan = np.random.default_rng(2).choice(menu, (len(data), problem.questions.sum()))

    def solve(user):
        X = np.array(data[user]["x"]).reshape(-1, d)
        inverse = np.linalg.inv(beta * np.eye(d) + X.T @ X)
        return inverse, inverse @ X.T @ np.array(data[user]["y"])

    def scores(t, user, X):
        inverse, theta = solve(user)
        count = t + data[user]["asked"]
        radius = np.sqrt(2 * np.log(1 / delta) + d * np.log(1 + count / (beta * d)))
        used = alpha or radius + np.sqrt(beta)
        bonus = np.sqrt(np.einsum("kd,de,ke->k", X, inverse, X))
        return X @ theta + used * bonus, bonus**2

    def ask(state, t, j, user, arms, terms):
        if strategy == "none":
            return page.NOTHING, 0
        if strategy == "arm":
            return page.ARM, first(scores(t, user, arms)[0])
        if strategy == "spanner":
            return page.KEY_TERM, terms[plan[user, data[user]["asked"]] % len(terms)]
        both = scores(t, user, problem.features[terms])
        return page.KEY_TERM, terms[first(both[0] if strategy == "optimist" else both[1])]

    def learn(state, t, user, x, y):
        data[user]["x"].append(x.copy())
        data[user]["y"].append(y)

    def hear(state, t, user, x, y):
        data[user]["asked"] += 1
        learn(state, t, user, x, y)

    def choose(state, t, user, arms, items):
        return first(scores(t, user, arms)[0])

    return {"ask": ask, "hear": hear, "choose": choose, "learn": learn}


def naive_conucb(problem, lam, tilde_lam, alpha, tilde_alpha, delta=0.05):
    d = problem.theta.shape[1]
    data = [{"x": [], "y": [], "tx": [], "ty": []} for _ in problem.theta]

    def solve(user):
        X, A = (np.array(data[user][key]).reshape(-1, d) for key in ("x", "tx"))
        tilde = np.linalg.inv(tilde_lam * np.eye(d) + A.T @ A)
        tilde_theta = tilde @ A.T @ np.array(data[user]["ty"])
        inverse = np.linalg.inv((1 - lam) * np.eye(d) + lam * X.T @ X)
        b = lam * X.T @ np.array(data[user]["y"])
        return inverse, tilde, inverse @ (b + (1 - lam) * tilde_theta), len(A)

    def ask(state, t, j, user, arms, terms):
        inverse, tilde, _, _ = solve(user)
        scores = [
            np.linalg.norm(arms @ inverse @ tilde @ x) ** 2 / (1 + x @ tilde @ x)
            for x in problem.features[terms]
        ]
        return page.KEY_TERM, terms[first(np.array(scores))]

    def choose(state, t, user, arms, items):
        inverse, tilde, theta, asked = solve(user)
        widths = alpha, tilde_alpha
        if not alpha:
            base = 2 * np.log(2 / delta)
            own = base + d * np.log(1 + lam * t / ((1 - lam) * d))
            other = base + d * np.log(1 + asked / (tilde_lam * d))
            widths = np.sqrt(own / lam), np.sqrt(other) + np.sqrt(tilde_lam)
        scores = [
            x @ theta
            + lam * widths[0] * np.sqrt(x @ inverse @ x)
            + (1 - lam) * widths[1] * np.sqrt(x @ inverse @ tilde @ inverse @ x)
            for x in arms
        ]
        return first(np.array(scores))

    def learn(state, t, user, x, y):
        data[user]["x"].append(x.copy())
        data[user]["y"].append(y)

    def hear(state, t, user, x, y):
        data[user]["tx"].append(x.copy())
        data[user]["ty"].append(y)

    return {"ask": ask, "hear": hear, "choose": choose, "learn": learn}


STRATEGIES = {
    "none": page.LINUCB,
    "arm": page.ARM_CON,
    "spanner": page.BS,
    "radius": page.MCR,
    "optimist": page.UCB,
}


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("alpha", [0.0, 0.3])
def test_conlinucb_decides_as_the_pseudocode(strategy, alpha):
    problem = small_problem()
    fast, total = play_fast(problem, STRATEGIES[strategy], beta=0.7, alpha=alpha)
    slow, _ = play(problem, naive_conlinucb(problem, strategy, 0.7, alpha), None)
    assert fast == slow
    assert total[0] > 0


@pytest.mark.parametrize("strategy", ["radius", "optimist"])
def test_varying_key_terms_are_respected(strategy):
    problem = small_problem(terms=4)
    fast, _ = play_fast(problem, STRATEGIES[strategy], beta=0.7, alpha=0.3)
    slow, _ = play(problem, naive_conlinucb(problem, strategy, 0.7, 0.3), None)
    assert fast == slow


@pytest.mark.parametrize("terms", [0, 4])
@pytest.mark.parametrize("alpha", [0.0, 0.3])
def test_conucb_decides_as_the_pseudocode(alpha, terms):
    problem = small_problem(terms=terms)
    constants = {"lam": 0.6, "tilde_lam": 0.8, "alpha": alpha, "tilde_alpha": alpha / 2}
    fast, _ = play_fast(problem, two.CONUCB, **constants)
    slow, _ = play(problem, naive_conucb(problem, **constants), None)
    assert fast == slow


def test_comparisons_are_paired():
    """Who asks and does not listen chooses the same arms as who never asks."""
    problem = small_problem(terms=4)
    silent, _ = play_fast(problem, page.LINUCB, beta=1.0, alpha=0.3)

    def deaf(state, t, user, x, y):
        return None

    functions = {name: getattr(page.MCR, name) for name in ("ask", "choose", "learn")}
    state = page.MCR.init(problem, 0, None, beta=1.0, alpha=0.3, keep_radii=True)
    asking, _ = play(problem, {**functions, "hear": deaf}, state)
    assert [k for name, k in silent if name == "choose"] == [
        k for name, k in asking if name == "choose"
    ]


def naive_twin(problem, lam, tilde_lam, alpha, tilde_alpha, second=True):
    """LinUCB with penalty (1 − λ)/λ and both bonuses of conv-eq-twin; `second` drops the other."""
    d = problem.theta.shape[1]
    data = [([], []) for _ in problem.theta]

    def choose(state, t, user, arms, items):
        X = np.array(data[user][0]).reshape(-1, d)
        V = np.linalg.inv((1 - lam) / lam * np.eye(d) + X.T @ X)
        theta = V @ X.T @ np.array(data[user][1])
        own = [np.sqrt(lam) * alpha * np.sqrt(x @ V @ x) for x in arms]
        factor = (1 - lam) * tilde_alpha / (lam * np.sqrt(tilde_lam)) * second
        other = [factor * np.linalg.norm(V @ x) for x in arms]
        return first(arms @ theta + own + other)

    def learn(state, t, user, x, y):
        data[user][0].append(x.copy())
        data[user][1].append(y)

    def ask(state, t, j, user, arms, terms):
        return page.NOTHING, 0

    return {"ask": ask, "hear": None, "choose": choose, "learn": learn}


@pytest.mark.parametrize("lam, tilde_lam", [(0.5, 1.0), (0.3, 0.4)])
def test_the_silent_twin_of_conucb_keeps_its_second_bonus(lam, tilde_lam):
    problem = small_problem()
    constants = {"lam": lam, "tilde_lam": tilde_lam, "alpha": 0.25, "tilde_alpha": 0.25}
    twin = two.silent(two.CONUCB._replace(parameters=constants))
    decisions, _ = play_fast(problem, twin)
    assert decisions == play(problem, naive_twin(problem, **constants), None)[0]
    assert decisions != play(problem, naive_twin(problem, **constants, second=False), None)[0]


@pytest.mark.parametrize("name", ["BS", "MCR", "UCB", "RANDOM", "ARM_CON"])
def test_the_silent_twin_of_one_regression_is_linucb_with_its_constants(name):
    problem = small_problem()
    policy = getattr(page, name)
    policy = policy._replace(parameters={**policy.parameters, "beta": 0.7, "alpha": 0.3})
    quiet, _ = play_fast(problem, page.LINUCB, beta=0.7, alpha=0.3)
    assert play_fast(problem, two.silent(policy))[0] == quiet


def test_conucb_without_trust_in_answers_is_linucb():
    """The end of the search at which ConUCB contains LinUCB."""
    problem, beta, alpha = small_problem(), 0.7, 0.3
    lam = 1 / (1 + beta)
    constants = {"lam": lam, "tilde_lam": np.inf, "alpha": alpha / np.sqrt(lam), "tilde_alpha": 1.0}
    conucb, _ = play_fast(problem, two.CONUCB, **constants)
    linucb, _ = play_fast(problem, page.LINUCB, beta=beta, alpha=alpha)
    chosen = [[k for name, k in found if name == "choose"] for found in (conucb, linucb)]
    assert chosen[0] == chosen[1]


LITERAL = {
    "BS": (page.BS, page.LITERAL_BS),
    "MCR": (page.MCR, page.LITERAL_MCR),
    "UCB": (page.UCB, page.LITERAL_UCB),
    "ConUCB": (two.CONUCB, two.LITERAL_CONUCB),
}


@pytest.mark.parametrize("name", LITERAL)
@pytest.mark.parametrize("alpha", [0.0, 0.3])
@pytest.mark.parametrize("terms", [0, 4])
def test_both_versions_of_the_page_decide_alike(name, alpha, terms):
    if name == "BS" and terms:
        pytest.skip("a spanner needs all key-terms")
    problem = small_problem(seed=1, terms=terms)
    second = {"tilde_alpha": 0.2} if name == "ConUCB" else {"beta": 0.4}
    fast, literal = (play_fast(problem, p, alpha=alpha, **second)[0] for p in LITERAL[name])
    assert fast == literal


@pytest.mark.parametrize("alpha", [0.05, 0.5, 5.0])
def test_old_norms_never_hide_the_best_arm(alpha):
    """Lazy indices against all indices, on a pool whose arms come again and again."""
    problem = small_problem(T=300)
    lazy, _ = play_fast(problem, page.LINUCB, beta=0.05, alpha=alpha)
    whole, _ = play(problem, naive_conlinucb(problem, "none", 0.05, alpha), None)
    assert lazy == whole


def test_random_key_terms_are_available_ones():
    problem = small_problem(terms=4)
    state = page.RANDOM.init(problem, 0, np.random.default_rng(0), ask_from="all")
    terms = np.array([3, 7, 11, 2])
    asked = set()
    for user, count in [(u, c) for u in range(2) for c in range(state.plan.shape[1])]:
        state.asked[user] = count
        asked.add(page.RANDOM.ask(state, 1, 0, user, problem.pool[:2], terms)[1])
    assert asked <= set(terms) and len(asked) > 1


def test_users_of_real_data_are_the_same_in_all_trials():
    source = {"theta": np.eye(9), "pool": np.eye(9), "features": np.eye(9)}
    one, other = (
        page.make_problem(np.random.default_rng(k), 3, 5, 10, **source).theta for k in (1, 2)
    )
    np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(one, np.eye(9)[[0, 4, 8]])


def test_running_state_is_the_batch_regression():
    found = theory.one_step(np.random.default_rng(0), d=5, rows=80)
    assert found["in place"] < 1e-10
    assert found["literal"] > 1e-3


@pytest.mark.parametrize("seed", range(8))
def test_spanner_has_small_coefficients(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 9))
    X = rng.standard_normal((d + int(rng.integers(0, 40)), d)) * 10.0 ** rng.uniform(-2, 2)
    chosen, coefficients = page.spanner(X)
    assert len(set(chosen)) == d
    assert np.abs(coefficients).max() <= 1 + 1e-9
    np.testing.assert_allclose(coefficients @ X[chosen], X, atol=1e-9 * np.abs(X).max())


def test_spanner_has_the_largest_determinant_nearby():
    X = np.random.default_rng(3).standard_normal((30, 4))
    chosen, _ = page.spanner(X)
    volume = abs(np.linalg.det(X[chosen]))
    for i in range(4):
        for k in range(30):
            swapped = X[chosen].copy()
            swapped[i] = X[k]
            assert abs(np.linalg.det(swapped)) <= volume * (1 + 1e-8)


def test_key_terms_that_do_not_span_are_refused():
    X = np.random.default_rng(0).standard_normal((20, 2)) @ np.ones((2, 5))
    with pytest.raises(BookError, match="span only 1 of 5 dimensions"):
        page.spanner(X)


def test_key_term_features_by_hand():
    pool = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    features = page.key_term_features(np.array([0, 1, 1, 2]), np.array([0, 0, 1, 1]), pool, 2)
    # arm 1 gives half of its weight to each key-term
    np.testing.assert_allclose(features, [[1 / 1.5, 0.5 / 1.5], [1 / 1.5, 1.5 / 1.5]])


def test_arm_without_key_terms_is_refused():
    with pytest.raises(BookError, match="Arm 1 has no key-term"):
        page.key_term_features(np.array([0]), np.array([0]), np.eye(2), 1)
    with pytest.raises(BookError, match="Key-term 1 is linked to no arm"):
        page.key_term_features(np.array([0, 1]), np.array([0, 0]), np.eye(2), 2)


@pytest.mark.parametrize(("f_q", "rate"), [(5.0, 0.0), (0.0, 0.1), (0.7, 0.33), (30.0, 1.0)])
def test_schedule_asks_exactly_its_budget(f_q, rate):
    T = 500
    expected = np.floor(f_q * np.floor(np.log(T + 1)) + rate * T + 1e-9)
    assert page.schedule(T, f_q, rate).sum() == expected


@pytest.mark.parametrize("b", [[0.0, 2.0, 1.0], [0.0, np.nan], [0.0, np.inf]])
def test_budget_that_decreases_is_refused(b):
    with pytest.raises(BookError, match=r"b\(t\) must be finite and must not decrease"):
        page.questions(b)


@pytest.mark.parametrize(("items", "key_terms"), [(5_000, 5_000), (50, 500), (50, 30)])
def test_key_terms_that_the_released_generator_leaves_out_are_refused_at_once(items, key_terms):
    with pytest.raises(BookError, match=f"key_terms is {key_terms}"):
        page.check_links(items, key_terms)


@pytest.mark.parametrize(("items", "key_terms"), [(5_000, 2_000), (50, 20), (50, 2)])
def test_key_terms_that_are_not_refused_are_all_linked(items, key_terms):
    page.check_links(items, key_terms)
    for seed in range(20):
        links = page.random_links(np.random.default_rng(seed), "released", items, key_terms)
        pairs = np.transpose(links)
        assert set(links[1]) == set(range(key_terms))
        np.testing.assert_array_equal(pairs, np.unique(pairs, axis=0))


def test_more_on_offer_than_there_is_is_refused():
    with pytest.raises(BookError, match="cannot be on offer"):
        page.make_problem(np.random.default_rng(0), 1, 50, 10, d=3, items=40, key_terms=10)


def tags():
    return pd.DataFrame(
        [(1, 10, 100), (1, 10, 101), (2, 10, 100), (2, 11, 100), (3, 12, 102), (1, 11, 103)],
        columns=["user", "item", "tag"],
    )


def test_recipe_keeps_the_tags_on_the_most_items():
    kept, terms, linked_arms, linked_terms = real.key_term_links(tags(), items=2, most=1)
    assert list(kept) == [10, 11]
    assert list(terms) == [100]
    assert sorted(zip(linked_arms, linked_terms, strict=True)) == [(0, 0), (1, 0)]


def test_fewer_tags_than_asked_is_refused():
    with pytest.raises(BookError, match="4 items with tags were asked for, but there are only 3"):
        real.key_term_links(tags(), items=4)


def test_bounds_at_a_point():
    d, b, beta, delta, T, lam = 4, 0.5, 1.0, 0.1, 100.0, 0.2
    radius = np.sqrt(2 * np.log(2 / delta) + d * np.log(1 + 1.5 * T / d)) + 1
    start = 256 / (b * lam**2) * np.log(256 * d / (lam**2 * delta)) + 1
    assert theory.bound_bs(T, d, b, beta, delta, lam) == pytest.approx(
        4 * np.sqrt(2 / (b * lam)) * np.sqrt(T) * radius + start
    )
    # without answers and with λ = 1/2 the two bounds differ only in ln 2/δ and the answers' term
    potential = 2 * np.sqrt(2 * T * d * np.log(1 + (T + 1) / d))
    extra = theory.bound_conucb(T, d, 1e-12, 1e12, delta, 0.5) / potential
    assert extra == pytest.approx(
        1 + np.sqrt(2 * np.log(2 / delta) + d * np.log(1 + T / d)), rel=1e-4
    )


@pytest.mark.parametrize(
    ("name", "count"), [("hetrec2011-lastfm-2k", 2945), ("hetrec2011-movielens-2k", 5725)]
)
def test_key_term_counts_of_the_real_data(name, count):
    if datasets.find(name) is None:
        pytest.skip(f"{name} is not on this machine")
    assert len(real.key_term_links(datasets.tags(name))[1]) == count


LEDGER = {id: claim for id, claim in claims.ledger().items() if claim.chapter == "conversational"}
NUMBERS = [
    (id, question)
    for id, claim in LEDGER.items()
    if claim.number and claim.number.unit == "percent" and "elsewhere" in str(claim.questions)
    for question in claim.questions
]


@pytest.mark.parametrize(("id", "question"), NUMBERS)
def test_a_gain_needs_its_whole_interval(id, question):
    claim, printed = LEDGER[id], LEDGER[id].number.value

    def verdict(value, low, high, elsewhere=1.0, control=-300.0):
        measured = measure.Measured(value, low, high, 10)
        facts = {"elsewhere": elsewhere}
        return claims.decide(claim, question, measured, facts, 1.0, measure.exact(control))

    assert verdict(printed, printed - 1, printed + 1) == "reproduced"
    assert verdict(0.07, -10, 10) == "undecided"  # a coin flip has no direction
    assert verdict(1.5, 1, 2) == "direction only"
    assert verdict(1.5, 1, 2, control=1.2) == "vacuous at this scale"  # who asks nothing has it too
    assert verdict(-2, -3, -1) == "not reproduced"  # the other reading is open
    assert verdict(-2, -3, -1, elsewhere=-1.0) == "refuted"


def test_every_experiment_names_a_control():
    experiments = [claim for claim in LEDGER.values() if claim.nature == "experiment"]
    assert all(rule.control for claim in experiments for rule in claim.questions.values())
