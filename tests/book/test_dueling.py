"""Linear duels: the fast path against the literal one, the mended test, ReCLUB, and refusals."""

import numpy as np
import pytest
from scipy.optimize import minimize

from lib import chapters
from lib.errors import BookError
from lib.graphs import components, unpack
from lib.linear import lambda_tilde, sphere_moments
from tests.duels import duel, play

PAGE = chapters.load("dueling")
FAST = chapters.load("dueling/fast")
SETTING = dict(users=6, m=2, d=3, items=30, arms=5, scale=6.0)
TESTS = {"printed": 2.2, "mended": 0.7}


def make(seed=0, **changes):
    return PAGE.make_duel(np.random.default_rng(seed), **{**SETTING, **changes})


def start(problem, T, **parameters):
    return FAST.init_duel(problem, T, np.random.default_rng(7), **parameters)


def run(state, problem, T, seed=0):
    """Play the fast version alone."""
    rng = np.random.default_rng(seed)
    for t in range(1, T + 1):
        choose = lambda t, user, arms, items: FAST.choose_pair(state, t, user, arms, items)  # noqa: E731
        FAST.learn_pair(state, t, *duel(problem, rng, t, choose))
    return state


@pytest.mark.parametrize("test", TESTS)
def test_every_pair_and_edge_equals_the_literal_algorithm(test):
    problem, knobs = make(), dict(width=2.0, alpha=TESTS[test], test=test)
    state = start(problem, 260, growth=1.0, **knobs)
    literal = PAGE.init_literal(problem, 260, None, **knobs)
    play(FAST.COLDB, state, PAGE.LITERAL_COLDB, literal, problem, 260)
    np.testing.assert_array_equal(unpack(state.graph.edges), literal.edges)
    np.testing.assert_allclose(state.own.theta, literal.theta, atol=1e-6)
    np.testing.assert_allclose(state.own.H_inverse, literal.spread, atol=1e-4)
    assert 1 < components(literal.edges).max() + 1 == (state.graph.size > 0).sum()


@pytest.mark.parametrize("graph", ["none", "shared", "true"])
def test_fixed_graphs_equal_the_literal_estimates(graph):
    problem = make(3)
    state = run(start(problem, 200, graph=graph, growth=1.0), problem, 200)
    data = FAST.duels_by_user(state.history)
    together = {"none": np.arange(6), "shared": np.zeros(6), "true": problem.label}[graph]
    for V in np.unique(state.graph.cluster):
        members = np.flatnonzero(state.graph.cluster == V)
        assert set(members) == set(np.flatnonzero(together == together[members[0]]))
        X = np.concatenate([data[i][0] for i in members])
        y = np.concatenate([data[i][1] for i in members])
        θ, H = PAGE.exact_mle(X, y, 1.0)
        off = state.shared.theta[V] - θ  # the last duel came after the last refit
        assert np.sqrt(off @ H @ off) < 0.2
        V_inverse = np.linalg.inv(np.eye(3) / PAGE.KAPPA + X.T @ X)
        np.testing.assert_allclose(state.V_inverse[V], V_inverse, atol=1e-9)


def test_the_threshold_at_zero_and_at_infinity_gives_the_two_ends():
    T, pairs = 150, {}
    for name, knobs in {
        "ind": dict(graph="none"),
        "zero": dict(alpha=0.0),
        "mended zero": dict(alpha=0.0, test="mended"),
        "shared": dict(graph="shared"),
        "infinite": dict(alpha=np.inf),
    }.items():
        problem = make(5)  # a problem keeps the order in which it offers items
        state = run(start(problem, T, **knobs), problem, T)
        pairs[name] = state.history.first[:T].tolist(), state.history.second[:T].tolist()
    assert pairs["ind"] == pairs["zero"] == pairs["mended zero"]
    assert pairs["shared"] == pairs["infinite"] != pairs["ind"]


def test_the_warm_start_stays_near_the_exact_solution_and_visits_little():
    problem, T = make(2, users=2, m=1, d=5, items=100), 3000
    state, rng = start(problem, T, graph="true", width=4.0), np.random.default_rng(0)
    for t in range(1, T + 1):
        choose = lambda t, user, arms, items: FAST.choose_pair(state, t, user, arms, items)  # noqa: E731
        FAST.learn_pair(state, t, *duel(problem, rng, t, choose))
        if t % 300 == 0:
            data = FAST.duels_by_user(state.history)
            θ, H = PAGE.exact_mle(*(np.concatenate(part) for part in zip(*data, strict=True)), 1.0)
            off = state.shared.theta[0] - θ
            assert np.sqrt(off @ H @ off / 5) < 0.1  # of the statistical error
    ρ, passes, n = 0.5, 3, state.history.size[0]
    assert state.tally[1] <= passes * n * (1 + ρ) / ρ  # (duel-eq-amortised)
    assert state.tally[0] + n == T


def test_equal_arms_change_nothing_but_the_counts():
    problem = make()
    state = run(start(problem, 60, alpha=2.2), problem, 50)
    before = state.shared.theta.copy(), state.own.theta.copy(), state.history.size.copy()
    FAST.learn_pair(state, 51, 0, 4, 4, 1.0)
    after = state.shared.theta, state.own.theta, state.history.size
    for old, new in zip(before, after, strict=True):
        np.testing.assert_array_equal(old, new)


