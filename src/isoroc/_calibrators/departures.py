"""Departures: the parameters of a potential, and the priors that hold them at temperature scaling.

Every parameter is a departure from 0, where the gradient of the potential is temperature scaling:
exactly for two classes, except that no forecast is certain; for more classes up to prototypes of a
second level, of weight exp(-4). The prior of each parameter is a normal distribution around 0. All
parameters of one kind share its precision, which is learned by maximal evidence (MacKay, 1992).
"""

from __future__ import annotations

import numpy as np
from scipy.special import comb, expit, logit, softmax

from isoroc._maps.potential import Potential
from isoroc._simplex import Floats

#: Degree of the lattice of prototypes for two classes, an odd number. With binomial weights on the
#: points i / DEGREE, the mean of the prototypes is the logistic function.
DEGREE = 9
#: Softness and log weight of the second level of prototypes, for three classes or more, and the
#: factor of the scale that makes up for it.
SECOND_SOFTNESS, SECOND_WEIGHT, SECOND_SCALE = 0.5, -4.0, 1.05
#: Above so many classes they do not interact and their directions are uniform.
PAIR_CLASSES = 100
#: Precisions that learning starts from. The last ones are multiplied by the number of classes.
PRIOR_TWO = {"scale": 0.5, "softness": 16.0, "level": 16.0}
PRIOR_TWO |= {"bias": 2.0, "prototype_bias": 16.0, "prototype_softness": 16.0}
PRIOR_MORE = {"scale": 0.5, "softness": 0.5, "level": 0.15, "prototype_softness": 2.0}
PRIOR_PER_CLASS = {"bias": 1.0, "prototype_bias": 1.0, "interaction": 0.6, "direction": 0.1}
#: Kinds of one or two parameters keep their precision: there is nothing to learn it from.
FIXED_TWO, FIXED_MORE = {"scale"}, {"scale", "softness", "level"}
#: A learned precision stays within this factor of the one that learning started from.
LEARNING_RANGE = 100.0


class Departures:
    """Parameters theta of a potential of K classes with L levels of prototypes.

    Parameters
    ----------
    n_classes : int
        K.
    total : float
        Total weight of the calibration rows. It bounds how close to a vertex prototypes start.
    inverse_temperature : float
        1 / T of the temperature scaling at theta = 0.

    Attributes
    ----------
    places : dict of slices
        Where the parameters of each kind stand in theta: the logarithm of the scale; for each level
        the log odds of its softness and its log weight; the bias of each class; bias and log odds
        of softness of each prototype; and, from 3 to 100 classes, the interaction of each of
        `pairs` and the log direction of each class towards each other one, the entries `others` of
        a matrix.
    kinds : ndarray of shape (n_parameters,)
        Number of the kind of each parameter.
    precisions : ndarray of shape (number of kinds,)
        Precision of the prior of each kind.
    """

    def __init__(self, n_classes: int, total: float, inverse_temperature: float) -> None:
        K = self.n_classes = n_classes
        if K == 2:
            levels = np.arange((DEGREE + 1) // 2)
            softness = levels / DEGREE
            self.log_weights = np.log(comb(DEGREE, levels))
            self.scale = DEGREE * inverse_temperature
            prior, fixed = PRIOR_TWO, FIXED_TWO
        else:
            softness = np.array([0.0, SECOND_SOFTNESS])
            self.log_weights = np.array([0.0, SECOND_WEIGHT])
            self.scale = SECOND_SCALE * inverse_temperature
            prior = PRIOR_MORE | {kind: K * value for kind, value in PRIOR_PER_CLASS.items()}
            fixed = FIXED_MORE
        self.odds = logit(np.maximum(softness, 1 / (total + 1)))
        L = self.n_levels = len(softness)
        self.pairs = np.triu_indices(K, 1)
        self.others = np.nonzero(~np.eye(K, dtype=bool))
        self.paired = 2 < K <= PAIR_CLASSES
        sizes = {"scale": 1, "softness": L, "level": L, "bias": K}
        sizes |= {"prototype_bias": K * L, "prototype_softness": K * L}
        if self.paired:
            sizes |= {"interaction": len(self.pairs[0]), "direction": len(self.others[0])}
        ends = np.cumsum(list(sizes.values())).tolist()
        self.places = {
            kind: slice(end - size, end)
            for (kind, size), end in zip(sizes.items(), ends, strict=True)
        }
        self.n_parameters = ends[-1]
        self.kinds = np.repeat(np.arange(len(sizes)), list(sizes.values()))
        self._prior = np.array([prior[kind] for kind in sizes])
        self._learned = np.array([kind not in fixed for kind in sizes])
        self.precisions = self._prior.copy()

    def potential(self, theta: Floats) -> Potential:
        """The potential with these parameters."""
        K, L = self.n_classes, self.n_levels
        part = {kind: theta[place] for kind, place in self.places.items()}
        odds = self.odds + part["softness"] + part["prototype_softness"].reshape(K, L)
        biases = self.log_weights + part["level"] + part["prototype_bias"].reshape(K, L)
        directions = interactions = None
        if self.paired:
            interactions = np.zeros((K, K))
            interactions[self.pairs] = part["interaction"]
            interactions += interactions.T
            logs = np.full((K, K), -np.inf)
            logs[self.others] = part["direction"]
            directions = softmax(logs, axis=1)
        elif K == 2:
            directions = np.array([[0.0, 1.0], [1.0, 0.0]])
        return Potential(
            scale=self.scale * float(np.exp(part["scale"][0])),
            softness=expit(odds),
            biases=biases + part["bias"][:, None],
            directions=directions,
            interactions=interactions,
        )

    def precision(self) -> Floats:
        """Precision of the prior of each parameter, shape (n_parameters,)."""
        return self.precisions[self.kinds]

    def learn(self, theta: Floats, variances: Floats) -> float:
        """Set the precisions to those of maximal evidence; return the largest change of a log.

        A parameter counts as far as the data determine it and not the prior: by one minus its
        posterior variance over that of its prior. To each kind one parameter is added that has the
        size which the initial prior expects, so that kinds of few parameters stay near it.
        """
        determined = np.bincount(self.kinds, 1 - self.precision() * variances)
        squares = np.bincount(self.kinds, theta**2)
        learned = (determined + 1) / (squares + 1 / self._prior)
        least, most = self._prior / LEARNING_RANGE, self._prior * LEARNING_RANGE
        learned = np.where(self._learned, np.clip(learned, least, most), self._prior)
        change = np.abs(np.log(learned / self.precisions)).max()
        self.precisions = learned
        return float(change)
