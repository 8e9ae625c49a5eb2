"""The algorithms of the model-based chapter against line-by-line versions and exact mathematics."""

import itertools

import numpy as np
import pytest
from scipy import optimize

from lib import chapters, mdp
from lib.errors import BookError


@pytest.fixture(scope="module")
def page():
    return chapters.load("model-based")


def naive_plan(P, r, H):
    """Return V_0 and the policy of one model, by the textbook loops."""
    S, A = r.shape
    V, policy = np.zeros(S), np.zeros((H, S), dtype=int)
    for h in reversed(range(H)):
        Q = [[r[s, a] + sum(P[s, a] * V) for a in range(A)] for s in range(S)]
        policy[h] = [next(a for a in range(A) if q[a] >= max(q) - 1e-12) for q in Q]
        V = np.array([max(q) for q in Q])
    return V, policy


def naive_class_run(rng, problem, method, K, beta):
    """O-MBRL, certainty equivalence and PSRL exactly as the pseudocode reads."""
    plans = [naive_plan(P, problem.r, problem.H) for P in problem.P]
    values = [V[0] for V, _ in plans]
    A, data, chosen = problem.r.shape[1], [], []
    with np.errstate(divide="ignore"):
        logs = np.log(problem.P)
    for k in range(K):
        scores = [sum(logs[m][tuple_] for tuple_ in data) for m in range(len(plans))]
        inside = [m for m, score in enumerate(scores) if score >= max(scores) - beta]
        if k == 0:
            pick = -1
        elif method == "O-MBRL":
            pick = next(m for m in inside if values[m] >= max(values[i] for i in inside) - 1e-12)
        elif method == "PSRL":
            weights = np.exp(np.array(scores) - max(scores)).cumsum()
            pick = int(np.searchsorted(weights, rng.random() * weights[-1], side="right"))
        else:
            pick = int(np.argmax(scores))
        s = 0
        for h in range(problem.H):
            a = plans[pick][1][h, s] if k else int(rng.random() * A)
            cumulative = problem.P_star[s, a].cumsum()
            n = int(np.searchsorted(cumulative, rng.random() * cumulative[-1], side="right"))
            data.append((s, a, n))
            s = n
        chosen.append(pick)
    return chosen


@pytest.mark.parametrize("method", ["O-MBRL", "Certainty equivalence", "PSRL"])
@pytest.mark.parametrize(
    ("family", "setting"),
    [("slow", {"H": 7, "S": 3, "A": 2, "models": 6}), ("lock", {"H": 6, "length": 2, "slip": 0.1})],
)
def test_class_methods_decide_as_the_pseudocode(page, method, family, setting):
    problem = page.make_problem(np.random.default_rng(1), family, **setting)
    K, beta = 25, 2.0
    expected = naive_class_run(np.random.default_rng(5), problem, method, K, beta)
    plan = page.plan_class(problem)
    with np.errstate(divide="ignore"):
        logs = np.ascontiguousarray(np.moveaxis(np.log(problem.P), 0, -1))
    errors = np.moveaxis(page.hellinger2(problem.P, problem.P_star), 0, -1)
    chosen, visits = np.empty(K, dtype=np.int64), np.zeros(plan.policy.shape)
    page.play_class(
        np.random.default_rng(5), problem.P_star.cumsum(axis=-1), logs,
        np.ascontiguousarray(errors), plan.policy, np.ascontiguousarray(plan.V_model[:, 0, 0]),
        problem.truth, page.CLASS_METHODS.index(method), beta, 1.0, chosen, visits,
    )  # fmt: skip
    assert chosen.tolist() == expected
    assert visits.sum() == (K - 1) * problem.H


def test_regret_adds_exact_values_and_the_sums_of_the_proof_are_consistent(page):
    table = page.online_trial(
        np.random.default_rng(2), "slow", "O-MBRL", 40, 0.05, points=4, proof=True, H=16, models=9
    )
    assert table["k"].tolist() == [10, 20, 30, 40]
    assert (np.diff(table["regret"]) >= -1e-12).all()
    A, B, C0, S = (table[name][0] for name in ("A", "B", "C0", "S"))
    assert A <= 2 * B + 2 * C0 + 1e-9
    assert table["errors"][0] <= 8 * np.sqrt(A * S) + 20 * S
    assert table["errors"][0] <= table["crude"][0]


def naive_dimension(G, epsilon, power):
    """Return the longest sequence by trying every order of the points."""
    best = 0
    for length in range(1, G.shape[1] + 1):
        for order in itertools.permutations(range(G.shape[1]), length):
            if all(
                any(
                    sum(g[list(order[:t])] ** power) <= epsilon**power and g[order[t]] > epsilon
                    for g in G
                )
                for t in range(length)
            ):
                best = length
                break
    return best


