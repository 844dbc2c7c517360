import re
import runpy
from pathlib import Path

import pytest
from matplotlib.image import imread

from isoroc import plots

pytestmark = pytest.mark.project

ROOT = Path(__file__).resolve().parents[2]
GALLERY = runpy.run_path(str(ROOT / "examples" / "gallery.py"))


@pytest.mark.slow
@pytest.mark.parametrize("name", GALLERY["GALLERY"])
def test_every_figure_of_the_gallery_can_be_drawn(name):
    display = GALLERY["GALLERY"][name]()
    drawn = len(display.figure_.axes)
    assert drawn >= len(display.axes_)
    assert all(ax.has_data() for ax in display.figure_.axes)
    assert display.table.n_rows > 3


def test_every_display_is_in_the_gallery_and_documented():
    shown = (ROOT / "examples" / "gallery.py").read_text()
    document = (ROOT / "docs" / "displays.md").read_text()
    for name in dir(plots):
        assert f"{name}.from_" in shown
        assert f"`{name}`" in document
    for name in GALLERY["GALLERY"]:
        assert f"gallery/{name}.png" in document
        assert (ROOT / "docs" / "gallery" / f"{name}.png").stat().st_size < 300_000


def test_every_question_has_a_picture():
    section = (ROOT / "docs" / "displays.md").read_text().split("\n## ")[1]
    shown = re.findall(r"gallery/([\w-]+)\.png", section)
    assert len(shown) == section.count("\n### ") == section.count("display = ")
    for name in shown:
        assert (ROOT / "docs" / "gallery" / f"{name}.png").stat().st_size < 300_000


def test_the_command_writes_figures(tmp_path, monkeypatch, capsys):
    few = {name: GALLERY["GALLERY"][name] for name in ("decision-curve", "roc")}
    monkeypatch.setitem(GALLERY["main"].__globals__, "GALLERY", few)
    monkeypatch.setitem(GALLERY["main"].__globals__, "questions", dict)
    GALLERY["main"](["--out", str(tmp_path / "new"), "--style", "dark_background"])
    written = sorted((tmp_path / "new").iterdir())
    assert [path.stem for path in written] == sorted(few)
    assert imread(written[0])[0, 0, :3].tolist() == [0, 0, 0]
    assert len(capsys.readouterr().out.splitlines()) == 2
