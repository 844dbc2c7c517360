"""Settings of the documentation site, which `make docs` builds without a network."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

import isoroc

PYPROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"
#: Address of the repository; empty where there is none.
HOME = tomllib.loads(PYPROJECT.read_text("utf-8"))["tool"]["isoroc"]["home"]

project = "isoroc"
author = "The isoroc developers"
copyright = author  # noqa: A001
version = release = isoroc.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_templates", "tutorials/*.py", "tutorials/README.rst", "gallery", "report"]
templates_path = ["_templates"]
nitpicky = False  # types in numpydoc docstrings are prose, such as "array-like of shape (n, K)"
suppress_warnings = ["config.cache"]  # sphinx-gallery keeps functions in its settings

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
autosummary_generate = True
autodoc_typehints = "none"  # docstrings state the types
autodoc_mock_imports = ["torch"]  # a gigabyte, for one function
numpydoc_show_class_members = False  # members follow their class on the same page
toc_object_entries_show_parents = "hide"
html_math_renderer = "mathml"  # browsers draw it: no script, no network
numpydoc_xref_param_type = False
# Order and form of the sections; tests/test_docstrings.py checks which sections there are.
numpydoc_validation_checks = {
    "GL06",
    "GL07",
    "GL08",
    "PR02",
    "PR03",
    "PR06",
    "PR10",
    "SA02",
    "SA03",
    "SA04",
    "SS01",
    "SS02",
    "YD01",
}
numpydoc_validation_exclude = {
    r"isoroc\.metrics\.scorers$",  # a mapping
    r"\.(name|resolution|rows)$",  # attributes that are None by default, which has no docstring
    r"isoroc\.Table\.(clear|copy|items|keys|values)$",  # of dict
}
default_role = "py:obj"  # `name` in docstrings is a link where there is such a name, else code
copybutton_exclude = ".linenos, .gp, .go"

sphinx_gallery_conf = {
    "examples_dirs": ["tutorials"],
    "gallery_dirs": ["generated/tutorials"],
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 10**6,
    "write_computation_times": False,
    "remove_config_comments": True,
    "abort_on_example_error": True,
    "copyfile_regex": r".*\.(?!py)",
}

html_theme = "pydata_sphinx_theme"
html_title = "isoroc"
html_static_path = ["_static"]
html_css_files = ["isoroc.css"]
html_show_sourcelink = False
html_context = {"default_mode": "auto"}  # light or dark as the reader's system is
html_theme_options = {
    "icon_links": [{"name": "Repository", "url": HOME, "icon": "fa-solid fa-code"}] if HOME else [],
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}
html_sidebars = {"changelog": [], "index": []}


def link_outside(app: Any, docname: str, source: list[str]) -> None:  # noqa: ARG001
    """Point links to files outside docs/ to the repository; without its address, keep the text."""
    link = rf"[\1]({HOME}/blob/main/\2)" if HOME else r"\1"
    source[0] = re.sub(r"\[([^\]]+)\]\(\.\./([^)]+)\)", link, source[0])


# What users call on calibrators, classifiers and loaded maps; the class describes attributes.
METHODS = {
    "apply",
    "carry_over",
    "coordinates",
    "fit",
    "fit_counts",
    "predict",
    "predict_frame",
    "predict_interval",
    "predict_proba",
    "predict_std",
    "save",
    "staged_predict_proba",
    "tables",
    "verify",
}
FLAGS = {"checksum"}
HOOKS = {"Counts.sample", "Counts.uses_folds"}


def skip_member(app: Any, what: str, name: str, thing: Any, *_: Any) -> bool | None:  # noqa: ARG001
    """Leave out hooks, and members that scikit-learn and the standard library define."""
    module = getattr(thing, "__module__", None)
    module = module or getattr(getattr(thing, "fget", None), "__module__", None) or "isoroc"
    if what != "class":
        return None
    if (
        name in FLAGS
        or not module.startswith("isoroc")
        or getattr(thing, "__qualname__", "") in HOOKS
    ):
        return True
    if module.startswith(("isoroc._calibrators", "isoroc._calibrators.classifier", "isoroc._maps")):
        return name not in METHODS or None
    return None


def visit_math(writer: Any, node: nodes.math) -> None:
    """Write a formula as MathML, which docutils translates."""
    writer.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def visit_display(writer: Any, node: nodes.math_block) -> None:
    """Write a displayed formula as MathML."""
    writer.body.append(f'<div class="formula">{tex2mathml(node.astext(), as_block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Any) -> None:
    """Connect the functions above."""
    app.connect("source-read", link_outside)
    app.connect("autodoc-skip-member", skip_member)
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_display, None))
