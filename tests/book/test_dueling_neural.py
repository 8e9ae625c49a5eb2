"""Networks for duels: lazy and trained CONDB against literal ones, kernels, effective dimension."""

import numpy as np
import pytest
import torch

from lib import chapters
from lib.errors import BookError
from lib.graphs import components, unpack
from tests.duels import duel, play

DUELING = chapters.load("dueling")
FAST = chapters.load("dueling/fast")
PAGE = chapters.load("dueling/neural")
TRAINED = chapters.load("dueling/trained")
THEORY = chapters.load("dueling/theory")
WIDE = chapters.load("dueling/theory-networks")
NET = dict(m=4, lam=0.5, width=1.5)


SMALL = dict(users=4, m=2, d=3, items=8, arms=4, kind=DUELING.SQUARE, scale=8.0)


def squares(seed=1):
    return DUELING.make_duel(np.random.default_rng(seed), **SMALL)


def test_trained_networks_choose_as_the_literal_algorithm_that_trains_in_every_round():
    problem, T = squares(), 60
    state = TRAINED.init_trained(
        problem, T + 1, np.random.default_rng(9), alpha=0.5, growth=1.0, rank=99, **NET
    )
    literal = PAGE.init_literal(problem, T, np.random.default_rng(9), alpha=0.5, **NET)
    policy = TRAINED.TRAINED._replace(learn=lambda *given: (TRAINED.learn_trained(*given), train()))
    train = lambda: TRAINED.replan_condb(state, 0)  # noqa: E731
    play(policy, state, PAGE.LITERAL_CONDB, literal, problem, T)
    np.testing.assert_array_equal(unpack(state.graph.edges), literal.edges)
    np.testing.assert_allclose(state.own, literal.own, atol=1e-3)
    assert components(literal.edges).max() > 0


def test_the_lazy_network_is_coldb_on_the_full_gradients():
    problem, T = squares(2), 120
    rng = np.random.default_rng(9)
    Φ = PAGE.tangent_features(PAGE.initial_parameters(rng, 4, 6), PAGE.doubled(problem.pool), 4)
    state = PAGE.init_lazy(
        problem, T, np.random.default_rng(9), m=4, rank=99, growth=1.0, alpha=2.0, width=1.5
    )
    full = problem._replace(pool=Φ, theta=np.zeros((4, Φ.shape[1])))
    literal = DUELING.init_literal(full, T, None, alpha=2.0, width=1.5)
    policy = DUELING.LITERAL_COLDB._replace(
        choose=lambda state, t, user, arms, items: DUELING.choose_literal(
            state, t, user, Φ[items], items
        )
    )
    play(FAST.COLDB, state, policy, literal, problem, T)
    np.testing.assert_array_equal(unpack(state.graph.edges), literal.edges)


def test_pool_coordinates_have_the_norms_of_the_full_features():
    rng, ridge = np.random.default_rng(0), 1.0 / DUELING.KAPPA
    X = PAGE.doubled(rng.standard_normal((9, 3)))
    Φ = PAGE.tangent_features(PAGE.initial_parameters(rng, 4, 6), X, 4)
    Z, kept = PAGE.coordinates(Φ, 9)
    assert kept == pytest.approx(1.0)
    seen = rng.integers(9, size=(30, 2))
    V = ridge * np.eye(Φ.shape[1]) + sum(np.outer(Φ[a] - Φ[b], Φ[a] - Φ[b]) for a, b in seen)
    small = ridge * np.eye(9) + sum(np.outer(Z[a] - Z[b], Z[a] - Z[b]) for a, b in seen)
    for a in range(9):
        full, low = Φ[a] - Φ[0], Z[a] - Z[0]
        assert full @ np.linalg.solve(V, full) == pytest.approx(low @ np.linalg.solve(small, low))
    assert PAGE.coordinates(Φ, 4)[1] < 1
    np.testing.assert_allclose(Z.T @ Z, np.diag((Z**2).sum(axis=0)), atol=1e-9)
    np.testing.assert_allclose(Z.mean(axis=0), 0, atol=1e-9)


