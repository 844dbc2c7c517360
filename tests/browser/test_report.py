"""The report in a real browser: what a reader can see, hover over, press and type."""

import re

import pytest
from axe_playwright_python.sync_playwright import Axe

REPORTS = [
    *["2", "segments", "3", "3-tilted", "5", "3-auto", "rare", "log-odds", "frequent", "ties"],
    *["certain", "200"],
]
LEVELS = [0.05, 0.3, 0.5, 0.7, 0.8, 0.9]


@pytest.mark.parametrize("name", REPORTS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_violation(open_page, name, scheme):
    page = open_page(name, color_scheme=scheme)
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()


@pytest.mark.parametrize("name", REPORTS)
@pytest.mark.parametrize("width", [360, 800, 1280])
def test_nothing_is_wider_than_the_window(open_page, name, width):
    page = open_page(name, viewport={"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_names_are_text(open_page):
    page = open_page("3")
    assert page.locator("h1").inner_text() == "A <b>title</b> & more"
    assert page.locator("figcaption", has_text="<script>alert(1)</script>").count() > 0
    assert page.locator("script").count() == 0


def test_marks_have_tips(open_page):
    tips = open_page("3").locator("polygon.cell title").all_text_contents()
    assert tips
    for word in ("weight", "mean forecast", "calibrated"):
        assert word in tips[0]


def test_segments_have_a_row_and_two_marks_each(open_page):
    section = open_page("segments").locator("section[aria-labelledby=segments]")
    assert section.locator("tbody tr").count() == 3
    assert section.locator("tbody .dot").count() == 6
    assert section.locator("tbody th").first.inner_text() == "site: Basel"


def background(page):
    return page.evaluate("getComputedStyle(document.body).backgroundColor")


def test_dark_mode_follows_the_system(open_page):
    dark, light = (open_page("2", color_scheme=scheme) for scheme in ("dark", "light"))
    assert background(dark) != background(light)


def test_a_class_that_is_predicted_no_more(open_page):
    """A rare class: the verdict says what became of it, and accuracy has no colour."""
    page = open_page("rare")
    verdict = page.locator("section.verdict").inner_text()
    (share,) = re.findall(r"the accuracy is just the share of ok, ([0-9.]+) %", verdict)
    (predicted,) = re.findall(r"no row is predicted as fraud any more \((\d+) of 2,329", verdict)
    assert int(predicted) > 0
    assert "decide by expected cost: isoroc.decisions.decide" in verdict
    accuracy = cells(page, "Accuracy")
    assert float(accuracy[1]) == pytest.approx(float(share) / 100, abs=5e-4)
    note = page.locator("section[aria-labelledby=headline] > p").inner_text()
    assert f"Always deciding for class ok would have an accuracy of {accuracy[1]}." in note
    row = page.locator("tr", has=page.get_by_role("rowheader", name="Accuracy"))
    word = row.locator("td.word.wide")
    assert word.inner_text() == "higher"
    colours = [
        page.locator(f"td.word.wide.{kind}").first.evaluate("e => getComputedStyle(e).color")
        for kind in ("higher", "better")
    ]
    assert colours[0] != colours[1]
    assert colours[0] == page.locator("p.quiet").first.evaluate("e => getComputedStyle(e).color")


def cells(page, measure):
    """Figures of a measure before and after calibration, and their change, without intervals."""
    row = page.locator("tr", has=page.get_by_role("rowheader", name=measure, exact=True))
    return row.locator("td.num").evaluate_all("all => all.map(td => td.firstChild.textContent)")


@pytest.mark.parametrize("name", ["2", "3", "5", "200", "rare", "ties", "certain"])
def test_the_verdict_agrees_with_the_table(open_page, name):
    page = open_page(name)
    verdict = page.locator("section.verdict").inner_text()
    losses = re.findall(r"log loss ([0-9.]+) before, ([0-9.]+) after", verdict)
    assert losses == [tuple(cells(page, "Log loss")[:2])]
    for word in ("infin", "∞", "nan"):
        assert word not in page.locator("main").inner_text().lower()


def test_rows_of_probability_0_are_counted(open_page):
    page = open_page("certain")
    verdict = page.locator("section.verdict").inner_text()
    (n,) = re.findall(r"In (\d+) rows the outcome was given probability 0 before cal", verdict)
    assert 50 < int(n) < 150
    assert float(cells(page, "Log loss")[0]) > 36 * int(n) / 900
    assert "% of the forecasts before calibration are certain" in page.locator("main").inner_text()


def test_levels_occur_and_many_classes_have_no_empty_pictures(open_page):
    page = open_page("ties")
    first = page.locator("section.verdict .first").inner_text()
    n, level = re.findall(r"In (\d+) rows class True had a probability of ([0-9.]+) and", first)[0]
    assert float(level) in LEVELS
    dots = page.locator("section[aria-labelledby=reliability] .dot.before")
    tips = dots.evaluate_all("dots => dots.map(dot => dot.querySelector('title').textContent)")
    assert [float(tip.split("forecast ")[1].split(",")[0]) for tip in tips] == LEVELS
    assert tips[LEVELS.index(float(level))].endswith(f"weight {n}")
    page = open_page("200")
    assert page.locator("section[aria-labelledby=map]").count() == 0
    assert page.locator("section[aria-labelledby=reliability] figure").count() == 2
    first = page.locator("section.verdict .first").inner_text()
    n, rate, after = re.findall(
        r"In (\d+) rows .* in ([0-9.]+) % of them; .* is ([0-9.]+) on", first
    )[0]
    assert int(n) >= 20
    assert float(after) == pytest.approx(float(rate) / 100, abs=0.1)


#: Names, texts and boxes of the pictures: which texts leave their picture, or touch another one.
TEXTS_IN_PICTURES = """
[...document.querySelectorAll("svg[role=img], svg[role=group]")].flatMap(svg => {
    const outer = svg.getBoundingClientRect();
    const texts = [...svg.querySelectorAll("text")].filter(text => text.textContent.trim());
    const boxes = texts.map(text => text.getBoundingClientRect());
    const name = (i) => `${svg.getAttribute("aria-label")}: ${texts[i].textContent}`;
    return boxes.flatMap((box, i) => [
        ...(box.left < outer.left - 1 || box.right > outer.right + 1 ? [`${name(i)} is cut`] : []),
        ...boxes.slice(i + 1).flatMap((other, k) =>
            box.left + 1 < other.right && other.left + 1 < box.right
            && box.top + 3 < other.bottom && other.top + 3 < box.bottom
            ? [`${name(i)} touches ${texts[i + 1 + k].textContent}`] : []),
    ]);
})"""


@pytest.mark.parametrize("name", REPORTS)
def test_texts_in_pictures_are_whole_and_apart(open_page, name):
    page = open_page(name)
    assert page.evaluate(TEXTS_IN_PICTURES) == []


def test_layout_does_not_shift(open_page):
    page = open_page("3")
    shift = page.evaluate(
        """new Promise(done => {
            let total = 0;
            new PerformanceObserver(list => {
                for (const entry of list.getEntries()) total += entry.value;
            }).observe({type: "layout-shift", buffered: true});
            setTimeout(() => done(total), 300);
        })"""
    )
    assert shift < 0.01


def test_print_shows_whole_tables(open_page):
    page = open_page("5")
    page.emulate_media(media="print")
    boxes = page.locator(".tall")
    shown = boxes.evaluate_all("boxes => boxes.map(box => getComputedStyle(box).overflowY)")
    assert shown == ["visible"]


def test_notebook_cell_is_isolated(open_page):
    page = open_page("notebook")
    frame = page.frame_locator("iframe")
    assert frame.locator("h1").inner_text() == "A <b>title</b> & more"
    # The style of the report does not reach the notebook.
    family = "e => getComputedStyle(e).fontFamily"
    assert "system-ui" not in page.locator("#own").evaluate(family)
    assert page.locator("iframe").get_attribute("sandbox") == ""
