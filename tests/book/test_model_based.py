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


@pytest.fixture(scope="module")
def problems():
    return chapters.load("model-based/problems")


@pytest.fixture(scope="module")
def proof():
    return chapters.load("model-based/proof")


@pytest.fixture(scope="module")
def audit():
    return chapters.load("model-based/audit")


@pytest.fixture(scope="module")
def infinite():
    return chapters.load("model-based/infinite")


@pytest.fixture(scope="module")
def offline():
    return chapters.load("model-based/offline")


@pytest.fixture(scope="module")
def rates():
    return chapters.load("model-based/rates")


def naive_plan(P, r, H):
    """Return V_0 and the policy of one model, by the textbook loops."""
    S, A = r.shape
    V, policy = np.zeros(S), np.zeros((H, S), dtype=int)
    for h in reversed(range(H)):
        Q = [[r[s, a] + sum(P[s, a] * V) for a in range(A)] for s in range(S)]
        policy[h] = [next(a for a in range(A) if q[a] >= max(q) - 1e-12) for q in Q]
        V = np.array([max(q) for q in Q])
    return V, policy


def naive_value(P, r, H, pi):
    """Return the value from the start of a policy pi (H, S, A), by the textbook loops."""
    V = np.zeros(len(r))
    for h in reversed(range(H)):
        V = (pi[h] * (r + P @ V)).sum(axis=1)
    return V[0]


PROBLEMS = {
    "slow": lambda page, _: page.slow(np.random.default_rng(3), H=7, S=3, A=2, models=6, rate=1.0),
    "gamble": lambda _, problems: problems.gamble(0.4, 0.1, members=6),
    "certain": lambda _, problems: problems.gamble(0.0, 0.1, members=6),
}


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("beta", [0.0, 0.2, 3.0, np.inf])
def test_the_fast_loop_decides_as_the_literal_algorithm(page, problems, name, beta):
    problem = PROBLEMS[name](page, problems)
    world = page.world_of(problem, page.plan_class(problem))
    literal = page.o_mbrl(np.random.default_rng(5), problem, 25, beta)
    chosen, states, actions = page.play_class(
        np.random.default_rng(5), world, page.Method(beta, 0.0), 25
    )
    assert chosen.tolist() == literal
    for k, h in itertools.product(range(1, 25), range(problem.H)):
        assert actions[k, h] == world.policy[chosen[k], h, states[k, h]]


def test_the_literal_plan_is_backward_induction(page):
    problem = page.slow(np.random.default_rng(2), H=6, S=4, A=3, models=3)
    for model in problem.P:
        value, policy = page.backward_pass(model, problem.r, problem.H)
        V, expected = naive_plan(model, problem.r, problem.H)
        assert value == pytest.approx(V[0])
        np.testing.assert_array_equal(policy, expected)


def test_gumbel_noise_draws_from_the_posterior(page, problems):
    """Two equally promising models: the share of episodes is the posterior."""
    problem = problems.gamble(0.5, 0.0, members=2)
    problem = problem._replace(P=np.concatenate([problem.P[:1], problem.P[:1]]))
    problem.P[1, 0, 0, 1:3] = 0.2, 0.8
    world = page.world_of(problem, page.plan_class(problem))
    first = []
    for seed in range(400):
        rng = np.random.default_rng(seed)
        chosen, _, actions = page.play_class(rng, world, page.Method(0.0, 1.0), 2)
        first.append((chosen[1], actions[0, 0]))
    safe = [m for m, a in first if a == 1]  # no evidence: both models alike
    assert abs(np.mean(safe) - 0.5) < 4 * 0.5 / np.sqrt(len(safe))


def test_methods_are_slacks(page, problems):
    problem = problems.gamble(0.5, 0.1)
    assert page.class_method("O-MBRL", problem, 10, 0.1).beta == pytest.approx(
        4 * np.log(10 * len(problem.P) / 0.1)
    )
    assert page.class_method("Certainty equivalence", problem, 10, 0.1) == (0.0, 0.0)
    assert page.class_method("PSRL", problem, 10, 0.1) == (0.0, 1.0)


