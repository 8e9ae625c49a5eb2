"""Levels: tables and views are the environments', critics are the chapter's, learners learn."""

import numpy as np
import pytest

from lib import chapters, claims, measure

torch = pytest.importorskip("torch")
ZSG = chapters.load("zero-shot")
GENERATORS = chapters.load("zero-shot/generators")
PAGE = chapters.load("zero-shot/levels")
MAPS = chapters.load("zero-shot/maps")


@pytest.fixture(scope="module")
def lake_data():
    pytest.importorskip("gymnasium")
    torch.set_num_threads(1)
    train = GENERATORS.lakes(GENERATORS.lake_walls(6))
    logs = GENERATORS.record(np.random.default_rng(0), train, 20, "mixed")
    return PAGE.Data(train, logs, PAGE.as_steps(train, logs))


def test_lakes_are_gymnasiums():
    gymnasium = pytest.importorskip("gymnasium")
    holes = GENERATORS.lake_walls(4)
    assert len({x.tobytes() for x in holes}) == 4
    levels, S = GENERATORS.lakes(holes), 36
    full = MAPS.as_maps(levels, holes).P
    for k, squares in enumerate(holes):
        rows = ["".join("H" if x else "F" for x in row) for row in squares]
        rows[0], rows[-1] = "S" + rows[0][1:], rows[-1][:-1] + "G"
        table = gymnasium.make("FrozenLake-v1", desc=rows, success_rate=0.8).unwrapped.P
        P = np.zeros((S, 4, S))
        for s in range(S):
            for a in range(4):
                for p, after, _, _ in table[s][a]:
                    P[s, a, after] += p
        np.testing.assert_allclose(full[k], P, atol=1e-12)


def test_rooms_move_and_look_like_minigrid():
    pytest.importorskip("minigrid")
    from minigrid.core.world_object import Wall
    from minigrid.envs import CrossingEnv

    walls = GENERATORS.room_walls(1)
    levels, side = GENERATORS.rooms(walls), 7
    env = CrossingEnv(size=9, num_crossings=3, obstacle_type=Wall, max_steps=10**6)
    env.reset(seed=0)
    env.see_through_walls = True
    for s in range(side * side * 4):
        y, x, way = np.unravel_index(s, (side, side, 4))
        if walls[0, y, x] or (y, x) == (side - 1, side - 1):
            continue
        env.agent_pos, env.agent_dir = (x + 1, y + 1), int(way)
        seen = env.gen_obs()["image"][:, :, 0].T
        view = levels.view[0, s, :98].reshape(7, 7, 2)
        assert (view[..., 0] == (seen == 2)).all() and (view[..., 1] == (seen == 8)).all()
        assert (levels.view[0, s, 98:] == (np.arange(4) == way)).all()
        for a in range(3):
            env.agent_pos, env.agent_dir = (x + 1, y + 1), int(way)
            env.step(a)
            square = (env.agent_pos[1] - 1) * side + env.agent_pos[0] - 1
            assert levels.after[0, s, a, 0] == square * 4 + env.agent_dir


def test_reaching_the_goal_pays_what_minigrid_pays():
    pytest.importorskip("minigrid")
    from minigrid.core.world_object import Wall
    from minigrid.envs import CrossingEnv

    levels = GENERATORS.rooms(GENERATORS.room_walls(1))
    best, state, H = GENERATORS.experts(levels)[0], 0, len(levels.pay)
    env = CrossingEnv(size=9, num_crossings=3, obstacle_type=Wall, max_steps=H)
    env.reset(seed=0)
    for _ in range(H):
        _, reward, done, _, _ = env.step(int(best[state]))
        state = levels.after[0, state, best[state], 0]
        if done:
            break
    assert done and reward == pytest.approx(levels.pay[env.step_count - 1])
    assert GENERATORS.returns(levels, np.eye(3)[best[None]])[0] == pytest.approx(reward)


