"""Serve a model file with FastAPI.

    pip install fastapi uvicorn
    ISOROC_MODEL=model.json uvicorn --app-dir examples --factory serve:create_app

    curl -H 'Content-Type: application/json' -d '{"forecasts": [[0.7, 0.2, 0.1]]}' \
      localhost:8000/calibrate

`isoroc.load_map` imports neither scikit-learn nor SciPy. What it returns does not change, so all
threads share it.
"""

import os
from typing import Annotated, Any

from fastapi import FastAPI, HTTPException
from pydantic import BaseModel, Field

import isoroc

#: Rows of one request.
MAX_ROWS = 10_000


class Forecasts(BaseModel):
    """Forecasts of a model: a list for each row, or a number if the calibrator takes scores."""

    forecasts: Annotated[list[list[float]] | list[float], Field(max_length=MAX_ROWS)]
    segments: dict[str, list[str | float | None]] | None = None


class Calibrated(BaseModel):
    """Probabilities of the classes, one list for each row."""

    probabilities: list[list[float]]


class About(BaseModel):
    """What is served."""

    calibrator: str
    checksum: str
    classes: list[Any]


def create_app(path: str | None = None) -> FastAPI:
    """The service of a model file, by default of the environment variable ISOROC_MODEL."""
    model = isoroc.load_map(path or os.environ["ISOROC_MODEL"])
    about = About(
        calibrator=model.calibrator, checksum=model.checksum, classes=model.classes_.tolist()
    )
    app = FastAPI(title="isoroc")

    @app.get("/model")
    async def describe() -> About:
        return about

    # Not async: the service calls it in a thread, so that long requests do not stop short ones.
    @app.post("/calibrate")
    def calibrate(request: Forecasts) -> Calibrated:
        try:
            Q = model.predict_proba(request.forecasts, request.segments)
        except isoroc.InputError as error:
            raise HTTPException(status_code=422, detail=str(error)) from error
        return Calibrated(probabilities=Q.tolist())

    return app
