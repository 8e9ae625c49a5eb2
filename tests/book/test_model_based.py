"""The algorithms of the model-based chapter against line-by-line versions and exact mathematics."""

import itertools

import numpy as np
import pandas as pd
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


def naive_hellinger2(p, q):
    return sum((a**0.5 - b**0.5) ** 2 for a, b in zip(p, q, strict=True)) / 2


def naive_class_run(rng, problem, method, K, beta, eta):
    """O-MBRL, certainty equivalence and PSRL exactly as the pseudocode reads, and their audit."""
    plans = [naive_plan(P, problem.r, problem.H) for P in problem.P]
    values = [V[0] for V, _ in plans]
    A, data, chosen = problem.r.shape[1], [], []
    lost, below, largest, bad, outside = 0, 0, 0.0, 0, 0.0
    with np.errstate(divide="ignore"):
        logs = np.log(problem.P)

    def error(m, tuples):
        return sum(naive_hellinger2(problem.P[m, s, a], problem.P_star[s, a]) for s, a, _ in tuples)

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
        if k:
            lost += problem.truth not in inside
            below += problem.truth in inside and values[pick] < values[problem.truth] - 1e-12
            largest = max(largest, error(pick, data))
        s, past = 0, len(data)
        for h in range(problem.H):
            a = plans[pick][1][h, s] if k else int(rng.random() * A)
            cumulative = problem.P_star[s, a].cumsum()
            n = int(np.searchsorted(cumulative, rng.random() * cumulative[-1], side="right"))
            data.append((s, a, n))
            s = n
        chosen.append(pick)
        before = [error(m, data[:past]) for m in range(len(plans))]
        after = [error(m, data) for m in range(len(plans))]
        if any(eta + b > 4 * (eta + a) for a, b in zip(before, after, strict=True)):
            bad += 1
        elif k:
            outside += after[pick] - before[pick]
    return chosen, (lost, below, largest, bad, outside)


@pytest.mark.parametrize("method", ["O-MBRL", "Certainty equivalence", "PSRL"])
@pytest.mark.parametrize(
    ("family", "seed", "setting"),
    [
        ("slow", 3, {"H": 7, "S": 3, "A": 2, "models": 6, "rate": 1.0}),
        ("lock", 1, {"H": 6, "length": 2, "slip": 0.1}),
    ],
)
def test_class_methods_decide_as_the_pseudocode(page, method, family, seed, setting):
    problem = page.make_problem(np.random.default_rng(seed), family, **setting)
    K, beta = 25, 0.2  # so narrow a set loses the truth: all counters move
    plan = page.plan_class(problem)
    with np.errstate(divide="ignore"):
        logs = np.ascontiguousarray(np.moveaxis(np.log(problem.P), 0, -1))
    errors = np.ascontiguousarray(np.moveaxis(page.hellinger2(problem.P, problem.P_star), 0, -1))
    start, kind = np.ascontiguousarray(plan.V_model[:, 0, 0]), page.CLASS_METHODS.index(method)
    largest = np.zeros(5)
    for eta in (0.05, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95):
        expected, audit = naive_class_run(np.random.default_rng(5), problem, method, K, beta, eta)
        chosen, visits = np.empty(K, dtype=np.int64), np.zeros(plan.policy.shape)
        counted = page.play_class(
            np.random.default_rng(5), problem.P_star.cumsum(axis=-1), logs, errors, plan.policy,
            start, problem.truth, kind, beta, eta, chosen, visits,
        )  # fmt: skip
        assert chosen.tolist() == expected
        assert visits.sum() == (K - 1) * problem.H
        np.testing.assert_allclose(counted, audit, atol=1e-12)
        largest = np.maximum(largest, audit)
    lost, _, past, bad, outside = largest
    assert lost > 0 and past > 0 and bad > 0 and outside > 0


def test_regret_adds_exact_values_and_the_sums_of_the_proof_are_consistent(page):
    table = page.online_trial(
        np.random.default_rng(2), "slow", "O-MBRL", 40, 0.05, points=4, proof=True, H=16, models=9
    )
    assert table["k"].tolist() == [5, 10, 20, 40]
    assert (np.diff(table["regret"]) >= -1e-12).all()
    A, B, C0, S = (table[name][0] for name in ("A", "B", "C0", "S"))
    assert A <= 2 * B + 2 * C0 + 1e-9
    assert table["errors"][0] <= 8 * np.sqrt(A * S) + 20 * S
    assert table["errors"][0] <= table["crude"][0]


