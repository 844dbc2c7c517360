import json
import re

import numpy as np
import pytest
from reproduction.experiments import PROCEDURES, claims, experiment, repeat
from reproduction.results import Heading, surplus, to_json, to_markdown

pytestmark = pytest.mark.project


@pytest.fixture(scope="module")
def written(small, forecasts, rows):  # noqa: ARG001
    done = [experiment(forecasts(K)) for K in (2, 3)]
    measured = [claims(each) for each in done]
    repetition = repeat(rows, (2, 4), (1, 2), classifiers=("naive Bayes",))
    arguments = (Heading("generated", "not the paper's"), done, measured, repetition)
    return done, repetition, to_json(*arguments), to_markdown(*arguments)


def tables(page):
    """Rows of all tables as lists of cells."""
    lines = [line for line in page.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_json_has_all_results(written):
    done, repetition, results, _ = written
    again = json.loads(json.dumps(results))
    assert again["data"] == "generated"
    assert again["note"] == "not the paper's"
    for each, found in zip(done, again["experiments"], strict=True):
        assert found["classes"] == each.n_classes
        assert [r["procedure"] for r in found["results"]] == ["before", *PROCEDURES]
        for outcome, result in zip(each.outcomes(), found["results"], strict=True):
            assert result["n_bins"] == outcome.n_bins
            assert result["normalised"] == outcome.normalised._asdict()
            assert (result["as_published"] is None) == (outcome.as_published is None)
        for name, run in each.runs.items():
            assert found["stages"][name]["n_bins"] == run.n_bins.tolist()
    assert len(again["repetition"]) == len(repetition)
    for entry in again["repetition"]:
        measures = repetition[entry["classes"], entry["classifier"]]
        for name, mean in entry["means"].items():
            assert mean == pytest.approx(measures[name].mean())


def test_markdown_shows_every_outcome_in_every_way(written):
    done, _, _, page = written
    assert "not the paper's" in page
    shown = {tuple(row[:3]): row[3:] for row in tables(page) if len(row) == 9}
    for each in done[-1:]:  # names repeat for each number of classes, and the last ones remain
        for outcome in each.outcomes():
            bins = "" if outcome.n_bins is None else str(outcome.n_bins)
            for way, scores in (
                ("as published", outcome.as_published),
                ("normalised", outcome.normalised),
            ):
                if scores is None:
                    assert (outcome.procedure, bins, way) not in shown
                    continue
                cells = shown[outcome.procedure, bins, way]
                volumes = (outcome.cal_volume, outcome.test_volume)
                assert cells == [f"{value:.4f}" for value in (*scores, *volumes)]


def test_markdown_explains_why_published_figures_are_too_low(written):
    page = written[3].replace("\n", " ")
    for K in (2, 3):
        assert f"{surplus(K):.3f} for {K} classes" in page
        assert surplus(K) == pytest.approx(np.log((1 + 0.05 * K) / 1.05))


def test_all_rows_of_a_table_have_as_many_cells_as_its_head(written):
    for block in re.findall(r"(?:^\|.*\n)+", written[3], re.MULTILINE):
        assert len({len(row) for row in tables(block)}) == 1
        assert len(tables(block)) > 2


def test_empty_sections_are_left_out(written):
    done, repetition, _, page = written
    measured = [claims(each) for each in done]
    assert "Repetition" not in to_markdown(Heading("generated"), done, measured, {})
    four = {key: measures for key, measures in repetition.items() if key[0] == 4}
    title = "Hull volume of the calibration rows"
    assert title in page
    assert title not in to_markdown(Heading("generated"), done, measured, four)