def test_the_exact_solution_minimises_the_loss():
    rng = np.random.default_rng(1)
    X, lam = rng.standard_normal((80, 3)), 0.7
    y = (rng.random(80) < 1 / (1 + np.exp(-X @ [1.0, -1.0, 0.5]))).astype(float)
    loss = lambda θ: np.logaddexp(0, -(2 * y - 1) * (X @ θ)).sum() + lam / 2 * θ @ θ  # noqa: E731
    θ, H = PAGE.exact_mle(X, y, lam)
    np.testing.assert_allclose(θ, minimize(loss, np.zeros(3), tol=1e-12).x, atol=1e-5)
    assert np.linalg.eigvalsh(H)[0] > lam


def test_the_expected_error_is_the_error_of_independent_users():
    rng, errors, expected = np.random.default_rng(4), [], []
    θ = np.array([1.0, -1.0, 0.5])
    for _ in range(300):
        X = rng.standard_normal((200, 3))
        y = (rng.random(200) < PAGE.μ(X @ θ)).astype(float)
        hat, H = PAGE.exact_mle(X, y, 1.0)
        errors.append(((hat - θ) ** 2).sum())
        expected.append(np.trace(np.linalg.inv(H)))
    assert np.mean(errors) == pytest.approx(np.mean(expected), rel=0.15)


def test_the_quadratic_form_is_the_likelihood_to_second_order():
    rng = np.random.default_rng(2)
    X, θ = rng.standard_normal((50, 3)), np.array([0.3, -0.2, 0.1])
    y = (rng.random(50) < 0.5).astype(float)
    M, b = FAST.quadratic(X, y, θ)
    loss = lambda v: 2 * np.logaddexp(0, -(2 * y - 1) * (X @ v)).sum()  # noqa: E731
    form = lambda v: -2 * b @ v + v @ M @ v  # noqa: E731
    for step in np.eye(3) * 1e-3:
        assert loss(θ + step) - loss(θ) == pytest.approx(form(θ + step) - form(θ), abs=1e-6)


def test_reclub_finds_decided_users_and_refits_their_clusters():
    problem = make(1, users=12, m=3, d=5, items=100, arms=8, scale=8.0)
    state = run(start(problem, 2000, graph="shared", width=4.0, n0=12.0), problem, 1500)
    FAST.replan_duel(state, 1500)
    np.testing.assert_array_equal(
        state.graph.cluster[:, None] == state.graph.cluster,
        problem.label[:, None] == problem.label,
    )
    data = FAST.duels_by_user(state.history)
    X = np.concatenate([data[i][0] for i in np.flatnonzero(state.graph.cluster == 0)])
    assert state.shared.count[0] == len(X)
    assert len(start(problem, 2000, n0=np.inf).replans) == 0


def test_only_the_mended_test_keeps_what_it_finds():
    """The control must fail: same users, same width, the printed test loses its clusters."""
    problem = make(1, users=20, m=2, d=5, items=200, arms=10, scale=8.0)
    ends = {
        test: run(start(problem, 20_000, width=8.0, alpha=a, test=test), problem, 20_000)
        for test, a in (("printed", 2.0), ("mended", 0.8))
    }
    assert (ends["mended"].graph.size > 0).sum() == 2
    assert (ends["printed"].graph.size > 0).sum() > 5


def test_the_blind_twin_parts_users_without_knowing_whom():
    problem = make(2, users=12, scale=20.0)
    found = {}
    for graph in ("complete", "blind"):
        knobs = dict(width=2.0, alpha=0.8, test="mended", graph=graph)
        state = run(start(problem, 3000, **knobs), problem, 3000)
        found[graph] = FAST.found_groups(problem.label, state.graph.cluster)
    assert found["complete"]["ari"] == 1 and found["blind"]["ari"] < 0.3
    assert found["blind"]["clusters"] > 2


def test_the_printed_threshold_is_the_printed_formula():
    d, u, lam, delta, lt, n, κ = 4, 10, 2.0, 0.1, 0.03, 17.0, PAGE.KAPPA
    printed = PAGE.printed_radius(d, u, lt, lam, delta)
    top = np.sqrt(lam * κ) + np.sqrt(2 * np.log(u / delta) + d * np.log(1 + 4 * n * κ / (d * lam)))
    state = start(make(), 10, printed=printed)
    assert np.isinf(state.radius).all()  # f(0): who was never served loses no edge
    assert (start(make(), 10).radius == 1).all()
    state.served[0] = n
    assert FAST.radius_of(state, 0) == pytest.approx(top / (κ * np.sqrt(2 * lt * n)))
    assert PAGE.beta(n, d, u, lam, delta) == pytest.approx(top)
    assert lambda_tilde(*sphere_moments(1), 20) == pytest.approx(1.0, abs=1e-3)
    assert lambda_tilde(*sphere_moments(20), 20) < 1e-6


def test_rewards_of_each_kind():
    arms, items = np.array([[1.0, 0.0], [0.6, 0.8]]), np.arange(2)
    for kind, value in ((PAGE.LINEAR, -0.5), (PAGE.SQUARE, 0.25), (PAGE.COSINE, np.cos(1.5))):
        problem = PAGE.DuelProblem(np.array([[-0.5, 0.0]]), arms, items, 2, items[:1], 1.0, kind)
        assert PAGE.expected(problem, 1, 0, items, arms)[0] == pytest.approx(value)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: make(arms=1), "arms is 1, but a duel needs at least two arms"),
        (lambda: make(arms=31), "arms is 31, but must be at most items = 30"),
        (
            lambda: PAGE.exact_mle(np.eye(2), [1, 2], 1.0),
            r"a label is 2, but .* won \(1\) or lost \(0\)",
        ),
        (lambda: PAGE.exact_mle(np.eye(2), [1, -1], 1.0), "a label is -1"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(call, words):
    with pytest.raises(BookError, match=words) as error:
        call()
    assert str(error.value).endswith(".") and "\n" not in str(error.value)