def test_regret_adds_exact_values(page):
    problem = page.slow(np.random.default_rng(2), H=16, models=9)
    plan, history = page.class_run(np.random.default_rng(1), problem, "O-MBRL", 40, 0.05)
    table = page.class_regret(problem, plan, history.chosen, points=4)
    assert table["k"].tolist() == [5, 10, 20, 40]
    values = [
        page.uniform_policy(problem)[0] if m < 0 else plan.V_truth[m, 0, 0] for m in history.chosen
    ]
    assert table["regret"][-1] == pytest.approx(sum(plan.best - np.array(values)))
    assert (np.diff(table["regret"]) >= -1e-12).all()


def test_the_picture_holds_the_distance(page):
    p = np.array([1e-6, 0.01, 0.5])
    q = page.coin_at_distance(p, 1e-4)
    f, g = (np.stack([1 - x, x], -1) for x in (p, q))
    np.testing.assert_allclose(page.triangular(f, g), 1e-4, rtol=1e-9)
    assert (q > p).all()


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
    plan, history = page.class_run(np.random.default_rng(10), problem, "O-MBRL", 6, 0.05)
    assert page.class_regret(problem, plan, history.chosen)["regret"][-1] == 0
    assert set(history.chosen[1:]) == {1}


def test_every_family_is_a_valid_problem(page, problems, audit, infinite):
    rng = np.random.default_rng(8)
    problems = [
        page.slow(rng, H=16), audit.sticky(rng, 16), audit.fast(rng, 16),
        problems.gamble(0.5, 0.1), problems.gamble(0.0, 0.1),
        problems.bridge(9, 1.0, 0.4, [0.0, 1.0, 2.0]), infinite.random_table(rng, 4),
        problems.lake(rng), problems.taxi(rng),
    ]  # fmt: skip
    for problem in problems:
        page.check_problem(problem, 0.05)
        np.testing.assert_array_equal(problem.P[problem.truth], problem.P_star)


def test_the_regret_of_a_gamble_is_the_known_answer(problems):
    """About β / KL(p, p + g) gambles at a price of g each, and β when nothing is random."""
    K, delta = 20_000, 0.05
    for p, g in ((0.5, 0.1), (0.0, 0.1)):
        problem = problems.gamble(p, g)
        found = problems.run_method(np.random.default_rng(1), problem, "O-MBRL", K, delta)
        known = problems.known_answer(problem, p, g, K, delta)
        assert known < g * K / 2
        assert found["regret"][-1] == pytest.approx(known, rel=0.35)


def test_values_at_the_bridge_have_a_closed_form(page, problems):
    problem = problems.bridge(9, 0.7, 0.4, [0.0, 0.7])
    plan = page.plan_class(problem)
    assert problem.truth == 1
    assert plan.best == pytest.approx(problems.crossing_value(9, 0.7))
    assert plan.V_model[0, 0, 0] == pytest.approx(1)


@pytest.mark.parametrize("scale", [1.0, 0.02])
@pytest.mark.parametrize("name", ["UCBVI (Hoeffding)", "UCBVI (Bernstein)", "MVP"])
def test_learners_that_count_decide_as_the_text_says(problems, infinite, name, scale):
    problem = infinite.random_table(np.random.default_rng(11), 4)
    K, H, r, L = 40, 4, problem.r, np.log(5 * 2 * 2 * 40 * 4 / 0.05)
    bonus, P = problems.bonus_of(name, scale), np.ascontiguousarray(problem.P_star)
    sums = P.cumsum(axis=-1)
    values, variances = problems.play_counts(np.random.default_rng(12), P, sums, r, H, L, bonus, K)
    rng, counts, due = np.random.default_rng(12), np.zeros((2, 2, 2)), True
    PH, rH = mdp.every_step(P, H, 3), mdp.every_step(r, H, 2)
    for k in range(K):
        if due or not bonus.doubling:
            _, policy = problems.literal_plan(counts, r, H, L, bonus)
        pi = mdp.as_policy(policy, 2)
        assert values[k] == pytest.approx(mdp.policy_value(PH, rH, pi)[0], abs=1e-12)
        assert variances[k] == pytest.approx(mdp.return_variance(PH, rH, pi), abs=1e-12)
        due, s = False, 0
        for h in range(H):
            a = policy[h, s]
            n = int(np.searchsorted(sums[s, a], rng.random() * sums[s, a, -1], side="right"))
            counts[s, a, n] += 1
            due = due or np.log2(counts[s, a].sum()) % 1 == 0
            s = n