@pytest.mark.parametrize("L", [2, 3])
def test_tangent_features_are_gradients(L):
    rng = np.random.default_rng(4)
    X, θ0 = PAGE.doubled(rng.standard_normal((5, 3))), PAGE.initial_parameters(rng, 6, 6, L)
    Φ = PAGE.tangent_features(θ0, X, 6, L)
    for a in (3, len(θ0) - 2):
        moved = θ0.copy()
        moved[a] += 1e-6
        h = [PAGE.network(torch.as_tensor(θ), torch.as_tensor(X), 6, L) for θ in (moved, θ0)]
        np.testing.assert_allclose((h[0] - h[1]).numpy() / 1e-6, np.sqrt(6) * Φ[:, a], atol=1e-5)
    zero = PAGE.network(torch.as_tensor(θ0), torch.as_tensor(X), 6, L)
    assert zero.abs().max() < 1e-12  # mirrored halves cancel


def test_the_kernel_tends_to_its_limit():
    rng = np.random.default_rng(4)
    x = rng.standard_normal((5, 3))
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    θ0 = PAGE.initial_parameters(rng, 20_000, 6)
    wide = PAGE.tangent_features(θ0, PAGE.doubled(x), 20_000)
    np.testing.assert_allclose(wide @ wide.T, WIDE.arc_kernels(unit @ unit.T)[1], atol=0.1)


def test_the_seed_fixes_the_networks_whatever_torch_was_seeded_with():
    def run(torch_seed):
        torch.manual_seed(torch_seed)
        problem, rng = squares(), np.random.default_rng(0)
        state = TRAINED.init_trained(problem, 60, np.random.default_rng(5), rank=20, **NET)
        for t in range(1, 41):
            choose = lambda t, user, arms, items: TRAINED.choose_trained(  # noqa: E731
                state, t, user, arms, items
            )
            TRAINED.learn_trained(state, t, *duel(problem, rng, t, choose))
        TRAINED.replan_condb(state, 40)
        return state.scores

    np.testing.assert_array_equal(run(1), run(2))


def test_training_comes_as_low_as_long_training_with_adam():
    problem, rng = squares(), np.random.default_rng(0)
    state = TRAINED.init_trained(problem, 60, np.random.default_rng(5), rank=20, **NET)
    for t in range(1, 41):
        TRAINED.learn_trained(state, t, *duel(problem, rng, t, lambda *given: (0, 1)))
    rows, history = np.arange(40), state.history
    pair = (torch.as_tensor(each[rows]).long() for each in (history.first, history.second))
    sign = torch.as_tensor(2 * history.won[rows] - 1)
    given = torch.as_tensor(state.inputs), *pair, sign, torch.as_tensor(state.start), 0.5, 4, 2
    θ = torch.as_tensor(state.start.copy()).requires_grad_()
    adam = torch.optim.Adam([θ], lr=0.01)
    for _ in range(1500):
        θ.grad = torch.as_tensor(PAGE.loss_and_gradient(θ.detach().numpy(), *given)[1])
        adam.step()
    long, _ = PAGE.loss_and_gradient(θ.detach().numpy(), *given)
    assert (
        PAGE.loss_and_gradient(TRAINED.train(state, rows), *given)[0] < 1.02 * long
    )  # kinks stop it


def test_batched_estimates_are_the_exact_ones():
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((80, 3)), (rng.random(80) < 0.6).astype(float)
    batched = THEORY.batched_mle(np.zeros((1, 3)), X[None], y[None], 0.7)
    np.testing.assert_allclose(batched[0], DUELING.exact_mle(X, y, 0.7)[0], atol=1e-9)


def test_effective_dimension_is_the_sum_over_pairs():
    rng = np.random.default_rng(6)
    Z, shown = rng.standard_normal((7, 3)), rng.integers(7, size=(5, 4))
    H = sum(
        np.outer(Z[row[a]] - Z[row[b]], Z[row[a]] - Z[row[b]])
        for row in shown
        for a in range(4)
        for b in range(a)
    )
    expected = np.log(np.linalg.det(DUELING.KAPPA / 0.3 * H + np.eye(3)))
    assert WIDE.effective_dimension(Z, shown, 0.3) == pytest.approx(expected)


@pytest.mark.parametrize("m", [7, 0])
def test_a_width_without_halves_is_refused_in_one_sentence(m):
    with pytest.raises(BookError, match=f"width is {m}, but .* even") as error:
        PAGE.check_width(m)
    assert str(error.value).endswith(".") and "\n" not in str(error.value)