def naive_dimension(G, epsilon, power):
    """Return the longest sequence by trying every sequence of points, repetitions included."""
    best = 0
    for length in range(1, G.shape[1] + 2):
        for order in itertools.product(range(G.shape[1]), repeat=length):
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
        G = rng.random((3, 3)) * (rng.random((3, 3)) < 0.6)
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


def two_point_extreme(p, v, c, sign):
    """Return the largest (sign 1) or least mean of v over laws q of two points, KL(p, q) <= c."""
    good = int(sign * v[1] > sign * v[0])
    if p[good] == 1:
        return v[good]

    def excess(x):  # of the divergence when the good point has probability x
        rest = (1 - p[good]) * np.log((1 - p[good]) / (1 - x))
        return rest + (p[good] * np.log(p[good] / x) if p[good] > 0 else 0.0) - c

    x = optimize.brentq(excess, p[good], 1 - 1e-15, xtol=1e-15) if excess(1 - 1e-15) > 0 else 1.0
    return x * v[good] + (1 - x) * v[1 - good]


def naive_tabular_plan(rng, method, counts, r, H, L, beta, scale):
    """One backward pass of a method that counts, as the text defines its optimistic mean."""
    S, A = r.shape
    n = counts.sum(axis=2)
    p = counts / np.maximum(n, 1)[..., None]
    if method == "PSRL (tabular)":
        p = np.array([[rng.standard_gamma(1 + counts[s, a]) for a in range(A)] for s in range(S)])
        p /= p.sum(axis=2, keepdims=True)
    V, policy = np.zeros(S), np.zeros((H, S), dtype=int)
    for h in reversed(range(H)):
        Q = np.ones((S, A))
        for s, a in itertools.product(range(S), range(A)):
            mean = sum(p[s, a] * V)
            variance = sum(p[s, a] * (V - mean) ** 2)
            if method == "PSRL (tabular)":
                Q[s, a] = min(1, r[s, a] + mean)
            elif n[s, a] > 0:
                upper = {
                    "UCBVI (Hoeffding)": mean + scale * 7 * L / n[s, a] ** 0.5,
                    "UCBVI (Bernstein)": mean
                    + scale * ((8 * L * variance / n[s, a]) ** 0.5 + 14 * L / (3 * n[s, a])),
                    "O-MBRL (tabular)": two_point_extreme(p[s, a], V, scale * beta / n[s, a], 1),
                }[method]
                Q[s, a] = min(1, r[s, a] + upper)
        V = Q.max(axis=1)
        policy[h] = [np.flatnonzero(q >= q.max() - 1e-9)[0] for q in Q]
    return V, policy


@pytest.mark.parametrize("scale", [1.0, 0.02])
@pytest.mark.parametrize(
    "method", ["UCBVI (Hoeffding)", "UCBVI (Bernstein)", "O-MBRL (tabular)", "PSRL (tabular)"]
)
def test_methods_that_count_decide_as_the_text_says(page, method, scale):
    problem = page.make_problem(np.random.default_rng(11), "random", H=4, S=2, A=2)
    kind, K, H, r = page.TABULAR_METHODS.index(method), 40, problem.H, problem.r
    L, beta = np.log(5 * 2 * 2 * K * H / 0.05), page.tabular_slack(2, 2, H, K, 0.05)
    assert beta == pytest.approx(7 * np.log(K * (K * H * 2.0) ** 8 / 0.05))
    values, variances = np.empty(K), np.empty(K)
    sums = problem.P_star.cumsum(axis=-1)
    page.play_tabular(
        np.random.default_rng(12), np.ascontiguousarray(problem.P_star), sums, r, H, kind, L,
        beta, scale, values, variances,
    )  # fmt: skip
    rng, counts, different = np.random.default_rng(12), np.zeros((2, 2, 2)), set()
    P, rH = mdp.every_step(problem.P_star, H, 3), mdp.every_step(r, H, 2)
    for k in range(K):
        V, policy = np.zeros((H + 1, 2)), np.zeros((H, 2), dtype=np.int64)
        twin = np.random.default_rng()
        twin.bit_generator.state = rng.bit_generator.state
        page.plan_tabular(twin, kind, counts, r, L, beta, scale, V, policy)
        value, expected = naive_tabular_plan(rng, method, counts, r, H, L, beta, scale)
        np.testing.assert_allclose(V[0], value, atol=1e-7)
        np.testing.assert_array_equal(policy, expected)
        pi = mdp.as_policy(expected, 2)
        assert values[k] == pytest.approx(mdp.policy_value(P, rH, pi)[0], abs=1e-12)
        assert variances[k] == pytest.approx(mdp.return_variance(P, rH, pi), abs=1e-12)
        different.add(expected.tobytes())
        s = 0
        for h in range(H):
            a = expected[h, s]
            n = int(np.searchsorted(sums[s, a], rng.random() * sums[s, a, -1], side="right"))
            counts[s, a, n] += 1
            s = n
    assert scale == 1 or len(different) > 1