def test_a_bonus_of_zero_is_planning_on_frequencies(problems):
    rng = np.random.default_rng(6)
    counts, r, H = rng.integers(1, 9, (3, 2, 3)).astype(float), rng.random((3, 2)) / 5, 5
    V, policy = np.zeros((H + 1, 3)), np.zeros((H, 3), dtype=np.int64)
    problems.plan_counts(counts, r, 1.0, problems.bonus_of("MVP", 0.0), V, policy)
    expected, naive_policy = naive_plan(counts / counts.sum(axis=2, keepdims=True), r, H)
    np.testing.assert_allclose(V[0], expected, atol=1e-12)
    np.testing.assert_array_equal(policy, naive_policy)


def test_exponents_and_their_worst_gap(problems):
    rows = [
        {"trial": t, "K": K, "g": g, "regret": (1 + t) * min(g * K, 1 / g)}
        for t in range(4) for K in (100, 10_000) for g in (0.1, 0.01)
    ]  # fmt: skip
    found = problems.worst_slope(pd.DataFrame(rows), "K")
    assert found[:3] == pytest.approx((0.5, 0.5, 0.5))
    table = pd.DataFrame(
        [{"trial": t, "H": H, "y": (1 + t) * H**0.7} for t in range(4) for H in (8, 32, 128)]
    )
    assert problems.growth(table, "H", "y")[:3] == pytest.approx((0.7, 0.7, 0.7))


def test_a_gap_that_one_trial_prefers_does_not_win_by_that(problems):
    """The worst gap is chosen by means, not trial by trial."""
    regret = np.array([[[5.0, 0.0]], [[0.0, 4.0]]])
    worst, _ = problems.at_worst(regret, regret)
    assert worst == pytest.approx([2.5])


def test_gymnasium_tables_keep_every_probability(page, problems):
    P = problems.lake_table(15, True)
    np.testing.assert_allclose(P.sum(axis=-1), 1)
    assert P[14, 2, 16] == pytest.approx(1 / 3)  # left of the goal, going right on ice
    dry = problems.lake_table(10, False)
    assert dry[9, 2, 16] == 1  # the goal lies elsewhere
    r = np.zeros((18, 4))
    r[16] = 1
    assert page.return_range(P[None], r, 30) == (0, 1)
    taxi = problems.taxi_table(0, 1, False)
    np.testing.assert_allclose(taxi.sum(axis=-1), 1)
    assert taxi[0, 4, 25] == 1  # the passenger at R gets in
    assert taxi[25 + 4, 5, 50] == 1  # and out at G, where he wants to
    assert taxi[25 + 20, 5, 51] == 1  # not at Y


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


def test_eluder_dimension_is_the_longest_sequence_over_all_scales(proof):
    rng = np.random.default_rng(3)
    for _ in range(8):
        G = rng.random((3, 3)) * (rng.random((3, 3)) < 0.6)
        for power, most in itertools.product((1, 2), (1, 2)):
            scales = np.geomspace(0.05, G.max() * (1 - 1e-9), 12)
            naive = max(naive_dimension(G, e, power) for e in scales)
            assert proof.eluder_dimension(G, 0.05, power, most=most) == naive
    assert proof.eluder_dimension(np.zeros((2, 3)), 0.1) == 0


