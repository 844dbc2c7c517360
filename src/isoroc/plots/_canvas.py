"""Axes of the simplex: a triangle for three classes, a tetrahedron for four."""

from __future__ import annotations

from itertools import combinations
from typing import Any, ClassVar

import mpltern  # noqa: F401 -- registers the axes of triangles
import numpy as np
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgb
from matplotlib.transforms import ScaledTranslation

from isoroc._simplex import Floats, Ints
from isoroc._views.geometry import TETRAHEDRON, triangles
from isoroc.plots._style import NEUTRAL, figure_of, style_of, wrapped

#: Above this number of bins their edges are thin.
_MANY_BINS = 80


#: The markers of the classes as characters.
_GLYPHS = ("●", "▲", "■", "◆", "▼", "✚")


def _corner(k: int, name: str, width: int) -> str:
    """Label of the corner of class k: its marker and its name, so that no legend is needed."""
    return f"{_GLYPHS[k]} {wrapped(name, width, 4)}"


class Triangle:
    """Ternary axes: first class at the lower left, second at the lower right, third on top.

    Parameters
    ----------
    ax : mpltern.TernaryAxes
    names : sequence of str
        The classes.
    """

    projection: ClassVar[str] = "ternary"

    def __init__(self, ax: Any, names: list[str]) -> None:
        self.ax = ax
        ax.set_axisbelow(True)
        ax.grid(visible=True, color=NEUTRAL, alpha=0.25, lw=0.6)
        # Position of each label: a corner and an offset in points. mpltern would look for free
        # positions, which takes seconds per figure.
        places = {"l": (0, 0, -22), "r": (1, 0, -22), "t": (0.5, 1, 21)}
        aligned = {"l": ("left", "top"), "r": ("right", "top"), "t": ("center", "bottom")}
        inch = figure_of(ax).dpi_scale_trans
        for k, (name, (side, (x, y, up))) in enumerate(zip(names, places.items(), strict=True)):
            axis = getattr(ax, f"{side}axis")
            axis.label.set(
                text=_corner(k, name, 16), color=style_of(k)[0], weight="bold", rotation=0
            )
            across, along = aligned[side]
            axis.label.set(ha=across, va=along, ma=across)
            aside = {"l": -22, "r": 22, "t": 0}[side]
            axis.set_label_coords(x, y, ax.transAxes + ScaledTranslation(aside / 72, up / 72, inch))
        ax.tick_params(labelsize="x-small")

    def title(self, text: str) -> None:
        """Set the title."""
        lines = 1 + self.ax.taxis.label.get_text().count("\n")
        self.ax.set_title(text, y=1, pad=27 + 14 * lines)

    def flat(self, P: Floats) -> Floats:
        """Points in the plane of the axes, shape (..., 2)."""
        top_left_right = P[..., [2, 0, 1]].reshape(-1, 3)
        flat = self.ax.transProjection.transform(top_left_right)
        return np.asarray(flat.reshape(*P.shape[:-1], 2))

    def points(self, P: Floats, **style: Any) -> None:
        """Draw points."""
        self.ax.scatter(*P[:, [2, 0, 1]].T, **style)

    def cells(self, cells: Ints, steps: int, colours: Floats, weight: Floats) -> None:
        """Fill cells; the larger the weight, the stronger the colour."""
        depth = 0.1 + 0.9 * (np.log1p(weight) / np.log1p(weight.max()))[:, None]
        # Blended with the background here: transparent neighbours would show where they overlap.
        shades = depth * colours + (1 - depth) * to_rgb(self.ax.get_facecolor())
        corners = self.flat(triangles(cells, steps))
        self.ax.add_collection(
            PolyCollection(list(corners), facecolors=shades, lw=0, antialiased=False)
        )

    def polygons(self, corners: list[Floats], colours: Floats) -> None:
        """Fill polygons."""
        flat = [self.flat(polygon) for polygon in corners]
        edge = self.ax.get_facecolor()
        width = 0.9 if len(flat) <= _MANY_BINS else 0.3
        self.ax.add_collection(
            PolyCollection(flat, facecolors=colours, edgecolors=[edge], lw=width)
        )

    def arrows(self, P: Floats, Q: Floats, colours: Floats) -> None:
        """Draw arrows from the points P to the points Q."""
        tails, heads = self.flat(P), self.flat(Q)
        self.ax.quiver(
            *tails.T,
            *(heads - tails).T,
            transform=self.ax.transData,
            angles="xy",
            scale_units="xy",
            scale=1,
            color=colours,
            width=0.006,
            headwidth=4,
            zorder=3,
        )


class Tetrahedron:
    """3-D axes: the first three classes at the base, the fourth on top.

    Parameters
    ----------
    ax : mpl_toolkits.mplot3d.Axes3D
    names : sequence of str
        The classes.
    """

    projection: ClassVar[str] = "3d"

    def __init__(self, ax: Any, names: list[str]) -> None:
        self.ax = ax
        ax.set_axis_off()
        width, depth, height = TETRAHEDRON.max(axis=0)
        below = 0.15  # for names of several lines at the lower corners
        ax.set(xlim=(0, width), ylim=(0, depth), zlim=(-below, height))
        zoom = 1.2 if max(map(len, names)) <= 5 else 0.98  # long names need space at the sides
        ax.set_box_aspect((width, depth, height + below), zoom=zoom)
        ax.view_init(elev=18, azim=-78)
        centre = TETRAHEDRON.mean(axis=0)
        for a, b in combinations(TETRAHEDRON, 2):
            ax.plot(*np.column_stack([a, b]), color=NEUTRAL, lw=0.9)
        for k, (name, corner) in enumerate(zip(names, TETRAHEDRON, strict=True)):
            position = centre + 1.07 * (corner - centre)
            colour = style_of(k)[0]
            text = ax.text(*position, _corner(k, name, 12), color=colour, weight="bold", zorder=100)
            text.set(ha="center", va="top" if k < 2 else "bottom", ma="center", size="small")
            text.set_bbox({"facecolor": ax.get_facecolor(), "alpha": 0.6, "lw": 0, "pad": 1})

    def title(self, text: str) -> None:
        """Set the title."""
        self.ax.set_title(text)

    def points(self, P: Floats, **style: Any) -> None:
        """Draw points."""
        self.ax.scatter(*(P @ TETRAHEDRON).T, depthshade=False, **style)

    def cells(self, cells: Ints, steps: int, colours: Floats, weight: Floats) -> None:
        """Draw a ball at the centre of each cell; the larger the weight, the larger the ball."""
        missing = steps - cells.sum(axis=1, keepdims=True)
        centre = (cells + missing / 4) / steps
        size = 4 + 120 * weight / weight.max()
        self.points(centre, s=size, c=colours, alpha=0.8, lw=0)

    def arrows(self, P: Floats, Q: Floats, colours: Floats) -> None:
        """Draw arrows from the points P to the points Q."""
        tails, heads = P @ TETRAHEDRON, Q @ TETRAHEDRON
        for tail, step, colour in zip(tails, heads - tails, colours, strict=True):
            self.ax.quiver(*tail, *step, color=colour, lw=1.4, arrow_length_ratio=0.25)
