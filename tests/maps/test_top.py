import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from isoroc._input import Sample
from isoroc._maps.top import TopReduction
from strategies import labelled_forecasts


@given(labelled_forecasts(min_classes=4), st.integers(1, 2))
def test_reduction_and_expansion(data, top):
    P, y, weights = data
    reduction = TopReduction.fit(top, Sample(P, y, weights))
    assert reduction.floor > 0
    reduced = reduction.reduce_sample(Sample(P, y, weights))
    R = reduced.forecasts
    labels = reduced.codes
    np.testing.assert_allclose(R.sum(axis=1), 1)
    for p, r, code, label in zip(P, R, y, labels, strict=True):
        order = sorted(range(len(p)), key=lambda k: (-p[k], k))
        assert r[:top].tolist() == [p[k] for k in order[:top]]
        assert label == min(order.index(code), top)
    # Forecasts that are kept as they are come back as they were, but for the floor.
    back = TopReduction(top, 1e-15).expand(R, P)
    np.testing.assert_allclose(back, P, atol=1e-12)
    Q = reduction.expand(np.full_like(R, 1 / (top + 1)), P)
    np.testing.assert_allclose(Q.sum(axis=1), 1)
    assert (Q > 0).all()


def test_ties_are_broken_by_class_index():
    reduction = TopReduction(1, 0.0)
    P = np.full((1, 4), 0.25)
    both = Sample(P.repeat(2, axis=0), np.array([0, 1], dtype=np.uint8), None)
    assert reduction.reduce_sample(both).codes.tolist() == [0, 1]
    Q = reduction.expand(np.array([[0.4, 0.6]]), P)
    np.testing.assert_allclose(Q, [[0.4, 0.2, 0.2, 0.2]])


def test_the_floor_is_the_likeliest():
    rng = np.random.default_rng(0)
    # The model forecasts 0 for all but three classes. The truth spreads evenly over the others.
    P = np.zeros((4000, 8))
    P[:, :3] = [0.6, 0.3, 0.1]
    y = rng.choice(8, 4000, p=[0.5, 0.1, 0.1, *[0.06] * 5]).astype(np.uint8)
    floor = TopReduction.fit(1, Sample(P, y)).floor
    shares = (np.array([0.3, 0.1, 0, 0, 0, 0, 0]) + floor) / (0.4 + 7 * floor)
    counts = np.bincount(y, minlength=8)[1:]
    for other in (floor * 0.9, floor * 1.1):
        rival = (np.array([0.3, 0.1, 0, 0, 0, 0, 0]) + other) / (0.4 + 7 * other)
        assert (counts * np.log(shares)).sum() > (counts * np.log(rival)).sum()


def test_no_row_beyond_the_top():
    P = np.array([[0.7, 0.2, 0.1], [0.8, 0.1, 0.1]])
    assert TopReduction.fit(1, Sample(P, np.array([0, 0]))).floor > 0
