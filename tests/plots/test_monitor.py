import numpy as np
import pytest
from matplotlib.figure import Figure

from isoroc import CalibrationMonitor
from isoroc.plots import MonitorDisplay


@pytest.mark.parametrize("power", [1.0, 3.0])
def test_batches_over_time(power):
    rng, monitor = np.random.default_rng(0), CalibrationMonitor([0, 1])
    reports = []
    for _ in range(6):
        p = rng.random(200)
        reports.append(monitor.update(rng.random(200) < p**power, p))
    display = MonitorDisplay.from_monitor(monitor, ax=Figure().subplots(3, 1))
    frame = display.table

    def values(series, column="value"):
        return frame[column][frame["series"] == series].tolist()

    assert values("observed") == [report.log_loss for report in reports]
    assert values("promised") == [report.promised for report in reports]
    assert values("calibration error") == [report.calibration_error for report in reports]
    assert values("calibration error", "high") == [report.error_high for report in reports]
    assert values("evidence")[-1] == monitor.evidence_
    assert values("evidence", "rows") == list(range(200, 1201, 200))
    assert (monitor.alarm_ is None) == (power == 1)
    legend = {text.get_text() for ax in display.axes_ for text in ax.get_legend().get_texts()}
    assert ("alarm" in legend) == (power != 1)
    assert values("limit") == pytest.approx([np.log(20)] * 6)
