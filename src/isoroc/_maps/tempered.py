"""Temperature scaling, alone and as the first stage of other maps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from isoroc._core import smooth
from isoroc._maps import written
from isoroc._maps.logs import LogForecasts
from isoroc._maps.scores import ProbabilityMap, by_row, log_softmax
from isoroc._persistence import Fault, states
from isoroc._simplex import Floats
from isoroc._writer import C, Writer


class TemperedMap(ProbabilityMap):
    """Base of the maps that begin with temperature scaling."""

    floor_: float
    temperature_: float
    smoothing_: float

    fitted_state: ClassVar[dict[str, states.Check]] = {
        "floor_": states.number(most=1.0),
        "temperature_": states.number(above=1e-100, most=1e100),
        "smoothing_": states.number(most=1.0),
    }

    def _check_fitted(self, n_classes: int) -> None:
        """Check the fitted attributes; only logits need no floor."""
        super()._check_fitted(n_classes)
        if self.scores_ == "probability" and not self.floor_:
            raise Fault("floor_", "expected a number > 0")

    def tempered_forecasts(self, forecasts: LogForecasts) -> Floats:
        """Forecasts after temperature scaling and smoothing, shape (K, n)."""
        return forecasts.tempered(self.scores_, self.floor_, self.temperature_, self.smoothing_)

    def tempered(self, forecasts: LogForecasts) -> Floats:
        """Logarithms of the forecasts after temperature scaling and smoothing, shape (K, n)."""
        if self.smoothing_:
            return smooth.logs_of(self.tempered_forecasts(forecasts))
        z = self.log_forecasts(forecasts.forecasts, self.floor_)
        return log_softmax(z / self.temperature_)

    def write_tempered(self, w: Writer[C], columns: Sequence[C]) -> list[C]:
        """What `tempered` returns, as columns."""
        if self.smoothing_:
            return [w.log(q) for q in w.keep(self.write_tempered_forecasts(w, columns))]
        return written.log_softmax(w, self._write_scaled(w, columns))

    def write_tempered_forecasts(self, w: Writer[C], columns: Sequence[C]) -> list[C]:
        """What `tempered_forecasts` returns, as columns."""
        q = w.keep(w.softmax(self._write_scaled(w, columns)))
        return written.mixed(w, q, self.smoothing_) if self.smoothing_ else q

    def _write_scaled(self, w: Writer[C], columns: Sequence[C]) -> list[C]:
        logs = self.write_log_forecasts(w, self.floor_, columns)
        return [w.divide(column, w.number(self.temperature_)) for column in logs]


class TemperatureMap(TemperedMap):
    """What `TemperatureCalibrator` learns."""

    def is_increasing(self) -> bool:
        """Whether the map of two classes is strictly increasing: a floor above 1/2 flattens it."""
        return self.floor_ <= 0.5

    def calibrate_logs(self, forecasts: LogForecasts) -> Floats:
        """Calibrated forecasts, shape (n, K)."""
        return by_row(self.tempered_forecasts(forecasts))

    def _write(self, w: Writer[C], columns: Sequence[C]) -> list[C]:
        return self.write_tempered_forecasts(w, columns)