def naive_value(P, r, H, pi):
    """Return the value from the start of a policy pi (H, S, A), by the textbook loops."""
    V = np.zeros(len(r))
    for h in reversed(range(H)):
        Q = r + P @ V
        V = (pi[h] * Q).sum(axis=1)
    return V[0]


@pytest.mark.parametrize("K", [2, 10, 200])
def test_offline_methods_decide_as_the_pseudocode(page, K):
    setting, delta, differ = {"H": 5, "S": 3, "A": 2, "models": 7}, 0.3, 0
    for seed in range(8):
        found = page.offline_trial(np.random.default_rng(seed), "slow", 0.5, K, delta, **setting)
        rng = np.random.default_rng(seed)
        problem = page.make_problem(rng, "slow", **setting)
        P, r, H, (S, A) = problem.P, problem.r, problem.H, problem.r.shape
        plans = [naive_plan(model, r, H)[1] for model in P]
        pis = [(plan[..., None] == np.arange(A)).astype(float) for plan in plans]
        behaviour = 0.5 / A + 0.5 * pis[problem.truth]
        truth = mdp.every_step(problem.P_star, H, 3)
        states, actions = mdp.sample_episodes(rng, truth, behaviour, K=K)
        tuples = [
            (states[k, h], actions[k, h], states[k, h + 1]) for k in range(K) for h in range(H)
        ]
        scores = [sum(np.log(model[x]) for x in tuples) for model in P]
        inside = [m for m in range(7) if scores[m] >= max(scores) - 4 * np.log(7 / delta)]
        worst = [min(naive_value(P[m], r, H, pi) for m in inside) for pi in pis]
        counts = np.zeros((S, A, S))
        for x in tuples:
            counts[x] += 1
        n = counts.sum(axis=2)
        V, cautious = np.zeros(S), np.zeros((H, S, A))
        for h in reversed(range(H)):
            Q = np.zeros((S, A))
            for s, a in itertools.product(range(S), range(A)):
                if n[s, a] > 0:
                    penalty = np.sqrt(np.log(2 * S * A * H / delta) / (2 * n[s, a]))
                    lower = r[s, a] + sum(counts[s, a] / n[s, a] * V) - penalty
                    Q[s, a] = min(1, max(0, lower))
            V = Q.max(axis=1)
            cautious[h, np.arange(S), Q.argmax(axis=1)] = 1
        visits = n.sum(axis=1, keepdims=True)
        clone = [n[s] / visits[s] if visits[s] > 0 else np.full(A, 1 / A) for s in range(S)]
        policies = {
            "CPPO-LR": pis[int(np.argmax(np.array(worst) >= max(worst) - 1e-12))],
            "MLE planning": pis[int(np.argmax(scores))],
            "BC": [np.array(clone)] * H,
            "VI-LCB": cautious,
        }
        best = naive_plan(problem.P_star, r, H)[0][0]
        for name, pi in policies.items():
            gap = best - naive_value(problem.P_star, r, H, pi)
            assert found[name] == pytest.approx(gap, abs=1e-12), name
        differ += found["CPPO-LR"] != found["MLE planning"]
    assert K > 10 or differ > 0


