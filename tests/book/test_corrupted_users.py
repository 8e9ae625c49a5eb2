"""The chapter on corrupted users: fast paths against literal ones, and what must be refused."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse.csgraph import connected_components
from sklearn.metrics import roc_auc_score

from lib import chapters, claims
from lib.errors import BookError
from lib.graphs import components, has_bit, unpack
from lib.linear import directions, lambda_tilde, sphere_moments
from lib.simulate import simulate
from lib.tune import with_constants

CUD = chapters.load("corrupted-users")
SCORING = chapters.load("corrupted-users/scores")
TUNING = chapters.load("corrupted-users/tuning")
PROOFS = chapters.load("corrupted-users/proofs")
EXPERIMENTS = chapters.load("corrupted-users/experiments")
RATINGS = chapters.load("corrupted-users/ratings")
THEORY = chapters.load("corrupted-users/theory")
SETTING = dict(users=12, m=3, d=4, items=40, arms=5, noise=0.2, share=0.25, stop=150)
PARAMETERS = dict(beta=0.4, alpha=0.3, alpha1=0.7, slack=0.2)


def make(seed=0, **changes):
    return CUD.make_corrupted(np.random.default_rng(seed), **{**SETTING, **changes})


def play(problem, T, seed=1, **parameters):
    """Run fast and literal side by side; every decision and every graph must agree."""
    rng = np.random.default_rng(seed)
    state = CUD.init_rclub(problem, T, rng, **parameters)
    known = {k: v for k, v in parameters.items() if k != "delta"}
    literal = CUD.init_literal(problem, T, rng, **known)
    for t in range(1, T + 1):
        user, items, arms = CUD.BANDITS.draw(problem, t, rng)
        k = CUD.RCLUB_WCU.choose(state, t, user, arms, items)
        assert k == CUD.choose_literal(literal, t, user, arms, items), f"round {t}"
        mean = arms[k] @ problem.theta[user]
        reward = CUD.feedback(problem, t, user, items[k], mean, rng)
        CUD.learn_rclub(state, t, user, arms[k], reward, items[k])
        CUD.learn_literal(literal, t, user, arms[k].copy(), reward, items[k])
        if t % 50 == 0:
            np.testing.assert_array_equal(unpack(state.edges), literal.edges)
        if t % 70 == 0:  # as a detector looks now and then
            CUD.add_plainly(state, problem.pool)
    CUD.add_plainly(state, problem.pool)
    return state, literal


@pytest.fixture(scope="module")
def played():
    return make(), *play(make(), 500, **PARAMETERS)


def test_every_decision_and_the_graph_equal_the_literal_algorithm(played):
    _, state, literal = played
    np.testing.assert_array_equal(unpack(state.edges), literal.edges)
    assert 1 < connected_components(literal.edges)[0] == (state.size > 0).sum()
    for i in range(12):
        _, theta, rounds = CUD.CLUBS.pooled(literal.sums, [i], 1.0)
        np.testing.assert_allclose(state.ridge.theta[i], theta, atol=1e-9)
        assert state.ridge.count[i] == rounds
    assert 0 < state.lowered.sum() < 500  # weights are on, and some are one


def test_the_log_gives_the_plain_sums_back(played):
    problem, state, _ = played
    X = problem.pool[state.what]
    for i in range(12):
        mine = state.who == i
        np.testing.assert_allclose(X[mine].T @ X[mine], state.plain_M[i], atol=1e-9)
        np.testing.assert_allclose(X[mine].T @ state.said[mine], state.plain_b[i], atol=1e-9)
        np.testing.assert_allclose((state.said[mine] ** 2).sum(), state.square[i])


def test_equality_deletes_an_edge():
    """Two users without rounds have estimates that are equal: at a threshold of 0 ≥ deletes."""
    problem = make(users=3, m=1, d=3, noise=0.0, share=0.0)
    state = CUD.init_rclub(problem, 5, np.random.default_rng(0), alpha1=0.0)
    assert CUD.prune(state, 0, 0) == 2
    club = CUD.CLUBS.init_club(problem, 5, np.random.default_rng(0), alpha=0.0)
    assert CUD.CLUBS.prune(club, 0) == 0


def test_weights_that_are_all_one_make_the_method_club():
    problem = make()
    for alpha, same in ((1.0, True), (0.3, False)):
        rng = np.random.default_rng(4)
        robust = CUD.init_rclub(problem, 400, rng, beta=0.4, alpha=alpha, alpha1=0.7)
        club = CUD.CLUBS.init_club(problem, 400, rng, beta=0.4, alpha=0.7)
        for t in range(1, 401):
            user, items, arms = CUD.BANDITS.draw(problem, t, rng)
            k = CUD.CLUBS.choose_clustered(robust, t, user, arms, items)
            reward = CUD.feedback(problem, t, user, items[k], arms[k] @ problem.theta[user], rng)
            CUD.learn_rclub(robust, t, user, arms[k], reward, items[k])
            CUD.CLUBS.learn_club(club, t, user, arms[k], reward, items[k])
        assert (robust.lowered.sum() == 0) == same
        assert np.array_equal(robust.ridge.theta, club.ridge.theta) == same


def test_scores_equal_the_literal_test(played):
    problem, state, _ = played
    cluster = components(unpack(state.edges))
    sides = np.array([
        SCORING.literal_occud(state, i, np.flatnonzero(cluster == cluster[i]), 4, slack=0.2)
        for i in range(12)
    ])  # fmt: skip
    found = SCORING.all_scores(state, problem.pool, 0.25)
    np.testing.assert_allclose(found["occud"][0], sides[:, 0] / sides[:, 1], atol=1e-8)
    np.testing.assert_array_equal(found["occud"][1], sides[:, 0] > sides[:, 1])
    X = problem.pool[state.what]
    for i in range(12):
        x, r = X[state.who == i], state.said[state.who == i]
        hat = x @ np.linalg.inv(np.eye(4) + x.T @ x) @ x.T
        variance = ((r - hat @ r) ** 2).sum() / max(len(r) - np.trace(hat), 0.5)
        assert found["own"][0][i] == pytest.approx(variance, rel=1e-7)


def test_reading_again_equals_the_definition(played):
    problem, state, _ = played
    plain = SCORING.plain_estimates(state)
    found = SCORING.reread(state, problem.pool, plain, 0.04)
    for i in range(12):
        mine = state.who == i
        x, r = problem.pool[state.what[mine]], state.said[mine]
        leverage = np.diag(x @ np.linalg.inv(np.eye(4) + x.T @ x) @ x.T)
        z = (r - x @ plain[i]) / (0.2 * np.sqrt(np.maximum(1 - leverage, 0.05)))
        best = max(
            (sign * z[a:b] - 0.5).sum()
            for sign in (-1, 1)
            for a in range(len(z))
            for b in range(a + 1, len(z) + 1)
        )
        assert found[i] * np.log(2 * len(z) / 0.05) == pytest.approx(max(best, 0.0))


def test_pages_line_holds_for_honest_noise_and_lies_stay_visible():
    rng, n = np.random.default_rng(0), 400
    line = np.log(2 * n / SCORING.LEVEL)
    honest = [SCORING.page_statistic(rng.standard_normal(n)) > line for _ in range(1000)]
    assert np.mean(honest) <= SCORING.LEVEL
    for after in (0, 1000, 100_000):  # rounds of truth behind twenty lies change nothing
        z = rng.standard_normal(20 + after)
        z[:20] -= 2.5
        assert SCORING.page_statistic(z) > np.log(2 * len(z) / SCORING.LEVEL)


def test_the_printed_test_fires_when_lies_never_stop():
    problem = make(stop=10**9, d=3, m=1, users=6, arms=2, noise=0.05, share=1 / 6)
    state, _ = play(problem, 1500, beta=0.5, alpha=0.1, alpha1=9.0, delta=0.5)
    flagged = SCORING.all_scores(state, problem.pool, 1 / 6)["occud"][1]
    np.testing.assert_array_equal(flagged, problem.corrupted)


def test_gcud_takes_its_share_of_every_component(played):
    problem, state, _ = played
    score, _ = SCORING.all_scores(state, problem.pool, 0.5)["gcud"]
    flagged = SCORING.gcud_set(score, state.cluster, 0.5)
    for V in np.unique(state.cluster):
        members = state.cluster == V
        assert flagged[members].sum() == round(0.5 * members.sum())
        if flagged[members].any() and not flagged[members].all():
            assert score[members & flagged].min() >= score[members & ~flagged].max()


def test_auc_and_recall_at_a_level():
    rng = np.random.default_rng(3)
    score, corrupted = rng.integers(0, 20, 300).astype(float), rng.random(300) < 0.3
    auc, recall = SCORING.quality(score, corrupted)
    assert auc == pytest.approx(roc_auc_score(corrupted, score))
    cuts = [c for c in score if (score[~corrupted] > c).mean() <= SCORING.LEVEL]
    assert recall == (score[corrupted] > min(cuts)).mean()


def test_known_clusters_stay_as_they_are():
    problem = make()
    state = CUD.init_rclub(problem, 10, np.random.default_rng(0), known=True)
    same = problem.label[:, None] == problem.label
    np.testing.assert_array_equal(unpack(state.edges), same & ~np.eye(12, dtype=bool))
    assert state.alpha == np.inf


def test_only_corrupted_users_flip_and_only_then():
    problem = make(start=10, stop=20, noise=0.0)
    rng = np.random.default_rng(0)
    for user in range(12):
        for t in (10, 11, 20, 21):
            reward = CUD.feedback(problem, t, user, 0, 0.7, rng)
            lies = problem.corrupted[user] and 10 < t <= 20
            assert reward == (-0.7 if lies else 0.7)
    draws = [CUD.feedback(make(binary=True), 999, 0, 0, 0.7, rng) for _ in range(2000)]
    assert set(draws) == {0.0, 1.0} and abs(np.mean(draws) - 0.7) < 0.05


def test_a_part_of_the_users_keeps_the_share_of_liars():
    corrupted = np.arange(100) < 10
    kept = CUD.pick(np.random.default_rng(0), corrupted, 30)
    assert len(set(kept)) == 30 and corrupted[kept].sum() == 3
    rare = CUD.pick(np.random.default_rng(0), np.arange(100) < 1, 20)
    assert (rare < 1).sum() == 1  # the AUC needs one of each
    assert len(CUD.pick(np.random.default_rng(0), np.ones(10, dtype=bool), 4)) == 4


def test_a_lie_never_counts_more_than_alpha():
    rng = np.random.default_rng(5)
    for alpha in (0.05, 0.5, 2.0):
        X, out = directions(rng, 200, 3), np.empty((200, 2))
        M = CUD.influences(X, alpha, 1.0, out)
        np.testing.assert_allclose(M, np.eye(3) + (X.T * out[:, 0]) @ X)
        assert out[:, 1].max() <= alpha + 1e-12
        lies = out[:, 0] * rng.choice([-1, 1], 200)
        term = X.T @ lies
        assert np.sqrt(term @ np.linalg.solve(M, term)) <= alpha * 200 + 1e-9


def test_constants_of_the_theory():
    assert lambda_tilde(1.0, 1e-9, 5) == pytest.approx(1.0, abs=1e-3)
    one, two = (lambda_tilde(*sphere_moments(3), K) for K in (1, 2))
    assert 0 < two < one < 1 / 3
    problem = make()
    alpha, slack, _ = CUD.theory(problem, 1000, 1.0, 0.05)
    assert problem.budget == 2 * 150 * 0.25
    assert alpha * problem.budget == pytest.approx(slack) == 3.0
    assert CUD.theory(make(share=0.0), 1000, 1.0, 0.05)[0] == np.inf


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((10, 100, 1.2), r"share is 1.2, but .* \[0, 1\]"),
        ((10, 100, -0.1), r"share is -0.1"),
        ((101, 100), "between 0 and T = 100"),
    ],
)
def test_impossible_corruption_is_refused(arguments, words):
    with pytest.raises(BookError, match=words):
        CUD.check_corruption(*arguments)


def test_impossible_users_are_refused():
    with pytest.raises(BookError, match="clusters is 9, but must be from 1 to users = 5"):
        CUD.check_users(5, 9, 100, 10)
    with pytest.raises(BookError, match="arms is 1, but must be from 2 to items = 100"):
        CUD.check_users(5, 2, 100, 1)


def test_what_is_judged_as_robust_has_weights_on():
    names = list(TUNING.METHODS)
    rows = [
        dict(policy=name, point=point, trial=trial, regret=regret, lowered=lowered)
        for name in names
        for point, regret, lowered in ((0, 1.0, 0.0), (1, 2.0, 0.3), (2, 3.0, 0.9))
        for trial in range(3)
    ]
    table = TUNING.marked(pd.DataFrame(rows))
    best = table[table["best"]].groupby("policy")["point"].first()
    judged = table[table["judged"]].groupby("policy")["point"].first()
    assert (best == 0).all()
    assert {name for name in names if judged[name] == 1} == {"CW-OFUL", "CW-OFUL-Ind", "RCLUB-WCU"}


def test_fewer_users_keep_their_rounds():
    setting = dict(users=1000, m=10, stop=20_000)
    smaller = TUNING.fewer_users(setting, 0.2)
    assert smaller == dict(users=200, m=4, stop=4000)


def test_labels_must_match_the_users():
    labels = pd.Series({"a": True, "b": False})
    np.testing.assert_array_equal(RATINGS.match_labels(["b", "a"], labels), [False, True])
    with pytest.raises(BookError, match=r"lack 1 of 2 users .*'c'"):
        RATINGS.match_labels(["a", "c"], labels)


def test_labels_of_the_datasets():
    yelp = pd.DataFrame({"user": [1, 1, 2], "label": [-1, 1, 1]})
    assert RATINGS.liars_of("yelp-zip", yelp).to_dict() == {1: True, 2: False}
    amazon = pd.DataFrame({"user": list("aabc"), "helpful": [0, 9, 4, 0], "total": [5, 9, 4, 0]})
    found = RATINGS.liars_of("amazon-musical-instruments", amazon)
    assert found.to_dict() == {"a": True, "b": False, "c": False}  # the first review decides
    assert RATINGS.liars_of("ml-1m", yelp) is None


def test_users_are_selected_in_the_printed_proportion():
    """Liars rate less than others, and are as many as asked for all the same."""
    rng = np.random.default_rng(0)
    rows = [(u, i) for u in range(200) for i in rng.choice(50, 20 if u >= 100 else 5, False)]
    ratings = pd.DataFrame(rows, columns=["user", "item"])
    liars = pd.Series({u: u < 100 for u in range(200)})
    chosen = RATINGS.in_proportion(ratings, liars, users=60, items=30, share=0.3)["user"].unique()
    assert len(chosen) == 60 and liars[chosen].sum() == 18
    few = RATINGS.in_proportion(ratings, liars & (liars.index < 5), 60, 30, 0.3)["user"].unique()
    assert len(few) == 60 and (few < 5).sum() == 5


def test_the_printed_potential_lemma_fails_on_the_line():
    sides = PROOFS.potential(0.01, 10_000)
    assert sides["printed"] == pytest.approx(2 / 0.01, rel=0.05)  # the closed form of the page
    assert sides["mended"] <= sides["bound"] < sides["printed"]
    plain = PROOFS.potential(1.0, 1000)  # weights all one: the harmonic sum
    assert plain["printed"] == plain["mended"] == pytest.approx((1 / np.arange(1, 1001)).sum())


def test_the_sufficient_time_by_hand():
    found = THEORY.sufficient_time(6, 1, 2, 2.0, 0.25, 8.0, 0.05)
    need = max(288 * np.log(120), 16 * np.log(160), 72.0, 72 * 0.25**2 * 64)
    assert found == pytest.approx(96 * np.log(120) + 24 * need)


def test_the_good_arm_is_hidden_until_the_budget_is_spent():
    problem = THEORY.make_hidden(np.random.default_rng(0), 4, 3.0, 0.0)
    good, rng = int(problem.theta[0].argmax()), np.random.default_rng(1)
    said = [THEORY.feedback_hidden(problem, t, 0, good, 1.0, rng) for t in range(1, 6)]
    assert said == [0.0, 0.0, 0.0, 1.0, 1.0] and problem.spent[0] == 3.0


def test_the_controls_of_the_audit_fail():
    """Without weights the corruption term leaves its bound; with weights it never does."""
    rng = np.random.default_rng(0)
    found = PROOFS.audited(rng, 2, 2, 3, 300, alpha=0.05, budget=100.0, lam=1.0, delta=0.05)
    assert found["lies"] <= 1 + 1e-9 < found["lies_plain"]
    assert found["weight"] >= 1 - 1e-9
    assert found["matched"] <= 1 < found["mixed"]


def test_the_second_round_of_the_search_has_as_many_points_for_every_method():
    own = {"point": 0, "origin": "search", "radius": 0.2, "threshold": 1.5, "regret": 5.0}
    inner = {**own, "point": 1, "origin": "LinUCB-Ind", "threshold": -1.0, "regret": 4.0}
    rows = [{"policy": name, **each} for name in TUNING.METHODS for each in (own, inner)]
    of = TUNING.second_round(pd.DataFrame(rows), weights=(0.1, 0.5), parts=(1, 1 / 3))
    assert list(of) == list(TUNING.METHODS)
    assert {len(mine) for mine in of.values()} == {4}
    assert [c["radius"] for c in of["LinUCB"]] == [0.06667, 0.1387, 0.2884, 0.6]  # a factor of 3
    assert all(0.5 <= c["threshold"] <= 4.5 for c in of["CLUB"])
    tried = [(c["radius"], c["threshold"], c["weight"]) for c in of["RCLUB-WCU"]]
    assert tried == [(r, 1.5, w) for r in (0.2, 0.06667) for w in (0.1, 0.5)]


def test_the_final_has_as_many_points_for_every_method_and_what_it_contains():
    small = dict(users=30, m=2, d=3, items=40, arms=4, noise=0.1, stop=30)
    search = TUNING.searched(small, 300, 5, "search", evaluations=4, part=0.4, extensions=0)
    points = TUNING.finalists(search)
    assert set(points.groupby("policy").size()) == {TUNING.PLACES}
    assert not points["origin"].isin(TUNING.METHODS).any()
    table = TUNING.final(search, small, 300, 5, "final")
    best = table[table["best"]].groupby("policy")["regret"].mean()
    assert best["CLUB"] <= best["LinUCB-Ind"] and best["SCLUB"] <= best["LinUCB"]
    assert best["RCLUB-WCU"] <= min(best["CLUB"], best["CW-OFUL-Ind"])
    judged = table[table["judged"]].groupby("policy")
    assert set(judged.size()) == {2}  # one point, two trials
    assert table.groupby(["policy", "point"])["regret"].nunique().max() <= 2
    weighs = ["CW-OFUL", "CW-OFUL-Ind", "RCLUB-WCU"]
    assert (judged["lowered"].mean()[weighs] >= TUNING.WEIGHTS_ON).all()
    policies = TUNING.tuned_policies(table)
    alone = simulate(CUD.CORRUPTED, policies, T=300, trials=2, settings=[small], seed=5,
                     stream="tune", checkpoints=1)  # fmt: skip
    again = alone.groupby("policy")["regret"].mean()
    np.testing.assert_allclose(again, judged["regret"].mean()[again.index], rtol=1e-12)


def test_one_cluster_for_all_and_one_for_each_are_none():
    def table(*path):
        return pd.DataFrame({"policy": "RCLUB-WCU", "t": range(len(path)), "clusters": path})

    assert EXPERIMENTS.with_clusters(table(1, 4, 12), 12) == {"clustered": True, "note": ""}
    for path, how in (((12, 12), "apart"), ((9, 12), "apart"), ((1, 1), "together")):
        said = EXPERIMENTS.with_clusters(table(*path), 12)
        assert not said["clustered"]
        assert said["note"] == f"RCLUB-WCU never clustered: it kept everybody {how}."


@pytest.mark.parametrize("data", ["syn", "ml", "amz", "yelp"])
def test_without_clusters_a_ratio_of_one_decides_nothing(data):
    claim = claims.find(f"cud-{data}-rclubwcu-best")
    facts = {"best_reading": 1.0, "clustered": False}
    for ratio in (0.9, 1.0, 1.1):
        assert claims.at_point(claim, "advantage", ratio, facts) == "vacuous at this scale"
    facts["clustered"] = True
    assert claims.at_point(claim, "advantage", 0.9, facts) == "reproduced"


def test_a_guarantee_about_flagged_users_needs_flagged_users():
    claim = claims.find("cud-occud-precision")
    facts = {"delta": 0.05, "flagged": 0}
    assert claims.at_point(claim, "", 0.0, facts) == "vacuous at this scale"
    facts["flagged"] = 20
    assert claims.at_point(claim, "", 0.0, facts) == "reproduced"
    assert claims.at_point(claim, "", 0.3, facts) == "refuted"


def test_a_blind_twin_deletes_the_edge_of_whoever_stands_before_the_refuted_one():
    problem = make(users=4, m=1, d=3, noise=0.0, share=0.0)
    state = CUD.init_rclub(problem, 5, np.random.default_rng(0), alpha1=1.0)
    state.ridge.theta[2] = 9.0  # far from everybody
    state.ridge.radius[:4] = 0.5
    seeing = state._replace(edges=state.edges.copy())
    assert CUD.prune(seeing, 0, 0) == CUD.prune(state, 0, 1) == 1
    assert [has_bit(seeing.edges[0], j) for j in range(1, 4)] == [True, False, True]
    assert [has_bit(state.edges[0], j) for j in range(1, 4)] == [False, True, True]


def test_a_beginning_is_what_the_whole_run_begins_with():
    small = dict(users=12, m=2, d=4, items=60, arms=6, noise=0.1, stop=60)
    policy = {"RCLUB-WCU": with_constants(CUD.RCLUB_WCU, alpha1=0.3, beta=0.2)}
    run = dict(trials=2, seed=5, settings=[small])
    whole = simulate(CUD.CORRUPTED, policy, T=400, checkpoints=4, **run)
    begun = simulate(CUD.CORRUPTED, policy, T=100, checkpoints=1, **run)
    first = whole[whole["t"] == 100]
    np.testing.assert_array_equal(begun["regret"], first["regret"])
    np.testing.assert_array_equal(begun["clusters"], first["clusters"])


def test_a_method_with_the_regrets_of_one_that_it_contains_is_that_one():
    found = pd.DataFrame({"RCLUB-WCU": [1.0, 2.0], "CLUB": [1.0, 3.0], "CW-OFUL-Ind": [1.0, 2.0]})
    says = chapters.load("corrupted-users/ratings").by_another_name
    assert says(found, "RCLUB-WCU") == "The constants of RCLUB-WCU make it CW-OFUL-Ind."
    assert says(found.assign(**{"CW-OFUL-Ind": [1.0, 2.1]}), "RCLUB-WCU") == ""