def test_eluder_dimension_is_the_longest_sequence_over_all_scales(page):
    rng = np.random.default_rng(3)
    for _ in range(12):
        G = rng.random((3, 4)) * (rng.random((3, 4)) < 0.6)
        for power in (1, 2):
            scales = np.geomspace(0.05, G.max() * (1 - 1e-9), 12)
            naive = max(naive_dimension(G, e, power) for e in scales)
            assert page.eluder_dimension(G, 0.05, power) == naive
    assert page.eluder_dimension(np.zeros((2, 3)), 0.1) == 0


@pytest.mark.parametrize("zero", [False, True])
def test_kl_mean_solves_the_convex_problem(page, zero):
    rng = np.random.default_rng(4)
    for _ in range(8):
        p, v, c = rng.dirichlet(np.ones(4)), rng.random(4), rng.choice([0.01, 0.1, 1.0])
        if zero:
            p[np.argmax(v)] = 0
            p /= p.sum()
        seen = p > 0
        found = optimize.minimize(
            lambda q, v=v: -q @ v,
            np.full(4, 0.25),
            bounds=[(1e-9, 1)] * 4,
            constraints=[
                {"type": "eq", "fun": lambda q: q.sum() - 1},
                {
                    "type": "ineq",
                    "fun": lambda q, p=p, seen=seen, c=c: (
                        c - np.sum(p[seen] * np.log(p[seen] / q[seen]))
                    ),
                },
            ],
            options={"maxiter": 500, "ftol": 1e-12},
        )
        assert page.kl_mean(p, v, c) == pytest.approx(-found.fun, abs=2e-5)


def test_the_relaxed_likelihood_set_is_optimistic_and_shrinks(page):
    rng = np.random.default_rng(5)
    P, r, H = rng.dirichlet(np.ones(3), size=(3, 2)), np.zeros((3, 2)), 6
    r[2] = 1 / H
    best = mdp.optimal_value(mdp.every_step(P, H, 3), mdp.every_step(r, H, 2))[0]
    values = []
    for n in (20, 2000, 200_000):
        counts = np.array(
            [[rng.multinomial(n, P[s, a]) for a in range(2)] for s in range(3)], float
        )
        V, policy = np.zeros((H + 1, 3)), np.zeros((H, 3), dtype=np.int64)
        page.plan_tabular(rng, 2, counts, r, 1.0, 20.0, 1.0, V, policy)
        values.append(V[0, 0])
    assert values[0] > values[1] > values[2] >= best - 1e-9
    assert values[2] == pytest.approx(best, abs=0.03)


def test_ucbvi_without_bonus_is_planning_on_frequencies(page):
    rng = np.random.default_rng(6)
    counts = rng.integers(1, 9, (3, 2, 3)).astype(float)
    r, H = rng.random((3, 2)) / 5, 5
    for kind in (0, 1):
        V, policy = np.zeros((H + 1, 3)), np.zeros((H, 3), dtype=np.int64)
        page.plan_tabular(rng, kind, counts, r, 1.0, 1.0, 0.0, V, policy)
        expected, naive_policy = naive_plan(counts / counts.sum(axis=2, keepdims=True), r, H)
        np.testing.assert_allclose(V[0], expected, atol=1e-12)
        np.testing.assert_array_equal(policy, naive_policy)
    P = rng.dirichlet(np.ones(3), size=(3, 2))
    pi = mdp.as_policy(policy, 2)
    PH, rH = mdp.every_step(P, H, 3), mdp.every_step(r, H, 2)
    value, variance = page.value_and_variance(P, r, policy)
    assert value == pytest.approx(mdp.policy_value(PH, rH, pi)[0])
    assert variance == pytest.approx(mdp.return_variance(PH, rH, pi))


def test_pessimism_takes_the_best_worst_case_among_likely_models(page):
    likelihood = np.array([-5.0, -4.0, -20.0])
    values = np.array([[0.9, 0.2, 0.0], [0.5, 0.5, 0.0], [0.5, 0.6, 0.0]])
    choice, kept = page.pessimistic_choice(likelihood, values, beta=2.0)
    assert kept.tolist() == [True, True, False]
    assert choice == 1  # policies 1 and 2 tie at 0.5
    choice, kept = page.pessimistic_choice(likelihood, values, beta=0.0)
    assert kept.tolist() == [False, True, False]
    assert choice == 2


