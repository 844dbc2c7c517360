"""The ROC surface of three classes as a picture: corners of its hull, and its faces."""

from typing import Any, NamedTuple

import numpy as np

from isoroc._core.special import convex_hull
from isoroc._core.types import Floats
from isoroc._evaluation.order import Effort, effort_for
from isoroc._input import Sample
from isoroc.metrics._surface.surface import hull_points

#: Elevation of the viewpoint of both pictures, in degrees.
ELEVATION = 28.0
#: Azimuth of the viewpoint of both pictures, in degrees, midway between the first two axes.
AZIMUTH = 45.0


class DrawnSurface(NamedTuple):
    """What is drawn of a ROC surface."""

    corners: Floats  # ROC points that span the hull, (m, 3)
    faces: Floats  # triangles of the hull that do not contain the origin, (f, 3, 3)
    volume: float
    n_rows: int


def drawn_surface(sample: Sample) -> DrawnSurface:
    """The surface of three classes, of at most as many rows as an evaluation takes."""
    few = sample.draw((effort_for(3) or Effort(0)).rows)
    points = few.measure(hull_points)
    hull = convex_hull(np.vstack([points, np.zeros(3), np.eye(3)]))
    corners = points[np.sort(hull.vertices[hull.vertices < len(points)])]
    outside = hull.equations[:, -1] < -1e-9
    faces = hull.points[hull.simplices[outside]]
    return DrawnSurface(corners, faces, float(hull.volume), few.n_rows)


def lit(faces: Floats, ambient: float = 0.35) -> Floats:
    """Brightness of faces, from `ambient` to 1: light comes from the side of the third axis."""
    light = np.array([0.35, 0.6, 0.8])
    share = np.abs(_normals(faces)) @ light / np.linalg.norm(light)
    return np.asarray(ambient + (1 - ambient) * share)


def seen(points: Floats) -> Floats:
    """Points as the pictures look at them: to the right, upwards and towards the viewer."""
    up = np.radians(ELEVATION)
    turn = np.radians(AZIMUTH)
    towards = [np.cos(up) * np.cos(turn), np.cos(up) * np.sin(turn), np.sin(up)]
    upwards = [-np.sin(up) * np.cos(turn), -np.sin(up) * np.sin(turn), np.cos(up)]
    right = [-np.sin(turn), np.cos(turn), 0.0]
    return np.asarray(points @ np.array([right, upwards, towards]).T)


def edges_of(faces: Floats) -> Floats:
    """Edges between faces that are not in one plane, shape (e, 2, 3)."""
    ends = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    normals = np.tile(np.abs(_normals(faces)), (3, 1))
    keys = [tuple(sorted(map(tuple, pair))) for pair in ends.round(9).tolist()]
    found: dict[Any, list[int]] = {}
    for i, key in enumerate(keys):
        found.setdefault(key, []).append(i)
    kept = [
        at[0]
        for at in found.values()
        if len(at) < 2 or np.abs(normals[at[0]] - normals[at[1]]).max() > 1e-6
    ]
    return np.asarray(ends[kept])


def _normals(faces: Floats) -> Floats:
    """Normals of triangles, of length 1."""
    normals = np.cross(faces[:, 1] - faces[:, 0], faces[:, 2] - faces[:, 0])
    length = np.linalg.norm(normals, axis=1, keepdims=True)
    return np.asarray(normals / np.maximum(length, 1e-12))
