"""Settings of the documentation site, which `make docs` builds without a network."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import isoroc

ROOT = Path(__file__).resolve().parents[1]
SOURCE = "https://github.com/isoroc/isoroc/blob/main"

project = "isoroc"
author = "The isoroc developers"
copyright = author  # noqa: A001
version = release = isoroc.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
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
numpydoc_xref_param_type = False
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
html_theme_options = {
    "github_url": "https://github.com/isoroc/isoroc",
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
    """Point links to files outside docs/ to the repository, where these files are."""
    source[0] = re.sub(r"\]\(\.\./([^)]+)\)", rf"]({SOURCE}/\1)", source[0])


def skip_foreign(
    app: Any,  # noqa: ARG001
    what: str,
    name: str,  # noqa: ARG001
    thing: Any,
    skip: bool,  # noqa: FBT001
    options: Any,  # noqa: ARG001
) -> bool | None:
    """Leave out members that scikit-learn and the standard library define."""
    module = getattr(thing, "__module__", None) or getattr(
        getattr(thing, "fget", None), "__module__", None
    )
    if what == "class" and module is not None and not module.startswith("isoroc"):
        return True
    return skip


def setup(app: Any) -> None:
    """Connect the two functions above."""
    warnings.filterwarnings("ignore", category=DeprecationWarning)
    app.connect("source-read", link_outside)
    app.connect("autodoc-skip-member", skip_foreign)
