"""CalibrationMap: what a fitted calibrator does with forecasts, whatever it learned it from."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from isoroc._input import check_forecasts
from isoroc._maps import written
from isoroc._maps.logs import LogForecasts
from isoroc._persistence import Fault
from isoroc._persistence.states import Check
from isoroc._simplex import Floats
from isoroc._threads import one_blas_thread
from isoroc._writer import C, Writer

#: Forecasts of so many numbers are calibrated without limiting the threads of BLAS: their products
#: are too small to wake any, and setting the limit would take a fifth of the time of one row.
FEW_NUMBERS = 3000


class CalibrationMap:
    """Base of all maps.

    A subclass says how the map is applied to a forecast array (`_calibrate`), how it is written in
    other languages (`_write`), and which fitted attributes these rest on (`fitted_state`). That is
    all that model files, ONNX and SQL need. The calibrator that learns the map is a subclass of it.
    """

    #: Fitted attributes, besides those of every calibrator, that predictions and tables rest on,
    #: and what a model file must hold for each; see `isoroc._persistence.states`.
    fitted_state: ClassVar[dict[str, Check]]
    #: Whether the hooks take logits of several classes as logarithms of forecasts. Otherwise they
    #: see probabilities.
    reads_logs: ClassVar[bool] = False
    #: Parameters of the calibrator that methods of the map rest on.
    parameters: ClassVar[tuple[str, ...]] = ()

    classes_: NDArray[Any]
    #: Columns of the forecasts; 1 for scores.
    n_features_in_: int
    #: Whether forecasts are probabilities or logits.
    scores_: Literal["probability", "logit"]
    #: What it was fitted on: rows, weight and class weights. A loaded calibrator has all that was
    #: saved.
    summary_: dict[str, Any]
    #: Checksum of the file that a map comes from. A calibrator may be fitted again, so it has none.
    checksum: str | None = None

    @classmethod
    def kind(cls) -> str:
        """Name of the calibrator that learns the map."""
        return cls.__name__.removesuffix("Map").removesuffix("Calibrator") + "Calibrator"

    def check_is_fitted(self, attribute: str = "classes_") -> None:
        """Raise an error unless the calibrator is fitted; a map from a file always is."""

    @abstractmethod
    def _calibrate(self, forecasts: Floats) -> Floats:
        """Calibrated forecasts, shape (n, K), of a forecast array."""

    @abstractmethod
    def _write(self, w: Writer[C], columns: Sequence[C]) -> list[C]:
        """Columns of calibrated forecasts, one for each class, from columns of forecasts."""

    def calibrate(self, forecasts: Floats) -> Floats:
        """Calibrated forecasts, shape (n, K), of a forecast array."""
        if self.scores_ == "logit" and forecasts.ndim == 2 and not self.reads_logs:
            forecasts = np.exp(forecasts)
        if forecasts.size <= FEW_NUMBERS:
            return self._calibrate(forecasts)
        with one_blas_thread():
            return self._calibrate(forecasts)

    def calibrate_logs(self, forecasts: LogForecasts) -> Floats:
        """Calibrated forecasts, shape (n, K), of forecasts whose logarithms others use too.

        A subclass overrides this where it uses them.
        """
        return self.calibrate(forecasts.forecasts)

    def write(self, w: Writer[C], columns: Sequence[C]) -> list[C]:
        """Columns of calibrated forecasts, one for each class, from columns of a forecast array."""
        if not self.reads_logs:
            if len(columns) > 1 and self.scores_ == "logit":
                columns = w.keep(w.exp(column) for column in columns)
            if len(columns) == 2:
                columns = [columns[0], *w.keep([written.binary_score(w, *columns)])]
        return self._write(w, columns)

    def takes_probabilities(self) -> bool:
        """Whether scores of two classes outside [0, 1] are refused."""
        return False

    def has_steps(self) -> bool:
        """Whether the map is not continuous, so that a rounding error may change its value."""
        return not self.reads_logs

    def is_increasing(self) -> bool:
        """Whether the map of two classes is known to be strictly increasing everywhere."""
        return False

    def check_state(self, n_classes: int) -> None:
        """Raise a `Fault` where a fitted attribute cannot be that of a fit to K classes.

        The compiled loops trust their arrays, so what comes from a file must be beyond doubt.
        """
        if self.scores_ not in ("probability", "logit"):
            raise Fault("scores_", "expected probability or logit")
        self._check_fitted(n_classes)

    def _check_fitted(self, n_classes: int) -> None:
        """Check the attributes of `fitted_state`."""
        sizes = {"K": n_classes}
        for name, check in self.fitted_state.items():
            check(getattr(self, name), name, sizes)

    def predict_proba(self, P: Any) -> Floats:
        """Calibrated forecasts, shape (n, K), one column for each of `classes_`; rows sum to one.

        Parameters
        ----------
        P : array-like, dataframe or series
            Forecasts as in `fit`. Columns of a dataframe are matched by name where `fit` saw names,
            otherwise they stand in the order of `fit`.
        """
        return self.calibrate(self._check_new(P))

    def _check_new(self, P: Any) -> Floats:
        """Forecast array of new rows, whose columns stand in the order of the fit."""
        # Where only the order of scores counts, new ones may lie beyond those of the fit.
        return check_forecasts(
            P,
            scores="logit" if self.scores_ == "logit" else "auto",
            unit=self.takes_probabilities(),
            n_columns=self.n_features_in_,
        )