def test_the_audit_is_the_sum_over_steps(page, audit):
    """Every sum of the proof once more, step by step along the history."""
    problem = audit.sticky(np.random.default_rng(0), 6)
    plan, history = page.class_run(np.random.default_rng(4), problem, "O-MBRL", 12, 0.05, 0.02)
    sums = audit.step_sums(problem, plan, history, np.arange(1, 12))
    A = B = S = errors = noise = 0.0
    for k, h in itertools.product(range(1, 12), range(6)):
        m, s, n = history.chosen[k], history.states[k, h], history.states[k, h + 1]
        a = plan.policy[m, h, s]
        assert a == history.actions[k, h]
        V_hat, V = plan.V_model[m, h + 1], plan.V_truth[m, h + 1]
        truth, model = problem.P_star[s, a], problem.P[m, s, a]
        A += truth @ (V_hat - truth @ V_hat) ** 2
        B += truth @ (V - truth @ V) ** 2
        S += page.hellinger2(truth, model)
        errors += abs((model - truth) @ V_hat)
        noise += truth @ V_hat - V_hat[n]
    expected = {"A": A, "B": B, "S": S, "errors": errors, "I": noise}
    for name, value in expected.items():
        assert sums[name] == pytest.approx(value, abs=1e-12), name
    assert errors <= 8 * np.sqrt(A * S) + 20 * S
    assert 2 * B + 2 * sums["C0"] + 1e-12 >= A


def test_bad_episodes_and_survival_by_hand(page, audit):
    problem = audit.sticky(np.random.default_rng(0), 40)
    _, history = page.class_run(np.random.default_rng(4), problem, "O-MBRL", 8, 0.05, 0.02)
    for eta, beta in ((0.5, 0.3), (2.0, 3.0), (50.0, 30.0)):
        bad, kept, close, outside = audit.episodes_audit(problem, history, eta, beta)
        past, score, total = np.zeros(81), np.zeros(81), 0.0
        for k in range(8):
            if k:
                assert kept[k - 1] == (score[problem.truth] >= score.max() - beta)
                assert close[k - 1] == (past[history.chosen[k]] <= eta)
            new = np.zeros(81)
            for h in range(40):
                s, a, n = history.states[k, h], history.actions[k, h], history.states[k, h + 1]
                new += page.hellinger2(problem.P[:, s, a], problem.P_star[s, a])
                score += np.log(problem.P[:, s, a, n])
            assert bad[k] == (eta + past + new > 4 * (eta + past)).any()
            total += new[history.chosen[k]] if k and not bad[k] else 0
            past += new
        assert outside == pytest.approx(total)
    assert bad.sum() < 8


def test_a_long_episode_can_be_bad(audit):
    found = audit.audit_trial(np.random.default_rng(1), "sticky", 6, 0.05, H=audit.LONGEST)
    assert found["bad"] >= 1


def test_who_drops_nothing_has_variances_that_grow_with_the_horizon(audit):
    """The control of the variance conversion."""
    stubborn, ours = (
        [
            audit.audit_trial(np.random.default_rng(1), "sticky", 60, 0.05, scale, H=H)["A"]
            for H in (8, 128)
        ]
        for scale in (np.inf, 1.0)
    )
    assert stubborn[1] > 8 * stubborn[0]
    assert ours[1] < stubborn[1] / 3


def test_the_printed_sum_over_good_episodes_is_no_martingale(audit):
    noises = np.array([audit.kept_noise(o, 10.0, 40) for o in itertools.product((0, 1), repeat=8)])
    printed, stopped = noises.mean(axis=0)
    assert printed > 0.4
    assert stopped == 0


def test_likely_coins_are_an_interval(proof):
    low, high = proof.likely_interval(0.3, 50, 2.0)
    assert 0 < low < 0.3 < high < 1
    for end in (low, high):
        assert 50 * proof.coin_divergence(0.3, end) == pytest.approx(2.0, abs=1e-9)
    assert proof.likely_interval(1.0, 50, 2.0)[0] == pytest.approx(np.exp(-2 / 50))


