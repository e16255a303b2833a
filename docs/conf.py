"""The documentation site, ``make docs``: pages are read from the whole repository."""

from __future__ import annotations

import sys
from pathlib import Path

import passlib

sys.path.insert(0, str(Path(__file__).parent / "_site"))

project = "passlib"
author = project_copyright = "The passlib developers"
version = release = passlib.__version__
root_doc = "docs/index"
include_patterns = ["docs/**", "example/*/README.md", "*.md"]
exclude_patterns = ["build", ".venv*", "docs/_site", "README.md"]
suppress_warnings = ["myst.header"]

extensions = [
    "header_reference",
    "myst_parser",
    "numpydoc",
    "public_names",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx_copybutton",
]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
autosummary_generate = True
autosummary_ignore_module_all = False
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
nitpicky = False
# Names in docstrings are links where they are documented.
default_role = "py:obj"
copybutton_exclude = ".linenos, .gp, .go"

html_theme = "furo"
html_title = f"passlib {release}"
html_extra_path = ["_site/root"]
html_static_path = ["_site/static"]
html_css_files = ["site.css"]
html_theme_options = {"source_edit_link": "", "navigation_with_keys": True}
html_show_sourcelink = False
linkcheck_anchors = False
