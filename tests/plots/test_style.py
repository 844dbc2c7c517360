import subprocess
import sys

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from isoroc._evaluation.curves import thin
from isoroc._evaluation.triangle import COLOURS, mix
from isoroc.plots import CalibrationDisplay
from isoroc.plots._display import (
    SERIES,
    axes_for,
    figure_of,
    shortened,
    strip_below,
    style_of,
    wrapped,
)


def brightness(colour):
    """Relative luminance as defined by the Web Content Accessibility Guidelines."""
    rgb = np.array(to_rgb(colour))
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4) @ [
        0.2126,
        0.7152,
        0.0722,
    ]


@pytest.mark.parametrize("colour", [*COLOURS[:4], *(style[0] for style in SERIES.values()), "0.5"])
def test_colours_are_legible_on_white_and_on_black(colour):
    assert (1 + 0.05) / (brightness(colour) + 0.05) > 3
    assert (brightness(colour) + 0.05) / 0.05 > 3


def test_series_differ_without_colour():
    assert SERIES["before"][1:] != SERIES["after"][1:]
    assert (
        len({style_of(k)[1] for k in range(6)}) == len({str(style_of(k)[2]) for k in range(6)}) == 6
    )
    assert style_of(6) == style_of(0)


def test_mixtures_of_class_colours():
    np.testing.assert_allclose(mix(np.eye(4)), [to_rgb(c) for c in COLOURS[:4]])
    middle = mix(np.full((1, 3), 1 / 3))[0]
    assert (middle > mix(np.eye(3)).min(axis=0)).all()
    assert (middle < mix(np.eye(3)).max(axis=0)).all()


def test_long_names_are_wrapped_or_shortened():
    assert wrapped("short") == "short"
    assert wrapped("a name of several words that does not fit", 12, 2) == "a name of\nseveral…"
    assert shortened("a very long name of a class") == "a very l…a class"
    assert shortened("$5") == r"\$5"


def test_thinned_curves_keep_their_ends_and_their_shape():
    x = np.sort(np.random.default_rng(0).random(100_000)) ** 3
    y = np.sqrt(x)
    kept = thin(x, y)
    assert len(kept) <= 2000
    assert {0, 99_999} <= set(kept)
    assert np.abs(np.interp(x, x[kept], y[kept]) - y).max() < 2 / 1000
    assert thin(x[:7], y[:7]).tolist() == list(range(7))


def test_new_axes_fill_rows():
    axes = axes_for(None, 5, columns=3, size=(2, 1))
    assert axes[0].figure.get_size_inches().tolist() == [6, 2]
    assert axes[3].get_subplotspec().rowspan.start == 1
    assert plt.get_fignums() == [axes[0].figure.number]


def test_one_axes_is_divided(make_axes):
    ax = make_axes()
    axes = axes_for(ax, 3, columns=2, size=(1, 1), projection="3d")
    assert not ax.axison
    assert [a.name for a in axes] == ["3d"] * 3
    whole = ax.get_position()
    assert all(whole.x0 <= a.get_position().x0 <= whole.x1 for a in axes)


def test_given_axes_are_used(make_axes):
    figure = figure_of(make_axes())
    grid = figure.subplots(2, 2)
    assert axes_for(grid, 4, columns=1, size=(1, 1)) == list(grid.ravel())
    assert axes_for(grid[0, 0], 1, columns=1, size=(1, 1)) == [grid[0, 0]]


def test_axes_in_subfigures_are_divided():
    figure = Figure()
    left, _ = np.asarray(figure.subfigures(1, 2))
    axes = axes_for(left.subplots(), 2, columns=2, size=(1, 1))
    assert {ax.figure for ax in axes} == {left}
    assert figure_of(axes[0]) is figure
    assert figure_of(figure.subplots()) is figure


def test_axes_that_do_not_fit_raise():
    figure = Figure()
    ax = figure.subplots()
    with pytest.raises(ValueError, match="ax: got 2 axes; expected 3, one per panel"):
        axes_for([ax, ax], 3, columns=1, size=(1, 1))
    with pytest.raises(
        ValueError, match=r'ax: got axes with projection "rectilinear"; use .*"ternary"'
    ):
        axes_for(ax, 1, columns=1, size=(1, 1), projection="ternary")
    with pytest.raises(ValueError, match="ax: the display has 2 panels, and only axes in a grid"):
        axes_for(figure.add_axes((0, 0, 1, 1)), 2, columns=1, size=(1, 1))


@pytest.mark.parametrize("subplot", [True, False])
def test_strip_is_taken_from_the_axes(subplot):
    figure = Figure()
    ax = figure.subplots() if subplot else figure.add_axes((0.1, 0.2, 0.8, 0.7))
    before = ax.get_position()
    strip = strip_below(ax)
    upper = ax.get_position()
    lower = strip.get_position()
    assert before.y0 == pytest.approx(lower.y0)
    assert before.y1 == pytest.approx(upper.y1)
    assert upper.y0 > lower.y1
    ax.set_xlim(0.3, 0.4)
    assert strip.get_xlim() == (0.3, 0.4)


def test_text_follows_the_current_style():
    p = np.linspace(0, 1, 40)
    with plt.style.context("dark_background"):
        dark = CalibrationDisplay.from_predictions(p > 0.4, p)
    light = CalibrationDisplay.from_predictions(p > 0.4, p)
    colours = [display.axes_[0].yaxis.label.get_color() for display in (dark, light)]
    assert colours == ["white", "black"]
    lines = [[line.get_color() for line in d.axes_[0].lines] for d in (dark, light)]
    assert lines[0] == lines[1]


@pytest.mark.slow
def test_drawing_in_given_axes_does_not_load_pyplot():
    code = """
import sys
from matplotlib.figure import Figure
from isoroc.plots import RocDisplay, CalibrationDisplay
for display in (RocDisplay, CalibrationDisplay):
    display.from_predictions([0, 1, 0, 1], [0.1, 0.3, 0.2, 0.9], ax=Figure().subplots())
print("matplotlib.pyplot" in sys.modules)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"