def test_the_extremal_recursion_obeys_its_lemma_and_its_constant_can_fail(proof):
    assert proof.extremal_recursion(1.0, 0.4999, 1e6) <= 4
    assert proof.extremal_recursion(1.0, 8.0, 1e6) > 4  # a must be below G/2


@pytest.mark.parametrize("zero", [False, True])
def test_kl_mean_solves_the_convex_problem(infinite, zero):
    rng = np.random.default_rng(4)
    for _ in range(6):
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
        assert infinite.kl_mean(p, v, c) == pytest.approx(-found.fun, abs=2e-5)


def test_the_relaxed_likelihood_set_is_optimistic_and_shrinks(infinite):
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
        infinite.plan_likely(counts, r, 20.0, V, policy)
        values.append(V[0, 0])
    assert values[0] > values[1] > values[2] >= best - 1e-9
    assert values[2] == pytest.approx(best, abs=0.03)


def test_an_interval_gambles_as_a_fine_list_does(infinite):
    """The continuous class against a class of many members with the same slack."""
    for seed in range(5):
        K, beta, p, g = 400, 6.0, 0.3, 0.15
        n = infinite.play_interval(np.random.default_rng(seed), p, p + g, beta, K)
        rng, wins, tries = np.random.default_rng(seed), 0, 0
        q = np.linspace(1e-4, 1 - 1e-4, 4001)
        for _ in range(K):
            score = wins * np.log(q) + (tries - wins) * np.log(1 - q)
            if q[score >= score.max() - beta].max() <= p + g:
                break
            wins += rng.random() < p
            tries += 1
        assert abs(n - tries) <= 1


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


def test_worst_case_planning_on_tables(rates):
    rng = np.random.default_rng(13)
    for n in (0, 3, 30, 3000):
        counts = rng.multinomial(n, rng.dirichlet([1, 1], size=(2, 3))).astype(float)
        r, H, beta = rng.random((2, 3)) / 6, 6, 4.0
        policy = np.zeros((H, 2), dtype=np.int64)
        lowest = rates.worst_case_plan(counts, r, beta, policy)
        V = np.zeros(2)
        for h in reversed(range(H)):
            Q = np.array(r)
            for s, a in itertools.product(range(2), range(3)):
                visits = counts[s, a].sum()
                p = counts[s, a] / max(visits, 1)
                Q[s, a] += two_point_extreme(p, V, beta / visits, -1) if visits else V.min()
            V = Q.max(axis=1)
            assert policy[h].tolist() == [int(np.argmax(q >= q.max() - 1e-9)) for q in Q]
        assert lowest == pytest.approx(V[0], abs=1e-6)


def test_pessimism_takes_the_best_worst_case_among_likely_models(offline):
    likelihood = np.array([-5.0, -4.0, -20.0])
    values = np.array([[0.9, 0.2, 0.0], [0.5, 0.5, 0.0], [0.5, 0.6, 0.0]])
    choice, kept = offline.pessimistic_choice(likelihood, values, beta=2.0)
    assert kept.tolist() == [True, True, False]
    assert choice == 1  # policies 1 and 2 tie at 0.5
    choice, kept = offline.pessimistic_choice(likelihood, values, beta=0.0)
    assert kept.tolist() == [False, True, False]
    assert choice == 2


def test_the_printed_first_step_of_the_offline_proof_can_fail(page, offline):
    """Values by hand: the worst model of the learned policy says nothing about the comparator."""
    values = np.array([[0.9, 0.3, 0.9], [0.8, 0.8, 0.4], [0.0, 0.0, 0.0]])
    P = np.full((3, 1, 1, 1), 1.0)
    problem = page.in_class(P, np.zeros((1, 1)), 1, 0)
    found = offline.first_step(problem, values, np.zeros((1, 1, 1)), 0.05)
    assert found["printed step"] > 0
    assert found["repaired step"] <= 0


