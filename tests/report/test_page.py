"""The page of a report as text, which tests/browser opens."""

import base64
import hashlib
import html
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from isoroc import IRPCalibrator, Report
from isoroc._evaluation.curves import Axis
from isoroc._report.charts import (
    CHART_WIDTH,
    Plane,
    at_points,
    cut,
    number_text,
    tag,
    ticks_of,
    weight_of,
)
from isoroc._support.text import listed

HOSTILE = ["<script>alert(1)</script>", "'\"><img src=x onerror=alert(2)>", "{{ 7 * 7 }}</script>"]


class Elements(HTMLParser):
    """Collects elements and attributes, and checks that elements are closed."""

    VOID = frozenset({"meta", "link", "input", "br", "img"})

    def __init__(self):
        super().__init__()
        self.found = []
        self.open = []

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def parse(page):
    elements = Elements()
    elements.feed(page)
    assert elements.open == []
    return elements.found


def make(names, n=120, **options):
    rng = np.random.default_rng(0)
    K = len(names)
    P = rng.dirichlet(np.ones(K), n)
    y = np.array(names, dtype=object)[(P.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)]
    y[:K] = names
    calibrator = IRPCalibrator(random_state=0).fit(P, y, labels=names)
    return Report(y, P, calibrator=calibrator, labels=names, **options)


@pytest.mark.parametrize("K", [2, 3])
def test_names_of_users_are_escaped_everywhere(K):
    names = HOSTILE[:K]
    report = make(names, title=HOSTILE[0], model_path=HOSTILE[1])
    found = parse(report.to_html())
    assert not any(tag == "script" for tag, _ in found)
    assert not any(tag == "img" or "onerror" in attrs for tag, attrs in found)
    frame = dict(parse(report._repr_html_())[0][1])["srcdoc"]
    assert frame == report.to_html()


def test_page_is_one_file_without_addresses():
    page = make(["a", "b", "c"]).to_html()
    for element, attrs in parse(page):
        for name in ("src", "href", "action", "srcset", "poster"):
            target = attrs.get(name, "#")
            assert target.startswith(("#", "data:")), f"{element} {name}={target}"
    assert not re.search(r"url\(|@import|https?://(?!www\.w3\.org/2000/svg)", page)
    assert "default-src 'none'" in page


def test_the_policy_allows_the_style_of_the_page_and_nothing_else():
    page = make(HOSTILE).to_html()
    found = parse(page)
    (policy,) = [attrs["content"] for _, attrs in found if "http-equiv" in attrs]
    rules = dict(rule.split(maxsplit=1) for rule in policy.split("; "))
    assert rules.pop("img-src") == "data:"
    (text,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    assert rules.pop("style-src") == f"'sha256-{digest}'"
    assert rules == dict.fromkeys(("default-src", "base-uri", "form-action"), "'none'")
    for element, attrs in found:  # the policy blocks these
        assert not [name for name in attrs if name == "style" or name.startswith("on")], element


def test_pages_are_written_atomically(tmp_path):
    report = make(["a", "b"])
    path = tmp_path / "report.html"
    path.write_text("old")
    assert report.to_html(path) == report.to_html()
    assert path.read_text(encoding="utf-8") == report.to_html()
    assert len(list(tmp_path.iterdir())) == 1
    with pytest.raises(OSError, match="nowhere"):
        report.to_html(tmp_path / "nowhere" / "report.html")


def test_json_is_strict():
    report = make(["a", "b"])
    assert json.loads(report.to_json()) == report.summary


@pytest.mark.parametrize(("n", "K"), [(2, 2), (10, 3), (100, 30)])
def test_few_rows(n, K):
    names = [f"c{k}" for k in range(K)]
    page = make(names, n=max(n, K)).to_html()
    assert parse(page)


def test_size_is_bounded_with_many_classes():
    K = 200
    n = 400
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.full(K, 0.1), n)
    y = P.argmax(axis=1)
    Q = np.full((n, K), 1 / K)
    report = Report(y, P, after=Q, labels=np.arange(K))
    # Diagrams of two rows and maps of three dots would say nothing.
    names = [panel["event"] for panel in report.summary["reliability"]["panels"]]
    assert names == ["the most probable class"] * 2  # before and after
    assert len(report.summary["classes"]["columns"]["name"]) == 200
    assert report.summary["map"]["curves"] == []
    assert report.summary["roc"]["curves"] == []
    assert report.summary["data"]["other_classes"] == 180
    found = {row["measure"]: row for row in report.summary["headline"]["rows"]}
    assert found["accuracy"]["before"]["value"] == 1
    assert found["decisions_changed"]["change"]["value"] == pytest.approx(np.mean(y > 0))
    assert len(report.to_html().encode()) < 1_000_000


def test_frame_escapes_the_page():
    cell = make(["a", "b"])._repr_html_()
    assert cell.count("<") == 2
    assert html.unescape(cell).count("<!doctype html>") == 1


def test_numbers_as_text():
    values = (0.81256, "inf", None, -0.00001, -0.5)
    texts = ["0.8126", "∞", "unknown", "0.0000", "\N{MINUS SIGN}0.5000"]
    assert [number_text(value) for value in values] == texts
    assert [weight_of(12345.0), weight_of(0.25)] == ["12,345", "0.25"]
    assert [listed(["a", "b", "c"]), listed(["a", "b", "c"], 1)] == ["a, b and c", "a and 2 more"]
    assert list(ticks_of(Axis())) == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1])
    assert ticks_of(Axis("linear", -3.1, 12)) == {0: "0", 5: "5", 10: "10"}
    assert ticks_of(Axis("linear", -1, 0))[-0.2] == "\N{MINUS SIGN}0.2"
    drawn = '<text class="label" aria-label="&#34;x&#34;">&lt;b&gt;</text>'
    assert tag("text", "<b>", class_="label", aria_label='"x"') == drawn


@pytest.mark.parametrize("low", [1e-5, 1e-3, 0.1, 0.5])
@pytest.mark.parametrize("high", [0.9, 0.99, 0.9999, 0.99999])
def test_texts_of_ticks_end_inside_the_picture(low, high):
    """Digits are about 6 units wide. The font decides, and tests/browser measures."""
    drawn = parse(str(Plane(Axis("logit", low, high)).frame("forecast", "rate")))
    texts = ticks_of(Axis("logit", low, high)).values()
    ticks = [attrs for name, attrs in drawn if name == "text" and attrs["class"] == "tick mid"]
    for text, attrs in zip(texts, ticks, strict=True):
        assert float(attrs["x"]) + 3 * len(text) <= CHART_WIDTH


def test_curves_end_where_they_leave_the_axes():
    plane = Plane(Axis("logit", 0.01, 0.5), Axis("logit", 0.01, 0.5))
    points = parse(str(plane.curve([0.02, 0.1, 0.3, 0.7], [0.005, 0.1, 0.2, 0.4])))[0][1]["points"]
    assert points == " ".join(
        at_points(*plane.at(x, y)) for x, y in [([0.1], [0.1]), ([0.3], [0.2])]
    )


@pytest.mark.parametrize("axis", [Axis(), Axis("logit", 1e-3, 1 - 1e-3), Axis("linear", -2, 5)])
def test_larger_values_are_drawn_further_right_and_up(axis):
    across, down = Plane(axis, axis).at(axis.values(5), axis.values(5))
    assert (np.diff(across) > 0).all()
    assert (np.diff(down) < 0).all()


def test_long_names_are_cut():
    assert cut("a" * 34) == "a" * 34
    assert cut("a" * 35) == "a" * 33 + "…"
