"""Acceptance rules in SQL and ONNX: the same rows are accepted as in Python."""

import numpy as np
import pytest

from exported import DATABASES, run_onnx
from isoroc import InputError, TemperatureCalibrator
from isoroc.decisions import acceptance_rule

pytest.importorskip("sqlglot")
pytest.importorskip("onnx")

from isoroc._backends.sql import DIALECTS
from isoroc.export import to_onnx, to_sql


def draw(n, K, seed=0):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.full(K, 0.25), n)
    return (rng.random((n, 1)) > P.cumsum(axis=1)[:, :-1]).sum(axis=1), P


def make(K, **options):
    """A calibrator, a rule for its forecasts, and new forecasts. The last one is not valid."""
    y, P = draw(3000, K)
    calibrator = TemperatureCalibrator().fit(P[:500], y[:500])
    rule = acceptance_rule(y[500:], P[500:], max_error=0.08, calibrator=calibrator, **options)
    assert 0 < rule.coverage.value < 1
    _, new = draw(200, K, seed=1)
    new[-1] = np.nan
    return calibrator, rule, new


KINDS = [
    (2, {}),
    (2, {"action": "top"}),
    (2, {"action": "positive"}),
    (2, {"action": "negative"}),
    (3, {}),
    (4, {"by_class": True}),
]


@pytest.mark.parametrize(("K", "options"), KINDS)
@pytest.mark.parametrize("dialect", DATABASES)
def test_databases_accept_the_same_rows(dialect, K, options):
    calibrator, rule, P = make(K, **options)
    columns = [f"p{k}" for k in range(K)]
    query = to_sql(calibrator, columns, dialect=dialect, keep="id", rule=rule)
    rows = sorted(DATABASES[dialect](query, "forecasts", columns, P))
    expected = rule.accept(calibrator.predict_proba(P[:-1]))
    assert [row[-1] for row in rows[:-1]] == (expected * 1.0).tolist()
    assert rows[-1][-1] is None


@pytest.mark.parametrize(("K", "options"), KINDS)
def test_onnx_accepts_the_same_rows(K, options):
    onnxruntime = pytest.importorskip("onnxruntime")
    calibrator, rule, P = make(K, **options)
    model = to_onnx(calibrator, rule=rule)
    names = [output.name for output in model.graph.output]
    assert names == ["calibrated", "accepted"]
    session = onnxruntime.InferenceSession(model.SerializeToString())
    accepted = session.run(["accepted"], {"forecasts": P})[0]
    assert accepted.dtype == bool
    assert accepted[:-1].tolist() == rule.accept(calibrator.predict_proba(P[:-1])).tolist()
    assert not accepted[-1]
    assert run_onnx(model, P).shape == P.shape


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_has_the_column(dialect):
    calibrator, rule, _ = make(4, by_class=True)
    query = to_sql(calibrator, list("abcd"), dialect=dialect, rule=rule)
    assert query.count("accepted") == 1


def test_rules_that_cannot_be_exported():
    calibrator, rule, _ = make(3)
    y, P = draw(2500, 3, seed=2)
    other = TemperatureCalibrator().fit(P, y)
    with pytest.raises(InputError, match="rule: was made with another calibrator"):
        to_onnx(other, rule=rule)
    with pytest.raises(InputError, match="rule: is float; pass what"):
        to_onnx(calibrator, rule=0.9)
    scored = acceptance_rule(y, P, max_error=0.1, score=P[:, 0])
    with pytest.raises(InputError, match="rule: uses scores or segments"):
        to_sql(calibrator, list("abc"), dialect="duckdb", rule=scored)
    with pytest.raises(InputError, match=r"rule: has the classes \[0, 1\]"):
        to_sql(calibrator, list("abc"), dialect="duckdb", rule=make(2)[1])
    with pytest.raises(InputError, match="are the same to many databases"):
        to_sql(calibrator, list("abc"), dialect="duckdb", rule=rule, keep="Accepted")