def test_coverage_by_hand(offline):
    errors = np.array([[[0.0, 0.0]], [[0.5, 0.1]]])  # the truth and one wrong model, one state
    target, data = np.array([[[1.0, 0.0]]]), np.array([[[0.25, 0.75]]])
    assert offline.coverage(errors, target, data) == pytest.approx(0.5 / (0.125 + 0.075))
    assert offline.coverage(errors[:1], target, data) == 1.0
    never = np.array([[[0.5, 0.0]]])
    assert offline.coverage(never, target, np.array([[[0.0, 1.0]]])) == np.inf


def test_counts_give_the_likelihood_of_the_tuples(offline):
    rng = np.random.default_rng(7)
    P = rng.dirichlet(np.ones(3), size=(4, 3, 2))
    P[0, 0, 0] = [1, 0, 0]
    states, actions = rng.integers(0, 3, (5, 7)), rng.integers(0, 2, (5, 6))
    counts = offline.count_transitions(states, actions, 3, 2)
    with np.errstate(divide="ignore"):
        expected = np.log(P[:, states[:, :-1], actions, states[:, 1:]]).sum(axis=(1, 2))
    np.testing.assert_allclose(offline.log_likelihood(P, counts), expected)


@pytest.mark.parametrize("K", [2, 10, 200])
def test_offline_methods_decide_as_the_text_says(page, offline, K):
    setting, delta, differ = {"H": 5, "S": 3, "A": 2, "models": 7}, 0.3, 0
    scales = (0.1, 0.05, 0.05)
    for seed in range(5):
        found = offline.offline_trial(np.random.default_rng(seed), 0.5, K, delta, scales, **setting)
        rng = np.random.default_rng(seed)
        problem = page.slow(rng, **setting)
        P, r, H, (S, A) = problem.P, problem.r, problem.H, problem.r.shape
        pis = [mdp.as_policy(naive_plan(model, r, H)[1], A) for model in P]
        behaviour = 0.5 / A + 0.5 * pis[problem.truth]
        truth = mdp.every_step(problem.P_star, H, 3)
        states, actions = mdp.sample_episodes(rng, truth, behaviour, K=K)
        counts = np.zeros((H, S, A, S))
        for k, h in itertools.product(range(K), range(H)):
            counts[h, states[k, h], actions[k, h], states[k, h + 1]] += 1
        pooled, n = counts.sum(axis=0), counts.sum(axis=(0, 3))
        scores = [np.sum(pooled * np.log(model)) for model in P]
        policies = {"MLE planning": pis[int(np.argmax(scores))]}
        for name, times in (("CPPO-LR", 1.0), ("CPPO-LR (tuned)", 0.1)):
            slack = times * 4 * np.log(7 / delta)
            inside = [m for m in range(7) if scores[m] >= max(scores) - slack]
            worst = [min(naive_value(P[m], r, H, pi) for m in inside) for pi in pis]
            policies[name] = pis[int(np.argmax(np.array(worst) >= max(worst) - 1e-12))]
        seen = counts.sum(axis=-1)
        total = seen.sum(axis=-1, keepdims=True)
        policies["BC"] = np.where(total > 0, seen / np.maximum(total, 1), 1 / A)
        for name in ("VI-LCB (Hoeffding)", "VI-LCB (Bernstein)"):
            V, cautious, L = np.zeros(S), np.zeros((H, S, A)), np.log(2 * S * A * H / delta)
            for h in reversed(range(H)):
                Q = np.zeros((S, A))
                for s, a in itertools.product(range(S), range(A)):
                    if n[s, a] > 0:
                        p = pooled[s, a] / n[s, a]
                        penalty = np.sqrt(L / (2 * n[s, a]))
                        if name.endswith("(Bernstein)"):
                            variance = p @ (V - p @ V) ** 2
                            penalty = np.sqrt(2 * L * variance / n[s, a]) + L / n[s, a]
                        Q[s, a] = min(1, max(0, r[s, a] + p @ V - 0.05 * penalty))
                V = Q.max(axis=1)
                first = [np.flatnonzero(q >= q.max() - 1e-12)[0] for q in Q]
                cautious[h, np.arange(S), first] = 1
            policies[name] = cautious
        best = naive_plan(problem.P_star, r, H)[0][0]
        for name, pi in policies.items():
            gap = best - naive_value(problem.P_star, r, H, pi)
            assert found[name] == pytest.approx(gap, abs=1e-10), name
        differ += found["CPPO-LR"] != found["MLE planning"]
    assert K > 10 or differ > 0


