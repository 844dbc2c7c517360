from ._cost import CostReport as CostReport
from ._cost import best_threshold as best_threshold
from ._cost import decide as decide
from ._cost import expected_cost as expected_cost
from ._threshold import DecisionCurve as DecisionCurve
from ._threshold import ThresholdReport as ThresholdReport
from ._threshold import net_benefit as net_benefit
from ._threshold import threshold_for as threshold_for
