"""The chapter on dueling bandits: fast paths against literal ones, and what must be refused."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from scipy.sparse.csgraph import connected_components

from lib import chapters
from lib.errors import BookError
from lib.graphs import unpack
from lib.linear import lambda_tilde, sphere_moments

PAGE = chapters.load("dueling")
SETTING = dict(users=6, m=2, d=3, items=30, arms=5, scale=6.0)
RIDGE = 1.0 / PAGE.KAPPA
GRAPHS = ("complete", "none", "shared", "true")


def make(seed=0, **changes):
    return PAGE.make_duel(np.random.default_rng(seed), **{**SETTING, **changes})


def first_best(scores):
    return int(np.flatnonzero(scores >= scores.max() - 1e-10)[0])


def f(count):
    return np.sqrt((1 + np.log1p(count)) / (1 + count))


def together_at_start(problem, graph):
    u = len(problem.label)
    if graph == "none":
        return np.zeros((u, u), dtype=bool)
    if graph == "true":
        return problem.label[:, None] == problem.label
    return np.ones((u, u), dtype=bool)


def newton(X, y, lam):
    θ = np.zeros(X.shape[1])
    for _ in range(60):
        p = 1 / (1 + np.exp(-X @ θ))
        H = lam * np.eye(len(θ)) + X.T @ np.diag(p * (1 - p)) @ X
        θ = θ - np.linalg.solve(H, lam * θ + X.T @ (p - y))
    return θ


class Naive:
    """COLDB and its relatives line by line: a cold solve from the whole history in every round."""

    def __init__(self, problem, graph, width, alpha, lam=1.0, sampler=None):
        self.pool, self.u = problem.pool, len(problem.label)
        self.edges = together_at_start(problem, graph) & ~np.eye(self.u, dtype=bool)
        self.alpha = alpha if graph == "complete" else np.inf
        self.width, self.lam, self.sampler = width, lam, sampler
        self.history = []
        self.hat = np.zeros((self.u, self.pool.shape[1]))
        self.count = np.zeros(self.u)

    def component(self, user):
        labels = connected_components(self.edges)[1]
        return frozenset(np.flatnonzero(labels == labels[user]))

    def data(self, members):
        rows = [
            (self.pool[i] - self.pool[j], y) for user, i, j, y in self.history if user in members
        ]
        X = np.array([x for x, _ in rows]).reshape(-1, self.pool.shape[1])
        return X, np.array([y for _, y in rows])

    def estimate(self, members):
        return newton(*self.data(members), self.lam)

    def choose(self, user, arms):
        members = self.component(user)
        θ, X = self.estimate(members), self.data(members)[0]
        V_inverse = np.linalg.inv(self.lam / PAGE.KAPPA * np.eye(len(θ)) + X.T @ X)
        if self.sampler is not None:
            L, width = np.linalg.cholesky(V_inverse), self.width
            draws = [θ + width * L @ self.sampler.standard_normal(len(θ)) for _ in range(2)]
            return tuple(first_best(arms @ draw) for draw in draws)
        i = first_best(arms @ θ)
        apart = arms - arms[i]
        bonus = np.sqrt(np.einsum("ki,ij,kj->k", apart, V_inverse, apart))
        return i, first_best(arms @ θ + self.width * bonus)

    def learn(self, user, i, j, y):
        self.history.append((user, i, j, y))
        self.count[user] += 1
        self.hat[user] = self.estimate({user})
        radius = f(self.count)
        far = np.linalg.norm(self.hat - self.hat[user], axis=1)
        far = far > self.alpha * (radius + radius[user])
        self.edges[user, far] = self.edges[far, user] = False


class Scheduled(Naive):
    """The same with the printed schedule: online Newton steps, refits at geometric times."""

    def __init__(self, *arguments, growth, **keywords):
        super().__init__(*arguments, **keywords)
        self.growth, self.fits = growth, {}

    def fit(self, members):
        X, y = self.data(members)
        θ = newton(X, y, self.lam)
        p = 1 / (1 + np.exp(-X @ θ))
        H = self.lam * np.eye(len(θ)) + X.T @ np.diag(p * (1 - p)) @ X
        due = max(len(y) + 1, np.ceil(self.growth * len(y)))
        self.fits[frozenset(members)] = [θ, H, due]

    def estimate(self, members):
        if members not in self.fits or len(self.data(members)[1]) >= self.fits[members][2]:
            self.fit(members)
        return self.fits[members][0]

    def learn(self, user, i, j, y):
        x = self.pool[i] - self.pool[j]
        d = len(x)
        own = frozenset({user})
        self.fits.setdefault(own, [np.zeros(d), self.lam * np.eye(d), 0])
        for fit in {id(v): v for v in (self.fits[own], self.fits[self.component(user)])}.values():
            p = 1 / (1 + np.exp(-x @ fit[0]))
            fit[1] = fit[1] + p * (1 - p) * np.outer(x, x)
            fit[0] = fit[0] - np.linalg.solve(fit[1], (p - y) * x)
        self.history.append((user, i, j, y))
        self.count[user] += 1
        self.hat[user] = self.estimate(own)
        radius = f(self.count)
        far = np.linalg.norm(self.hat - self.hat[user], axis=1)
        far = far > self.alpha * (radius + radius[user])
        self.edges[user, far] = self.edges[far, user] = False


def play(policy, state, naive, problem, T, seed=1):
    """Run fast and naive side by side; every decision must agree."""
    rng = np.random.default_rng(seed)
    for t in range(1, T + 1):
        user, items, arms = PAGE.BANDITS.draw(problem, t, rng)
        items, arms = items.copy(), arms.copy()
        means = PAGE.expected(problem, t, user, items, arms)
        pair = tuple(policy.choose(state, t, user, arms, items))
        assert pair == naive.choose(user, arms if policy is PAGE.COLDB else items), f"round {t}"
        i, j = pair
        y = PAGE.feedback(problem, means[i] - means[j], rng)
        policy.learn(state, t, user, items[i], items[j], y)
        naive.learn(user, items[i], items[j], y)


def start(problem, T, graph, sampling=False, **parameters):
    rng = np.random.default_rng(7)
    return PAGE.init_duel(problem, T, rng, graph=graph, sampling=sampling, **parameters)


@pytest.mark.parametrize("graph", GRAPHS)
def test_every_pair_and_edge_equals_the_literal_algorithm(graph):
    problem, knobs = make(), dict(width=2.0, alpha=2.2)
    state = start(problem, 260, graph, growth=1.0, **knobs)
    naive = Naive(problem, graph, **knobs)
    play(PAGE.COLDB, state, naive, problem, 260)
    np.testing.assert_array_equal(unpack(state.edges), naive.edges)
    np.testing.assert_allclose(state.ridge.theta[: naive.u], naive.hat, atol=1e-6)
    if graph == "complete":
        assert 1 < connected_components(naive.edges)[0] == (state.size > 0).sum()


def test_the_dueling_sampler_equals_the_literal_one():
    problem = make(3)
    state = start(problem, 120, "complete", sampling=True, growth=1.0, width=0.7, alpha=2.2)
    naive = Naive(problem, "complete", 0.7, 2.2, sampler=np.random.default_rng(7))
    play(PAGE.COLDB, state, naive, problem, 120)


@pytest.mark.parametrize("graph", ["complete", "none"])
def test_the_schedule_of_refits_equals_the_literal_one(graph):
    problem, knobs = make(5), dict(width=2.0, alpha=2.2)
    state = start(problem, 200, graph, growth=1.3, **knobs)
    naive = Scheduled(problem, graph, growth=1.3, **knobs)
    play(PAGE.COLDB, state, naive, problem, 200)
    np.testing.assert_array_equal(unpack(state.edges), naive.edges)


def test_the_warm_start_stays_near_the_exact_solution_and_visits_little():
    problem, T = make(2, users=2, m=1, d=5, items=100), 3000
    state = start(problem, T, "true", width=2.0)
    rng = np.random.default_rng(0)
    for t in range(1, T + 1):
        user, items, arms = PAGE.BANDITS.draw(problem, t, rng)
        means = PAGE.expected(problem, t, user, items, arms)
        i, j = PAGE.choose_pair(state, t, user, arms, items)
        y = PAGE.feedback(problem, means[i] - means[j], rng)
        PAGE.learn_pair(state, t, user, items[i], items[j], y)
        if t % 250 == 0:
            assert PAGE.step_error(state) < 0.02  # of the statistical error
    ρ, passes = 0.1, 2
    assert state.tally[1] <= 2 * passes * T * (1 + ρ) / ρ  # user and component (duel-eq-amortised)


def test_the_exact_solution_minimises_the_loss():
    rng = np.random.default_rng(1)
    X, lam = rng.standard_normal((80, 3)), 0.7
    y = (rng.random(80) < 1 / (1 + np.exp(-X @ [1.0, -1.0, 0.5]))).astype(float)
    loss = lambda θ: np.logaddexp(0, -(2 * y - 1) * (X @ θ)).sum() + lam / 2 * θ @ θ  # noqa: E731
    θ, H = PAGE.exact_mle(X, y, lam)
    np.testing.assert_allclose(θ, minimize(loss, np.zeros(3), tol=1e-12).x, atol=1e-5)
    batched = PAGE.batched_mle(np.zeros((1, 3)), X[None], y[None], lam)
    np.testing.assert_allclose(batched[0], θ, atol=1e-9)
    assert np.linalg.eigvalsh(H)[0] > lam


class NaiveNeural(Naive):
    """CONDB line by line: p × p matrices, every network trained alone by plain Adam."""

    def __init__(self, problem, graph, θ0, m, width, alpha, lam, steps, rate, growth):
        super().__init__(problem, graph, width, alpha, lam)
        self.m, self.steps, self.rate, self.growth, self.due = m, steps, rate, growth, 20
        unit = problem.pool / np.linalg.norm(problem.pool, axis=1, keepdims=True)
        self.X = torch.as_tensor(np.hstack([unit, unit]) / np.sqrt(2))
        self.θ0 = torch.as_tensor(θ0)
        self.own = [self.θ0.clone() for _ in range(self.u)]
        labels = connected_components(self.edges)[1]
        self.nets = {
            frozenset(np.flatnonzero(labels == V)): self.θ0.clone() for V in np.unique(labels)
        }
        self.scores = {key: np.zeros(len(self.X)) for key in self.nets}
        self.φ = np.array([self.gradient(x) for x in self.X]) / np.sqrt(m)

    def h(self, θ, x):
        D = self.X.shape[1]
        hidden = torch.relu(θ[: self.m * D].reshape(self.m, D) @ x)
        return self.m**0.5 * (θ[self.m * D :] * hidden).sum()

    def gradient(self, x):
        θ = self.θ0.clone().requires_grad_()
        self.h(θ, x).backward()
        return θ.grad.numpy()

    def descend(self, θ, members):
        θ = θ.clone().requires_grad_()
        adam = torch.optim.Adam([θ], lr=self.rate)
        for _ in range(self.steps):
            loss = 0.5 * self.lam * self.m * ((θ - self.θ0) ** 2).sum()
            for user, i, j, y in self.history:
                if user in members:
                    margin = self.h(θ, self.X[i]) - self.h(θ, self.X[j])
                    loss = loss + torch.nn.functional.softplus(-(2 * y - 1) * margin)
            adam.zero_grad()
            loss.backward()
            adam.step()
        return θ.detach()

    def choose(self, user, items):
        members = self.component(user)
        V = self.lam / PAGE.KAPPA * np.eye(len(self.θ0))
        for who, i, j, _ in self.history:
            if who in members:
                V += np.outer(self.φ[i] - self.φ[j], self.φ[i] - self.φ[j])
        scores = self.scores[members][items]
        i = first_best(scores)
        apart = self.φ[items] - self.φ[items[i]]
        bonus = np.sqrt((apart @ np.linalg.inv(V) * apart).sum(axis=1).clip(0))
        return i, first_best(scores + self.width * bonus)

    def learn(self, user, i, j, y):
        self.history.append((user, i, j, y))
        self.count[user] += 1
        if len(self.history) >= self.due:
            self.train()
            self.due = max(len(self.history) + 1, int(np.ceil(self.growth * len(self.history))))

    def train(self):
        deletes = np.isfinite(self.alpha)
        for i in range(self.u):
            if self.count[i] and (deletes or len(self.component(i)) == 1):
                self.own[i] = self.descend(self.own[i], {i})
        if deletes:
            θ, radius = torch.stack(self.own).numpy(), f(self.count)
            apart = np.sqrt(self.m) * np.linalg.norm(θ[:, None] - θ, axis=2)
            self.edges[apart > self.alpha * (radius[:, None] + radius)] = False
        old, self.nets = self.nets, {}
        for members in {self.component(i) for i in range(self.u)}:
            parent = next(net for key, net in old.items() if members <= key)
            if len(members) == 1:
                self.nets[members] = self.own[next(iter(members))]
            else:
                self.nets[members] = self.descend(parent, members)
            scores = [self.h(self.nets[members], x).item() for x in self.X]
            self.scores[members] = np.array(scores)


NET = dict(m=4, steps=6, rate=0.05, growth=1.5)


@pytest.mark.parametrize("graph", GRAPHS)
def test_networks_choose_as_the_literal_algorithm_with_p_by_p_matrices(graph):
    problem, T = make(1, users=4, d=3, items=8, arms=4, kind=PAGE.SQUARE, scale=8.0), 80
    knobs = dict(width=1.5, alpha=0.35, lam=0.5)
    rng = np.random.default_rng(9)
    θ0 = PAGE.initial_parameters(np.random.default_rng(9), NET["m"], 6)
    state = PAGE.init_neural(
        problem, T, rng, graph=graph, rank=99, precision="float64", **NET, **knobs
    )
    naive = NaiveNeural(problem, graph, θ0, **NET, **knobs)
    play(PAGE.CONDB, state, naive, problem, T)
    assert state.tally[1] > 2
    np.testing.assert_array_equal(state.edges, naive.edges)
    np.testing.assert_allclose(state.θ[: naive.u].numpy(), torch.stack(naive.own), atol=1e-7)
    if graph == "complete":
        assert connected_components(naive.edges)[0] > 1


def test_pool_coordinates_have_the_norms_of_the_full_features():
    rng = np.random.default_rng(0)
    X = PAGE.doubled(rng.standard_normal((9, 3)))
    Φ = PAGE.tangent_features(PAGE.initial_parameters(rng, 4, 6), X, 4)
    Z, kept = PAGE.coordinates(Φ, 9)
    assert kept == pytest.approx(1.0)
    seen = rng.integers(9, size=(30, 2))
    V = RIDGE * np.eye(Φ.shape[1]) + sum(
        np.outer(Φ[a] - Φ[b], Φ[a] - Φ[b]) for a, b in seen
    )  # p × p
    small = RIDGE * np.eye(9) + sum(np.outer(Z[a] - Z[b], Z[a] - Z[b]) for a, b in seen)
    for a in range(9):
        full, low = Φ[a] - Φ[0], Z[a] - Z[0]
        assert full @ np.linalg.solve(V, full) == pytest.approx(low @ np.linalg.solve(small, low))
    assert PAGE.coordinates(Φ, 4)[1] < 1


def test_tangent_features_are_gradients_and_tend_to_the_arc_kernels():
    rng = np.random.default_rng(4)
    x = rng.standard_normal((5, 3))
    X, θ0 = PAGE.doubled(x), PAGE.initial_parameters(rng, 6, 6)
    Φ = PAGE.tangent_features(θ0, X, 6)
    for a, step in ((3, 1e-6), (40, 1e-6)):
        moved = θ0.copy()
        moved[a] += step
        h = [
            PAGE.network(torch.as_tensor(θ)[None], torch.as_tensor(X)[None], 6) for θ in (moved, θ0)
        ]
        slope = (h[0] - h[1])[0].numpy() / step
        np.testing.assert_allclose(slope, np.sqrt(6) * Φ[:, a], atol=1e-5)
    wide = PAGE.tangent_features(PAGE.initial_parameters(rng, 20_000, 6), X, 20_000)
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    np.testing.assert_allclose(wide @ wide.T, PAGE.arc_kernels(unit @ unit.T)[1], atol=0.1)


def test_mirrored_halves_cancel_at_the_start():
    rng = np.random.default_rng(2)
    X = torch.as_tensor(PAGE.doubled(rng.standard_normal((20, 5))))
    θ0 = torch.as_tensor(PAGE.initial_parameters(rng, 10, 10))
    assert PAGE.network(θ0[None], X[None], 10).abs().max() < 1e-12


def test_the_seed_fixes_the_networks_whatever_torch_was_seeded_with():
    def run(torch_seed):
        torch.manual_seed(torch_seed)
        problem, rng = make(kind=PAGE.COSINE), np.random.default_rng(0)
        state = PAGE.init_neural(problem, 60, np.random.default_rng(5), rank=20, **NET)
        for t in range(1, 61):
            user, items, arms = PAGE.BANDITS.draw(problem, t, rng)
            i, j = PAGE.choose_neural(state, t, user, arms, items)
            PAGE.learn_neural(state, t, user, items[i], items[j], float(rng.random() < 0.5))
        return state.θ.numpy()

    np.testing.assert_array_equal(run(1), run(2))


def test_effective_dimension_is_the_sum_over_pairs():
    rng = np.random.default_rng(6)
    Z, shown = rng.standard_normal((7, 3)), rng.integers(7, size=(5, 4))
    H = sum(
        np.outer(Z[row[a]] - Z[row[b]], Z[row[a]] - Z[row[b]])
        for row in shown
        for a in range(4)
        for b in range(a)
    )
    expected = np.log(np.linalg.det(PAGE.KAPPA / 0.3 * H + np.eye(3)))
    assert PAGE.effective_dimension(Z, shown, 0.3) == pytest.approx(expected)


def test_the_printed_threshold_is_the_printed_formula():
    d, u, lam, delta, lt, n, κ = 4, 10, 2.0, 0.1, 0.03, 17.0, PAGE.KAPPA
    printed = np.array(PAGE.printed_radius(d, u, lam, delta, lt))
    top = np.sqrt(lam * κ) + np.sqrt(2 * np.log(u / delta) + d * np.log(1 + 4 * n * κ / (d * lam)))
    assert PAGE.threshold.py_func(printed, n) == pytest.approx(top / (κ * np.sqrt(2 * lt * n)))
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
        (
            lambda: PAGE.exact_mle(np.eye(2), [1, 2], 1.0),
            r"a label is 2, but .* won \(1\) or lost \(0\)",
        ),
        (lambda: PAGE.exact_mle(np.eye(2), [1, -1], 1.0), "a label is -1"),
        (
            lambda: PAGE.initial_parameters(np.random.default_rng(0), 7, 6),
            "width is 7, but .* even",
        ),
        (lambda: PAGE.check_width(0), "width is 0"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(call, words):
    with pytest.raises(BookError, match=words) as error:
        call()
    assert str(error.value).endswith(".") and "\n" not in str(error.value)
