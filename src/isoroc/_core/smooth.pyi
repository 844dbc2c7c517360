from isoroc._core.types import Floats, Ints

N_KNOTS: int

def log_forecasts(P: Floats, floor: float) -> Floats: ...
def logs_of(q: Floats) -> Floats: ...
def softmax(z: Floats) -> Floats: ...
def tempered(logs: Floats, lowest: float, temperature: float, share: float) -> Floats: ...
def log_tempered(logs: Floats, lowest: float, temperature: float, share: float) -> Floats: ...
def powered(Q: Floats, lowest: float, exponent: float, share: float = 0.0) -> Floats: ...
def log_softmax(z: Floats) -> Floats: ...
def expit(x: Floats) -> Floats: ...
def by_row(q: Floats) -> Floats: ...
def moments(z: Floats, weights: Floats, t: float, lowest: float) -> tuple[float, float]: ...
def power_loss(
    z: Floats, codes: Ints, weights: Floats, t: float, lowest: float, share: float
) -> float: ...
def softened(logs: Floats, floor: float, trace: float) -> Floats: ...
def softmax_loss(z: Floats, codes: Ints, weights: Floats) -> float: ...
def logistic_sums(
    X: Floats, y: Floats, weights: Floats, offset: Floats, theta: Floats
) -> Floats: ...
def spline_numbers(
    coef: Floats, knots: Floats, slopes: Floats, intercept: Floats
) -> tuple[Floats, Floats, Floats, Floats]: ...
def spline(
    P: Floats,
    logs: Floats,
    floor: float,
    knots: Floats,
    slopes: Floats,
    constant: Floats,
    weights: Floats,
    share: float,
) -> Floats: ...
def matrix(
    z: Floats, groups: Floats | None, slopes: Floats, quadratic: Floats, intercept: Floats
) -> Floats: ...
def sigmoid(
    logs: Floats, floor: float, coef: Floats, rest: Floats, intercept: Floats
) -> Floats: ...
def logistic(logs: Floats, floor: float, coef: float, rest: float, intercept: float) -> Floats: ...
def cumulative(
    z: Floats, tilt: Floats, rates: Floats, location: Floats, shifts: Floats, least: float
) -> Floats: ...
def blend(
    logs: Floats, floor: float, trace: float, slopes: Floats, biases: Floats, points: Floats
) -> Floats: ...
def gradient(
    logs: Floats,
    floor: float,
    trace: float,
    scale: float,
    softness: Floats,
    biases: Floats,
    across: Floats | None,
    down: Floats | None,
    factors: Floats | None,
) -> Floats: ...
def tilted(
    P: Floats,
    bins: Ints,
    table: Floats,
    floor: float,
    temperature: float,
    share: float,
) -> Floats: ...
def kernel_numbers(
    knots: Floats,
    origin: Floats,
    stretch: Floats,
    centres: Floats,
    weights: Floats,
    coef: Floats,
    intercept: Floats,
) -> tuple[float, int, Floats, Floats, Floats, Floats, Floats]: ...
def kernel(
    z: Floats,
    logs: Floats,
    stretch: float,
    n_centres: int,
    bends: Floats,
    start: Floats,
    groups: Floats,
    offsets: Floats,
    joint: Floats,
    reach: float,
) -> Floats: ...
def slopes(
    z: Floats,
    codes: Ints,
    weights: Floats,
    scale: float,
    softness: Floats,
    biases: Floats,
    directions: Floats | None,
    factors: Floats | None,
    of_rows: bool,
) -> tuple[float, Floats, Floats, Floats, Floats]: ...
def in_groups(matrix: Floats) -> Floats: ...
