"""Commands refuse altered model files in one line, and none calls it an internal error."""

import copy
import hashlib
import json
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.usefixtures("model")


def alter(place, value, path="model.json"):
    """Write ``altered.json``: a model file with another entry and a matching checksum."""
    document = json.loads(Path(path).read_text())
    *names, last = place
    holder = document
    for name in names:
        holder = holder[name]
    holder[last] = copy.deepcopy(value)
    signed = {k: v for k, v in document.items() if k not in ("saved", "checksum")}
    text = json.dumps(signed, sort_keys=True, separators=(",", ":"))
    document["checksum"] = f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
    Path("altered.json").write_text(json.dumps(document))


CALIBRATOR = {"type": "calibrator", "kind": "IRPCalibrator", "parameters": {}, "state": {}}


@pytest.mark.parametrize(
    ("place", "value", "expected"),
    [
        (("model", "parameters", "prior"), {"type": True}, "of type True has no place"),
        (("model", "parameters", "prior"), CALIBRATOR | {"x": 1}, "prior.x: is unknown"),
        (("model", "parameters", "prior"), {"type": "map"}, "expected a calibrator"),
        (("model", "state", "certificate_"), 1.5, "expected the certificate"),
        (("model", "state", "verdict_"), 0.5, "expected a verdict"),
        (("summary", "weight"), "heavy", "summary.weight: expected a number"),
        (("summary", "class_weights"), 3, "summary.class_weights: expected a list"),
        (("summary", "class_weights"), [1, None], "summary.class_weights: expected a list"),
    ],
)
def test_inspect_names_the_altered_entry(run_cli, place, value, expected):
    alter(place, value)
    for words in ([], ["--json"]):
        ran = run_cli("inspect", "altered.json", *words)
        assert (ran.code, ran.err.count("\n")) == (2, 1)
        assert ran.err.startswith("isoroc: error: altered.json: ")
        assert expected in ran.err


def test_figures_of_a_verdict_are_floats(run_cli):
    assert run_cli("fit", "data.csv", "-o", "auto.json", "--cv", "2").code == 0
    alter(("model", "state", "verdict_", "gain"), 10**400, "auto.json")
    ran = run_cli("inspect", "altered.json")
    assert (ran.code, "verdict_.gain: expected float" in ran.err) == (2, True)


@pytest.mark.parametrize("words", [[], ["--unlabelled"]])
@pytest.mark.parametrize("cells", [[1.0] * 9, ["a"] * 10, "0123456789", [10**400] * 10])
def test_monitor_names_the_altered_cells(run_cli, cells, words):
    alter(("summary", "forecast_cells"), cells)
    ran = run_cli("monitor", "altered.json", "data.csv", *words)
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "altered.json: summary.forecast_cells: expected" in ran.err


@pytest.mark.slow
@pytest.mark.project
def test_a_share_of_the_fuzzing():
    fuzz_commands = runpy.run_path(str(ROOT / "benchmarks" / "fuzz.py"))["fuzz_commands"]
    tally = fuzz_commands(150, seed=2)
    assert tally["crashed"] == 0
    assert min(tally["exit code 0"], tally["exit code 2"]) > 20
