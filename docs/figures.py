"""Draw pictures of the documentation: ``python docs/figures.py``.

Those of docs/monotonicity.md are of generated data, others are drawn by the code of their page.

Requires matplotlib and mpltern.
"""

import re
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap

from isoroc import IRPCalibrator, MonotoneCalibrator
from isoroc._core.simplex import regions

save = runpy.run_path(str(Path(__file__).parents[1] / "examples" / "gallery.py"))["save"]
# The palette of Okabe and Ito, safe for colour-blind readers.
COLOURS = np.array(["#0072b2", "#d55e00", "#009e73"])
SHIFTS = [(-0.05, -0.05), (0.05, -0.05), (0, 0.05)]
CORNERS = np.array([[0, 0], [1, 0], [0.5, np.sqrt(0.75)]])


def forecasts(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Overconfident forecasts of three classes, and labels."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.full(3, 0.9), n)
    y = (truth.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    P = truth**2.5
    return P / P.sum(axis=1, keepdims=True), y


def triangle(ax: Axes, title: str) -> None:
    """Draw a triangle with named corners."""
    ax.plot(*CORNERS[[0, 1, 2, 0]].T, color="0.35", lw=1)
    for corner, name, shift in zip(CORNERS, "ABC", SHIFTS, strict=True):
        ax.text(*(corner + shift), name, ha="center", va="center", fontsize=11)
    ax.set_title(title, fontsize=11)
    ax.set(aspect="equal", ylim=(-0.1, 0.98))
    ax.set_axis_off()


def simplex(ax: Axes, gamma: np.ndarray, title: str) -> None:
    """Draw a triangle in which the regions of a threshold are shaded."""
    triangle(ax, title)
    x, y = np.meshgrid(np.linspace(0, 1, 500), np.linspace(0, CORNERS[2, 1], 433))
    top = y / CORNERS[2, 1]
    points = np.stack([1 - x - top / 2, x - top / 2, top], axis=-1)
    shade = np.ma.array(
        regions(points.reshape(-1, 3), gamma).reshape(x.shape), mask=(points < 0).any(axis=-1)
    )
    ax.pcolormesh(x, y, shade, cmap=ListedColormap(list(COLOURS)), vmin=0, vmax=2, alpha=0.2)
    ax.plot(*(gamma @ CORNERS), marker="+", ms=13, mew=2, color="black")


def rays() -> Iterator[tuple[int, np.ndarray]]:
    """Forecasts on lines of constant odds between two classes, and the third class."""
    odds = 4.0 ** np.array([-2, -1, 0, 1, 2])
    third = np.linspace(0, 1, 401)[1:-1]
    for k in range(3):
        for ratio in odds:
            line = np.empty((len(third), 3))
            line[:, k] = third
            line[:, (k + 1) % 3] = (1 - third) * ratio / (1 + ratio)
            line[:, (k + 2) % 3] = (1 - third) / (1 + ratio)
            yield k, line


def gradient(path: Path) -> None:
    P, y = forecasts(1500, 0)
    smooth = MonotoneCalibrator().fit(P, y)
    steps = IRPCalibrator(random_state=0).fit(P, y)
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(13, 4.2), layout="constrained")
    triangle(left, "1,500 forecasts, and lines of constant odds")
    triangle(middle, "the same after MonotoneCalibrator")
    for k, line in rays():
        even = np.allclose(line[0, (k + 1) % 3], line[0, (k + 2) % 3])
        style = {"color": COLOURS[k], "lw": 1.8 if even else 0.9}
        left.plot(*(line @ CORNERS).T, **style)
        middle.plot(*(smooth.predict_proba(line) @ CORNERS).T, **style)
    for ax, points in ((left, P), (middle, smooth.predict_proba(P))):
        ax.scatter(*(points @ CORNERS).T, s=3, color="0.55", lw=0, zorder=0)

    shift = np.linspace(-4, 4, 801)
    for share, style in ((0.05, "-"), (0.5, "--")):
        z = np.log([(1 - share) / 2, (1 - share) / 2, share]) + shift[:, None] * [0.5, -0.5, 0]
        line = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
        for model, colour in ((smooth, "#0072b2"), (steps, "#e69f00")):
            Q = model.predict_proba(line)
            right.plot(shift, Q[:, 0] - Q[:, 1], color=colour, ls=style, lw=1.6)
    right.plot([], [], color="#0072b2", label="MonotoneCalibrator")
    right.plot([], [], color="#e69f00", label="IRPCalibrator")
    right.axhline(0, color="0.8", lw=0.8, zorder=0)
    right.set(xlabel="log odds of A against B before", ylabel="calibrated q(A) − q(B)")
    right.set_title("two paths from B to A", fontsize=11)
    right.legend(frameon=False, fontsize=9, loc="upper left")
    right.spines[["top", "right"]].set_visible(False)
    save(figure, path)


def monotonicity(path: Path) -> None:
    P, y = forecasts(1500, 0)
    P_new, y_new = forecasts(40_000, 1)
    cal = IRPCalibrator(random_state=0).fit(P, y)
    gamma = cal.certificate_.thresholds[0]
    after = cal.certificate_.calibrated_thresholds[0]
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(13, 4.2), layout="constrained")

    simplex(left, gamma, "1,500 forecasts, sorted by a threshold γ")
    left.scatter(*(P @ CORNERS).T, s=5, c=COLOURS[regions(P, gamma)], lw=0)
    simplex(middle, after, f"their {cal.n_bins_} calibrated values, sorted by γ′")
    weight = cal.bins_["weight"]
    side = regions(P, gamma)[np.unique(cal.apply(P), return_index=True)[1]]
    middle.scatter(
        *(cal.bin_values_ @ CORNERS).T, s=1.2 * weight, c=COLOURS[side], ec="white", lw=0.8
    )

    for name, params, colour in [
        ("no condition", {"monotonicity": None, "min_lift": 0, "min_bin_weight": 5}, "#cc79a7"),
        ("monotone, whole simplex", {"monotonicity": "global"}, "#e69f00"),
        ("monotone, along the tree (default)", {}, "#0072b2"),
    ]:
        model = IRPCalibrator(random_state=0, **params).fit(P, y)
        stages = model.staged_predict_proba(P_new)
        losses = [-np.log(Q[np.arange(len(Q)), y_new].clip(1e-6)).mean() for Q in stages]
        bins = model.path_["n_bins"]
        right.plot(bins, losses, color=colour, lw=1.8, label=name)
        right.plot(bins[-1], losses[-1], "o", color=colour)
    before = -np.log(P_new[np.arange(len(P_new)), y_new].clip(1e-6)).mean()
    right.axhline(before, color="0.35", lw=1, ls="--")
    right.text(5, before, "uncalibrated", va="bottom", color="0.35")
    right.set(xscale="log", xlabel="number of bins", ylabel="log loss on new rows (nats)")
    right.set_xticks([1, 3, 10, 30, 100], ["1", "3", "10", "30", "100"])
    right.minorticks_off()
    right.set_title("what the condition buys", fontsize=11)
    right.legend(frameon=False, fontsize=9)
    right.spines[["top", "right"]].set_visible(False)
    save(figure, path)


def of_page(page: Path) -> None:
    """The figure that the code of a page makes."""
    names: dict[str, Any] = {}
    for code in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
        exec(code, names)  # noqa: S102 -- our own page
    save(names["figure"], page.with_suffix(".png"))


if __name__ == "__main__":
    for name in ("clinical", "operations"):
        of_page(Path(__file__).parent / f"{name}.md")
    monotonicity(Path(__file__).parent / "monotonicity.png")
    gradient(Path(__file__).parent / "gradient.png")
