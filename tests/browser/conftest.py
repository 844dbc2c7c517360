"""Pages of reports in headless Chromium. ``make test-browser`` installs what is needed."""

import shutil

import numpy as np
import pytest
from playwright.sync_api import sync_playwright

from isoroc import AutoCalibrator, IRPCalibrator, Report

NAMES = {
    2: ["no", "yes"],
    3: ["bird", "<script>alert(1)</script>", "a dog with quite a long name of its own"],
    5: ["a", "b", "c", "d", "e"],
    200: [f"c{k:03}" for k in range(200)],
}


def overconfident(n, K, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.ones(K), n)
    codes = (truth.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    P = truth**2
    return P / P.sum(axis=1, keepdims=True), np.array(NAMES[K])[codes]


def make_report(K, calibrator):
    P, y = overconfident(1600, K)
    calibrator.fit(P[:800], y[:800], labels=NAMES[K])
    title = "A <b>title</b> & more"
    return Report(y[800:], P[800:], calibrator=calibrator, title=title)


def make_rare():
    """A class with 6 % of the rows that is predicted for many rows before and for none after."""
    rng = np.random.default_rng(0)
    y = np.where(rng.random(2329) < 0.06, "fraud", "ok")
    p = np.where(y == "fraud", 0.35, 0.2) + 0.4 * rng.random(2329)
    P = np.column_stack([p, 1 - p])
    return Report(y, P, after=[[q, 1 - q] for q in p / 6], labels=["fraud", "ok"])


def make_log_odds(sign):
    """Events so rare, or so frequent, that the axes show log odds."""
    rng = np.random.default_rng(0)
    z = sign * rng.normal(-7, 2.5, 4000)
    p, q = (1 / (1 + np.exp(-slope * z)) for slope in (1.3, 1.0))
    return Report(rng.random(4000) < q, p, after=q)


def make_segments():
    """Three sites, of which one has other rates."""
    rng = np.random.default_rng(0)
    p = rng.random(900)
    site = rng.choice(["Basel", "Bern", "Chur"], 900, p=[0.3, 0.6, 0.1])
    y = rng.random(900) < np.where(site == "Basel", p**3, p)
    return Report(y, p, after=0.1 + 0.8 * p, segments={"site": site})


def make_ties():
    """Forecasts of six levels."""
    rng = np.random.default_rng(0)
    p = rng.choice([0.05, 0.3, 0.5, 0.7, 0.8, 0.9], 900)
    return Report(rng.random(900) < p**2, p, after=p**2)


def make_certain():
    """Forecasts of which many are exactly 0 or 1, some of them wrong."""
    rng = np.random.default_rng(0)
    truth = rng.random(900)
    p = np.where(truth < 0.3, 0.0, np.where(truth > 0.7, 1.0, truth))
    return Report(rng.random(900) < truth, p, after=0.1 + 0.8 * p)


@pytest.fixture(scope="session")
def pages(tmp_path_factory):
    """Path of a report by the number of classes and the kind of calibrator."""
    folder = tmp_path_factory.mktemp("reports")
    made = {
        "2": make_report(2, IRPCalibrator()),
        "3": make_report(3, IRPCalibrator(values="constant", random_state=0)),
        "3-tilted": make_report(3, IRPCalibrator(values="tilted", random_state=0)),
        "5": make_report(5, IRPCalibrator(random_state=0)),
        "3-auto": make_report(3, AutoCalibrator(random_state=0)),
        "200": make_report(200, IRPCalibrator(random_state=0)),
        "rare": make_rare(),
        "log-odds": make_log_odds(1),
        "frequent": make_log_odds(-1),
        "segments": make_segments(),
        "ties": make_ties(),
        "certain": make_certain(),
    }
    paths = {}
    for name, report in made.items():
        paths[name] = folder / f"{name}.html"
        report.to_html(paths[name])
    notebook = folder / "notebook.html"
    cell = made["2"]._repr_html_()
    notebook.write_text(f"<!doctype html><title>notebook</title><p id='own'>cell</p>{cell}")
    return paths | {"notebook": notebook}


@pytest.fixture(scope="session")
def browser():
    names = ("chromium", "chromium-browser", "google-chrome")
    found = [path for name in names if (path := shutil.which(name))]
    if not found:
        pytest.fail("Chromium is needed: install Debian's package chromium")
    with sync_playwright() as playwright:
        # Without its sandbox Chromium also runs as root, as in containers. The pages are our own.
        launched = playwright.chromium.launch(executable_path=found[0], args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.fixture
def open_page(browser, pages):
    """Function that opens a report. Afterwards nothing may have gone wrong or been requested."""
    opened = []
    problems = []

    def refuse(dialog):
        problems.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def open_report(name, **options):
        context = browser.new_context(**options)
        page = context.new_page()
        opened.append(context)
        address = pages[name].as_uri()
        page.on("console", lambda m: problems.append(f"console: {m.text}"))
        page.on("pageerror", lambda e: problems.append(f"error: {e}"))
        page.on("dialog", refuse)
        page.on(
            "request",
            lambda r: (
                None
                if r.url == address or r.url.startswith(("data:", "about:"))
                else problems.append(f"request: {r.url}")
            ),
        )
        page.goto(address)
        return page

    yield open_report
    for context in opened:
        context.close()
    assert problems == []
