import numpy as np

from isoroc._input import deal_folds


def test_folds_are_of_equal_size():
    fold = deal_folds(52, 5, np.random.RandomState(0))
    assert sorted(np.bincount(fold).tolist()) == [10, 10, 10, 11, 11]
    assert fold.tolist() != sorted(fold.tolist())
    assert sorted(deal_folds(3, 5, np.random.RandomState(0)).tolist()) == [0, 1, 2]
