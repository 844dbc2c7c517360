"""Many rows: measures are based on a part of them, and the page says so."""

import numpy as np

from isoroc.report import Report, _summary


def test_rows_are_drawn_and_counted(monkeypatch):
    monkeypatch.setattr(_summary, "MOST_ROWS", 300)
    p = np.random.default_rng(0).random(1000)
    y = np.random.default_rng(1).random(1000) < p
    report = Report(y, p, Q=p, n_resamples=0)
    assert report.summary["data"]["rows"] == 1000
    note = "Measures, diagrams and curves are based on 300 of 1,000 rows, drawn at random."
    assert report.summary["headline"]["notes"][0] == note
    rates = report.summary["reliability"]["panels"][0]["series"]["before"]["rates"]
    assert sum(rates["weight"]) == 300
    assert note in report.to_html()