def test_worst_case_planning_on_tables(page):
    rng = np.random.default_rng(13)
    for n in (0, 3, 30, 3000):
        counts = rng.multinomial(n, rng.dirichlet([1, 1], size=(2, 3))).astype(float)
        r, H, beta = rng.random((2, 3)) / 6, 6, 4.0
        policy = np.zeros((H, 2), dtype=np.int64)
        page.worst_case_plan(counts, r, beta, policy)
        V = np.zeros(2)
        for h in reversed(range(H)):
            Q = np.array(r)
            for s, a in itertools.product(range(2), range(3)):
                visits = counts[s, a].sum()
                p = counts[s, a] / max(visits, 1)
                Q[s, a] += two_point_extreme(p, V, beta / visits, -1) if visits else V.min()
            V = Q.max(axis=1)
            assert policy[h].tolist() == [int(np.argmax(q >= q.max() - 1e-9)) for q in Q]


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


def test_bridge_data_give_the_likelihood_of_the_model(page):
    """Falls drawn at once follow the law of the steps one by one."""
    H, hazard, K = 9, 1.5, 40_000
    falls = page.crossings(np.random.default_rng(14), K, H, hazard, 1.0, "")
    stay = np.exp(-hazard / (H - 1))
    expected = [*(stay**t * (1 - stay) for t in range(H - 1)), stay ** (H - 1)]
    np.testing.assert_allclose(np.bincount(falls, minlength=H) / K, expected, atol=0.01)
    assert page.crossings(np.random.default_rng(15), 7, H, 0.0, 1.0, "").tolist() == [H - 1] * 7


def test_pessimism_at_the_bridge_crosses_when_no_likely_hazard_forbids_it(page):
    H, hazards, delta = 9, [0.0, 0.5, 1.0, 2.0], 0.1
    table = page.bridge_trial(np.random.default_rng(16), 60, H, 0.5, delta, hazards, cover=1.0)
    falls = page.crossings(np.random.default_rng(16), 60, H, 0.5, 1.0, "")
    scores = []
    for hazard in hazards:
        stay = np.exp(-hazard / (H - 1))
        logs = [(t * np.log(stay) if t else 0) for t in falls]
        with np.errstate(divide="ignore"):
            logs += [np.log(1 - stay) for t in falls if t < H - 1]
        scores.append(sum(logs))
    inside = [i for i in range(4) if scores[i] >= max(scores) - 4 * np.log(4 / delta)]
    worst = min(page.crossing_value(H, hazards[i]) for i in inside)
    best = page.crossing_value(H, 0.5)
    for g, gap in zip(table["edge"], table["gap"], strict=True):
        assert gap == (g if best - g > worst + 1e-12 else 0)
    assert 0 < np.count_nonzero(table["gap"]) < len(table["gap"])


def test_growth_rates(page):
    table = pd.DataFrame(
        [{"trial": t, "H": H, "y": (1 + t) * H**0.7} for t in range(4) for H in (8, 32, 128)]
    )
    assert page.growth(table, "H", "y")[:3] == pytest.approx((0.7, 0.7, 0.7))
    table.loc[table.H == 8, "y"] = np.inf
    assert page.growth(table, "H", "y").value == pytest.approx(0.7)
    with pytest.raises(BookError, match="at least two positive x"):
        page.growth(table[table.H < 100], "H", "y")


def test_the_picture_holds_the_distance(page):
    p = np.array([1e-6, 0.01, 0.5])
    q = page.coin_at_distance(p, 1e-4)
    f, g = (np.stack([1 - x, x], -1) for x in (p, q))
    np.testing.assert_allclose(page.triangular(f, g), 1e-4, rtol=1e-9)
    assert (q > p).all()


def test_the_extremal_recursion_obeys_its_lemma_and_its_constant_can_fail(page):
    assert page.extremal_recursion(1.0, 0.4999, 1e6) <= 4
    assert page.extremal_recursion(1.0, 8.0, 1e6) > 4  # a must be below G/2


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