def test_the_worst_alternative_is_the_best_threshold(rates):
    margins = np.random.default_rng(3).random((50, 2))
    grid = np.linspace(0, 1, 20_001)
    for j in range(2):
        naive = max(g * np.mean(margins[:, j] > g) for g in grid)
        assert rates.worst_gap(margins)[j] == pytest.approx(naive, abs=1e-4)


def test_margins_fall_at_their_rates_and_the_controls_do_not(rates):
    rows = [
        {"trial": t, "K": K, "p": p}
        | rates.gamble_margins(np.random.default_rng([t, K]), K, p, 0.05)
        for t in range(60) for K in (1000, 100_000) for p in (1.0, 0.5)
    ]  # fmt: skip
    table = pd.DataFrame(rows)
    still, coin = (rates.margin_slope(table[table.p == p], "K") for p in (1.0, 0.5))
    assert still.high < -0.9
    assert -0.6 < coin.value < -0.4
    never = rates.margin_slope(table[table.p == 0.5], "K", y="never", over="right")
    assert never.low > 0.25


def test_data_at_the_bridge_follow_the_law_of_the_steps(rates):
    """The margin is the distance to the worst hazard that the likelihood leaves."""
    found = rates.bridge_margins(np.random.default_rng(2), 9, 20_000, 0.05)
    assert 0 < found["margin"] < found["hoeffding"] < 0.2
    assert found["errors"] <= 8 * np.sqrt(22 * found["A"] * found["price"]) + 440 * found["price"]
    assert found["margin"] <= found["errors"] + 1e-9  # the simulation lemma


def test_only_unlikely_models_break_the_offline_variance_conversion_at_the_fork(rates):
    """With few data the lemma says nothing; with many, A of a likely model is below its bound."""
    few, many = (rates.fork_trial(np.random.default_rng(3), K, 0.05) for K in (10, 10**8))
    assert few["right"] > few["all"] == many["all"] == 0.25
    assert few["A"] > 0.05 > many["right"] > many["A"]


def test_the_knapsack_is_optimism_over_all_models():
    approximation = chapters.load("model-based/approximation")
    rng, q, beta, units = np.random.default_rng(4), np.linspace(0.1, 0.9, 5), 3.0, 400
    for _ in range(25):
        tries = rng.integers(0, 40, 3)
        prices = approximation.price_of_levels(rng.binomial(tries, 0.5), tries, q)
        levels = approximation.best_raise(prices, q, 0.45, beta, units)
        value = np.maximum(levels, 0.45).sum()
        assert value >= approximation.enumerated(prices, q, 0.45, beta) - 1e-9
        assert value <= approximation.enumerated(prices, q, 0.45, beta * (1 + 3 / units)) + 1e-9


def test_the_tasks_follow_gymnasium():
    gymnasium = pytest.importorskip("gymnasium")
    approximation = chapters.load("model-based/approximation")
    env = gymnasium.make("Pendulum-v1").unwrapped
    env.reset(seed=0)
    env.state = np.array([2.0, 0.5])
    after = env.step(np.array([2.0]))[0]
    ours = approximation.world("Pendulum", np.array([np.cos(2.0), np.sin(2.0), 0.5]), 1.0)
    np.testing.assert_allclose(ours, after, atol=1e-5)
    cart = gymnasium.make("CartPole-v1").unwrapped
    cart.reset(seed=0)
    cart.state = np.array([0.1, -0.2, 0.05, 0.3])
    after = cart.step(1)[0]
    ours = approximation.world("CartPole", np.array([0.1, -0.2, 0.05, 0.3]), 1.0)
    np.testing.assert_allclose(ours, after, atol=1e-5)