def test_the_printed_first_step_of_the_offline_proof_can_fail(page):
    """Values by hand: the worst model of the learned policy says nothing about the comparator."""
    values = np.array([[0.9, 0.3, 0.9], [0.8, 0.8, 0.4]])  # comparator, other × truth, two models
    choice, _ = page.pessimistic_choice(np.zeros(3), values, beta=1.0)
    assert choice == 1
    gap = values[0, 0] - values[1, 0]
    printed, repaired = np.argmin(values[1]), np.argmin(values[0])
    assert gap > values[0, 0] - values[0, printed]
    assert gap <= values[0, 0] - values[0, repaired]


def test_coverage_by_hand(page):
    errors = np.array([[[0.0, 0.0]], [[0.5, 0.1]]])  # the truth and one wrong model, one state
    target, data = np.array([[[1.0, 0.0]]]), np.array([[[0.25, 0.75]]])
    assert page.coverage(errors, target, data) == pytest.approx(0.5 / (0.125 + 0.075))
    assert page.coverage(errors[:1], target, data) == 1.0
    never = np.array([[[0.5, 0.0]]])
    assert page.coverage(never, target, np.array([[[0.0, 1.0]]])) == np.inf


def test_counts_and_likelihood_agree_with_the_tuples(page):
    rng = np.random.default_rng(7)
    P = rng.dirichlet(np.ones(3), size=(4, 3, 2))
    P[0, 0, 0] = [1, 0, 0]
    states, actions = rng.integers(0, 3, (5, 7)), rng.integers(0, 2, (5, 6))
    counts, shares = page.count_data(states, actions, 3, 2)
    with np.errstate(divide="ignore"):
        expected = np.log(P[:, states[:, :-1], actions, states[:, 1:]]).sum(axis=(1, 2))
    np.testing.assert_allclose(page.log_likelihood(P, counts), expected)
    np.testing.assert_allclose(shares.sum(axis=(1, 2)), 1)


def test_every_family_is_a_valid_problem(page):
    rng = np.random.default_rng(8)
    for name, setting in page.EXAMPLES.items():
        problem = page.make_problem(rng, name, **setting)
        page.check_problem(problem, 0.05)
        np.testing.assert_array_equal(problem.P[problem.truth], problem.P_star)
    with pytest.raises(BookError, match="no family"):
        page.make_problem(rng, "slwo")


def test_gymnasium_tables_keep_every_probability(page):
    toy_text = pytest.importorskip("gymnasium.envs.toy_text")
    env = toy_text.FrozenLakeEnv(is_slippery=True)
    P, r = page.gym_table(env, 0, 1)
    holes_and_goal = 5
    assert P.shape == (16 - holes_and_goal + 2, 4, 16 - holes_and_goal + 2)
    np.testing.assert_allclose(P.sum(axis=-1), 1)
    # from the field left of the goal, going right: a third each up, right (goal) and down (stay)
    left_of_goal = P.shape[0] - 3
    assert P[left_of_goal, 2, P.shape[0] - 2] == pytest.approx(1 / 3)
    low, high = page.return_range(P[None], r, 100)
    assert (low, high) == (0, 1)


def test_values_at_the_bridge_have_a_closed_form(page):
    problem = page.make_problem(None, "bridge", H=9, hazard=0.7, safe=0.4, hazards=[0.0, 0.7])
    plan = page.plan_class(problem)
    assert problem.truth == 1
    assert plan.best == pytest.approx(page.crossing_value(9, 0.7))
    assert plan.V_model[0, 0, 0] == pytest.approx(1)


@pytest.mark.parametrize(
    ("change", "delta", "words"),
    [
        ({}, 0.0, "strictly between 0 and 1"),
        ({}, 1.0, "strictly between 0 and 1"),
        ({"r": np.full((3, 2), 0.5)}, 0.05, r"\[0, 1\]"),
        ({"r": np.full((3, 2), -0.01)}, 0.05, r"\[0, 1\]"),
        ({"P": np.full((2, 3, 2, 3), 0.3)}, 0.05, "sum to one"),
    ],
)
def test_problems_outside_the_theory_are_refused(page, change, delta, words):
    problem = page.slow(np.random.default_rng(9), H=8, S=3, A=2, models=2)
    page.check_problem(problem, 0.05)
    with pytest.raises(BookError, match=words):
        page.check_problem(problem._replace(**change), delta)


def test_no_version_space_is_empty_even_with_impossible_models(page):
    """Deterministic models of likelihood zero leave; the likeliest one always stays."""
    P = np.zeros((2, 2, 1, 2))
    P[0, :, :, 0] = P[1, :, :, 1] = 1
    problem = page.in_class(P, np.full((2, 1), 0.25), 4, 1)
    table = page.class_trial(np.random.default_rng(10), problem, 0, 6, 0.05, 1.0, 1, False)
    assert table["lost"][0] == 0
    assert table["regret"][-1] == 0
