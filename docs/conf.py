"""Sphinx: builds without the network, and a warning is an error (``make docs``)."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

project = "django_jobqueue"
author = "the django_jobqueue contributors"
copyright = author
release = re.findall(r'__version__ = "(.+)"', (ROOT / "django_jobqueue/__init__.py").read_text())[0]
version = release

extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
nitpicky = True

# So that [text](page.md#heading) is checked for its heading too.
myst_heading_anchors = 4

html_theme = "furo"
html_title = f"django_jobqueue {release}"
html_static_path = ["_static"]
html_copy_source = False
