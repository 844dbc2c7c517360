import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.metrics import precision_recall_curve, precision_score, recall_score, roc_curve

from isoroc import InputError
from isoroc.decisions import best_threshold, threshold_for


def draw(n=800, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    return rng.random(n) < p, p


def achieved(report):
    return dict(zip(report.table["metric"], report.table["achieved"], strict=True))


def test_precision_has_the_lowest_threshold_that_reaches_it():
    y, p = draw()
    report = threshold_for(y, p, metric="precision", target=0.9)
    precision, _, thresholds = precision_recall_curve(y, p)
    assert float(report) == thresholds[precision[:-1] >= 0.9].min()
    assert achieved(report)["precision"] == precision_score(y, p >= float(report)) >= 0.9


def test_recall_has_the_highest_threshold_that_reaches_it():
    y, p = draw()
    report = threshold_for(y, p, metric="recall", target=0.8)
    _, recall, thresholds = precision_recall_curve(y, p)
    assert float(report) == thresholds[recall[:-1] >= 0.8].max()
    assert achieved(report)["recall"] == recall_score(y, p >= float(report))


def test_false_positives_and_alerts_are_bounded():
    y, p = draw()
    report = threshold_for(y, p, metric="false_positive_rate", target=0.01)
    rate, _, thresholds = roc_curve(y, p, drop_intermediate=False)
    assert float(report) == thresholds[rate <= 0.01].min()
    report = threshold_for(y, p, metric="alerts", target=100, n_rows=4000)
    assert np.count_nonzero(p >= float(report)) == 20
    assert achieved(report)["alerts"] == 100


def test_where_no_row_may_be_acted_on():
    report = threshold_for(*draw(50), metric="alerts", target=0)
    assert float(report) > draw(50)[1].max()
    assert achieved(report)["recall"] == 0


def test_weights_are_rows():
    y, p = draw(300)
    times = 1 + np.arange(len(y)) % 3
    rows = np.repeat(y, times), np.repeat(p, times)
    expected = threshold_for(*rows, metric="precision", target=0.8)
    weighted = threshold_for(y, p, metric="precision", target=0.8, sample_weight=times)
    assert float(weighted) == pytest.approx(float(expected))
    np.testing.assert_allclose(weighted.table["achieved"], expected.table["achieved"])


def test_intervals_narrow_and_hold_what_new_rows_achieve():
    few, many = (
        threshold_for(*draw(n), metric="false_positive_rate", target=0.1) for n in (200, 20_000)
    )
    ends = (many.table[column] for column in ("metric", "low", "high"))
    for name, low, high in zip(*ends, strict=True):
        assert high - low < 0.03
        p = np.linspace(0, 1, 200_001)
        acted = p >= float(many)
        truth = {"alerts": acted.mean(), "recall": p[acted].sum() / p.sum()}
        truth["precision"] = p[acted].mean()
        truth["false_positive_rate"] = (1 - p[acted]).sum() / (1 - p).sum()
        assert low < truth[name] < high
    assert np.ptp(few.table["high"] - few.table["low"]) > 0.03


def test_a_precision_of_one_still_has_an_interval():
    y, p = draw(200)
    report = threshold_for(y, np.where(y, p, p / 2), metric="alerts", target=0.02)
    assert achieved(report)["precision"] == 1
    assert report.table["low"][0] < 0.7


def test_classes_are_chosen_by_label():
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(3), 400)
    y = np.array(["a", "b", "c"])[[rng.choice(3, p=q) for q in P]]
    report = threshold_for(y, P, metric="recall", target=0.7, label="b")
    single = threshold_for(y == "b", P[:, 1], metric="recall", target=0.7)
    assert float(report) == pytest.approx(float(single))
    with pytest.raises(InputError, match="label: expected one of None, 'a', 'b', 'c'; got 'd'"):
        threshold_for(y, P, metric="recall", target=0.7, label="d")


def test_targets_out_of_reach_and_bad_metrics():
    y, p = draw(300)
    with pytest.raises(InputError, match=r"no threshold has precision 0.999; the largest is 0"):
        threshold_for(~y, p, metric="precision", target=0.999, labels=[False, True])
    with pytest.raises(InputError, match=r"target: is 1.5; precision is a share"):
        threshold_for(y, p, metric="precision", target=1.5, n_rows=10)
    with pytest.raises(InputError, match=r"target: is 50; alerts is a share.* pass n_rows="):
        threshold_for(y, p, metric="alerts", target=50)
    with pytest.raises(InputError, match=r"n_rows: is 0; expected"):
        threshold_for(y, p, metric="alerts", target=50, n_rows=0)
    with pytest.raises(InputError, match=r"got 'alert'. Did you mean 'alerts'\?$"):
        threshold_for(y, p, metric="alert", target=0.5)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="metric"):
        threshold_for(y, p, metric="accuracy", target=0.5)  # type: ignore[arg-type]


def test_costs_need_no_rows():
    assert best_threshold([[0, 1], [9, 0]]) == 0.1


def test_intervals_are_those_of_clopper_and_pearson():
    y, p = draw()
    for report in (
        threshold_for(y, p, metric="recall", target=0.8),
        threshold_for(y, p, metric="alerts", target=0),
    ):
        acted = p >= float(report)
        pairs = (y, acted), (acted, y), (acted, ~y), (acted, y | ~y)
        for row, (of, among) in enumerate(pairs):
            if not among.any():
                assert np.isnan([report.table[name][row] for name in ("achieved", "low")]).all()
                continue
            result = binomtest(int(np.count_nonzero(of & among)), int(np.count_nonzero(among)))
            low, high = result.proportion_ci(0.95, method="exact")
            assert report.table["low"][row] == pytest.approx(low)
            assert report.table["high"][row] == pytest.approx(high)
