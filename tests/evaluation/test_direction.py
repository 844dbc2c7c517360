import numpy as np
import pytest

from isoroc import evaluate


def direction(y, P, **options):
    return evaluate(y, P, **options).directions["before"]


def draw(n=3000, K=3, power=2.0, seed=0):
    """Forecasts that are a power of the truth: above 1, they are overconfident."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.ones(K), n)
    P = truth**power
    y = (rng.random((n, 1)) > truth.cumsum(axis=1)).sum(axis=1)
    return y, P / P.sum(axis=1, keepdims=True)


def test_top_is_confidence_less_accuracy_and_classes_are_shares():
    y, P = draw()
    table = direction(y, P)
    assert table["event"].tolist() == ["top", "0", "1", "2"]
    right = P.argmax(axis=1) == y
    assert table["difference"][0] == pytest.approx(P.max(axis=1).mean() - right.mean())
    assert table["observed"][0] == pytest.approx(right.mean())
    shares = np.bincount(y) / len(y)
    np.testing.assert_allclose(table["difference"][1:], P.mean(axis=0) - shares)
    rows = P.max(axis=1) - right
    half = 1.959964 * rows.std(ddof=1) / np.sqrt(len(y))
    assert table["high"][0] - table["low"][0] == pytest.approx(2 * half)


@pytest.mark.parametrize(("power", "sign"), [(2.0, 1), (0.5, -1)])
def test_the_sign_says_over_or_underconfident(power, sign):
    table = direction(*draw(power=power))
    assert np.sign(table["low"][0]) == np.sign(table["high"][0]) == sign


def test_no_event_among_the_rows_leaves_an_interval():
    table = direction([0] * 50, [0.02] * 50, labels=[0, 1])
    assert table["low"][2] < 0 < table["high"][2]


def test_integer_weights_are_repetitions():
    y, P = draw(200)
    times = 1 + np.arange(len(y)) % 3
    weighted = direction(y, P, sample_weight=times)
    repeated = direction(np.repeat(y, times), np.repeat(P, times, axis=0))
    np.testing.assert_allclose(weighted["difference"], repeated["difference"])


def test_evaluations_say_it_in_a_sentence():
    y, P = draw()
    root = P**0.5
    root /= root.sum(axis=1, keepdims=True)
    result = evaluate(y, P, after=root)
    expected = direction(y, P)
    np.testing.assert_allclose(result.directions["before"]["low"], expected["low"])
    sentence = result.sentences()[1]
    assert sentence.startswith(
        f"Before calibration the forecasts were overconfident by {expected['difference'][0]:.4f}"
    )
    assert "after calibration no direction is clear" in sentence
    assert not any("direction" in text for text in evaluate(y, root).sentences())
    batches = ((y[rows], P[rows]) for rows in np.split(np.arange(len(y)), 4))
    streamed = evaluate.from_batches(batches, labels=[0, 1, 2])
    np.testing.assert_allclose(streamed.directions["before"]["high"], expected["high"])
    assert "overconfident by" in streamed.sentences()[1]
    assert result.to_dict()["directions"]["before"]["event"] == ["top", "0", "1", "2"]
