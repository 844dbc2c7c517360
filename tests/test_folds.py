import numpy as np

from isoroc._folds import deal_folds


def test_folds_spread_every_class():
    codes = np.repeat([0, 1, 2], [50, 7, 3]).astype(np.uint8)
    fold = deal_folds(len(codes), 5, np.random.RandomState(0), codes)
    for k in range(3):
        counts = np.bincount(fold[codes == k], minlength=5)
        assert counts.max() - counts.min() <= 1
    assert deal_folds(3, 5, np.random.RandomState(0), codes[:3]).max() == 2
