"""Maps: what fitted calibrators do with forecasts, as values.

A map is a frozen dataclass: its numbers, with what must hold for them, and one formula over `Ops`.
Everything else follows from these: `predict_proba`, the model file, ONNX, SQL and torch. Importing
maps loads neither SciPy nor scikit-learn, so that a saved model is quick to serve.
"""

from isoroc._maps.base import Forecasts as Forecasts
from isoroc._maps.base import IdentityMap as IdentityMap
from isoroc._maps.base import Map as Map
from isoroc._maps.bins import BinMap as BinMap
from isoroc._maps.bins import TiltedMap as TiltedMap
from isoroc._maps.mixture import MixtureMap as MixtureMap
from isoroc._maps.mixture import MultiLabelMap as MultiLabelMap
from isoroc._maps.monotone import MonotoneMap as MonotoneMap
from isoroc._maps.scaling import CumulativeMap as CumulativeMap
from isoroc._maps.scaling import KernelMap as KernelMap
from isoroc._maps.scaling import MatrixMap as MatrixMap
from isoroc._maps.scaling import SigmoidMap as SigmoidMap
from isoroc._maps.scaling import SplineMap as SplineMap
from isoroc._maps.scaling import TemperatureMap as TemperatureMap
from isoroc._maps.segments import SegmentMap as SegmentMap
from isoroc._maps.steps import StepMap as StepMap
from isoroc._maps.steps import VennAbersMap as VennAbersMap
