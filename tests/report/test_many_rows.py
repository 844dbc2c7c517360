"""Many rows and counts: part of the figures is based on some of the rows, and the page says so."""

import numpy as np
import pytest

from isoroc import Counts, InputError, IRPCalibrator, Report, TemperatureCalibrator


def overconfident(n, K):
    rng = np.random.default_rng(0)
    truth = rng.dirichlet(np.ones(K), n)
    y = (truth.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    P = truth**2
    return P / P.sum(axis=1, keepdims=True), y


def rows_of(report):
    return {row["measure"]: row for row in report.summary["headline"]["rows"]}


def test_rows_are_drawn(monkeypatch):
    monkeypatch.setattr("isoroc._evaluation.measures.most_rows.__defaults__", (600, 100))
    P, y = overconfident(1000, 2)
    report = Report(y, P, after=P)
    assert report.summary["data"]["rows"] == 1000
    note = (
        "Calibration errors and ranking are based on 300 of 1,000 rows, drawn at random; losses "
        "and decisions on all rows."
    )
    assert note in report.summary["headline"]["notes"]
    rates = report.summary["reliability"]["panels"][0]["series"]["before"]["rates"]
    assert sum(rates["weight"]) == 300
    assert note in report.to_html()
    found = rows_of(report)
    assert found["accuracy"]["before"]["value"] == np.mean(P.argmax(axis=1) == y)


@pytest.mark.parametrize("K", [2, 3])
def test_exact_counts_give_the_report_of_the_rows(K):
    P, y = overconfident(400, K)
    P = np.repeat(P[:200], 2, axis=0)
    calibrator = IRPCalibrator(random_state=0, max_bins=6).fit(P, y)
    counts = Counts.from_arrays(P, y, resolution="exact")
    counted = Report.from_counts(counts, calibrator=calibrator)
    order = np.lexsort((y, *P.T))
    of_rows = Report(y[order], P[order], calibrator=calibrator)
    for measure, row in rows_of(of_rows).items():
        for of in {"before", "after", "change"} & set(row):
            expected = row[of]
            # Cross-fitting depends on the order of rows.
            random = "calibration" in measure or measure == "refinement_loss"
            for key in ("value", "low", "high"):
                if expected[key] is not None and not random:
                    found = rows_of(counted)[measure][of][key]
                    assert found == pytest.approx(expected[key], abs=1e-9)
    assert counted.summary["data"]["rows"] == 400
    assert not counted.summary["data"]["weighted"]
    assert counted.summary["roc"]["curves"] == of_rows.summary["roc"]["curves"]
    assert "fitted to these very rows" in repr(counted)
    assert "The rows were counted" in counted.to_html()


def test_weighted_counts_have_intervals_of_their_rows():
    P, y = overconfident(300, 2)
    counts = Counts.from_arrays(P, y)
    plain, decayed = (rows_of(Report.from_counts(each)) for each in (counts, counts.decay(0.25)))
    for key in ("value", "low", "high"):
        found = decayed["log_loss"]["before"][key]
        assert found == pytest.approx(plain["log_loss"]["before"][key])


def test_counts_must_fit_the_calibrator():
    P, y = overconfident(200, 3)
    counts = Counts.from_arrays(P, np.array(["a", "b", "c"])[y])
    calibrator = TemperatureCalibrator()
    with pytest.raises(InputError, match="not the classes of the counts"):
        Report.from_counts(counts, calibrator=calibrator.fit(P, y))
    with pytest.raises(InputError, match="takes logit forecasts"):
        Report.from_counts(
            Counts.from_arrays(P[:, 1], y > 0),
            calibrator=IRPCalibrator().fit(np.log(P[:, 1]), y > 0),
        )
    with pytest.raises(InputError, match=r"expected isoroc\.Counts"):
        Report.from_counts(P)
