"""Draw the pictures of docs/report.md: a report in headless Chromium at three widths.

``make test-browser`` installs what this needs; then ``python docs/report/screenshots.py``.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image
from playwright.sync_api import sync_playwright
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier

from isoroc import IRPCalibrator, Report

FOLDER = Path(__file__).parent
#: Width of the window, colour scheme, and the first and last section that are shown.
VIEWS = {
    "desktop": (1280, "light", "verdict", "reliability"),
    "tablet": (820, "dark", "map", "segments"),
    "phone": (390, "light", "verdict", "headline"),
}


def make_report() -> Report:
    """A random forest on generated data, calibrated by IRP."""
    X, y = make_classification(
        9000, n_informative=6, n_classes=3, n_clusters_per_class=1, flip_y=0.15, random_state=1
    )
    names = np.array(["bird", "cat", "dog"])[y]
    train, cal, test = np.split(np.arange(9000), 3)
    forest = RandomForestClassifier(200, min_samples_leaf=3, random_state=0).fit(
        X[train], names[train]
    )
    P_cal = forest.predict_proba(X[cal])
    P_test = forest.predict_proba(X[test])
    calibrator = IRPCalibrator(random_state=0).fit(P_cal, names[cal])
    zoo = np.array(["Basel", "Bern", "Chur"])[np.digitize(X[test][:, 0], [-0.3, 1.5])]
    title = "Animals: a random forest"
    return Report(names[test], P_test, calibrator=calibrator, segments={"zoo": zoo}, title=title)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page_path = Path(folder, "report.html")
        make_report().to_html(page_path)
        found = shutil.which("chromium") or shutil.which("google-chrome")
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        for name, (width, scheme, first, last) in VIEWS.items():
            page = browser.new_page(
                viewport={"width": width, "height": 1000},
                color_scheme=scheme,
                device_scale_factor=1,
            )
            page.goto(page_path.as_uri())
            boxes = [
                page.locator(f"section[aria-labelledby={section}]").bounding_box()
                for section in (first, last)
            ]
            top = 0 if first == "verdict" else boxes[0]["y"] - 16
            bottom = boxes[1]["y"] + boxes[1]["height"] + 16
            target = FOLDER / f"{name}.png"
            clip = {"x": 0, "y": top, "width": width, "height": bottom - top}
            page.screenshot(path=target, full_page=True, clip=clip)
            # A palette of 256 colours is enough for a page and keeps the repository small.
            Image.open(target).convert("RGB").quantize(256).save(target, optimize=True)
            print(target, target.stat().st_size)
        browser.close()


if __name__ == "__main__":
    main()