def test_no_layout_is_in_two_pools():
    pytest.importorskip("gymnasium")
    squares = PAGE.level_pools(np.random.default_rng(0), "lakes")["squares"].reshape(-1, 36)
    assert len(np.unique(squares[: PAGE.SHIFTED], axis=0)) == PAGE.SHIFTED


def test_logs_are_what_they_say(lake_data):
    levels, logs, steps = lake_data
    assert (levels.after[logs.level, logs.s, logs.a, logs.slot] == logs.after).all()
    assert not levels.over[logs.level, logs.s].any()
    assert (steps.r.numpy() == levels.goal[logs.after]).all()
    share = (logs.a == GENERATORS.experts(levels)[logs.level, logs.s]).mean()
    assert 0.4 < share < 0.95


def test_critics_are_the_chapters(lake_data):
    levels, logs, _ = lake_data
    critic = PAGE.critics(levels, logs, 0.02)
    L, S, A, _ = levels.after.shape
    H, rng = len(levels.pay), np.random.default_rng(1)
    P = np.zeros((L, S, A, S))
    np.add.at(P, (logs.level, logs.s, logs.a, logs.after), 1)
    N = P.sum(-1)
    P /= np.maximum(N, 1)[..., None]
    width = 0.02 * np.sqrt(np.log(2 * S * A * L * H / 0.05) / (2 * np.maximum(N, 1)))
    Γ = np.where(N > 0, np.minimum(width, 1), 2)
    every = [
        np.repeat(x[:, None], H, axis=1)
        for x in (P[..., -1] * (np.arange(S) < S - 1)[:, None], P, Γ)
    ]
    π = rng.dirichlet(np.ones(A), (L, S))
    V, Q = PAGE.evaluate(critic, levels.pay, torch.tensor(π, dtype=torch.float32))
    steps = np.repeat(π[:, None], H, axis=1)
    for i in range(2):
        literal = ZSG.literal_ppe(ZSG.Estimate(*every), i, steps[i])
        np.testing.assert_allclose(V[i], literal[0][0, 0], atol=1e-5)
        np.testing.assert_allclose(Q[3][i], literal[1][3], atol=1e-5)


def test_estimated_visits_are_probabilities(lake_data):
    critic = PAGE.critics(lake_data.levels, lake_data.logs, 0.0)
    π = torch.full(critic.enter.shape, 0.25)
    visits = torch.stack(list(PAGE.visits_of(critic, lake_data.levels.pay, π)))[..., 0]
    assert (visits >= 0).all() and (visits.sum(-1) <= 1 + 1e-5).all() and visits[0, :, 0].min() == 1


def test_linked_policies_follow_the_keenest():
    both = torch.tensor([[[0.9, 0.1]], [[0.3, 0.7]]])
    np.testing.assert_allclose(PAGE.linked(both)[0], [0.9 / 1.6, 0.7 / 1.6], atol=1e-6)


@pytest.mark.parametrize(
    "method", ["BC", "CQL", "IQL", "PEVI (distilled)", "LEEP", "PERM", "PPPO", "PPPO (mended)"]
)
def test_learners_beat_chance_on_their_own_levels(lake_data, method):
    rng = np.random.default_rng(0)
    found = PAGE.learned(rng, lake_data, method, 160, own=2.0, b=0.002)
    mine = np.mean([PAGE.play(group, lake_data.levels, True) for group in found])
    shape = lake_data.levels.after.shape[:3]
    assert mine > 5 * GENERATORS.returns(lake_data.levels, np.full(shape, 0.25)).mean()


def test_chance_fails_the_rules_of_the_deep_experiment():
    """The controls of both rules must not pass them."""
    claim = claims.find("zsg-largescale-experiments")
    lost = measure.mean(np.array([-0.3, -0.31, -0.29]))
    assert claims.decide(claim, "advantage", lost, {"share": 0.0}) == "not reproduced"
    claim = claims.find("lev-offline-below-cloning")
    home = measure.mean(np.array([0.2, 0.21, 0.19]))
    assert claims.decide(claim, "reconstruction", home, {"trained": 1.0}) != "reproduced"
