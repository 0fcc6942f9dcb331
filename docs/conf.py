"""Sphinx: Markdown through MyST, drawn by Furo. The pages ask no other host."""

from importlib.metadata import version as installed

project = "gpuwise"
author = "the gpuwise authors"
project_copyright = "2026, the gpuwise authors, Apache-2.0"
version = release = installed("gpuwise")

extensions = ["myst_parser"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
nitpicky = True

html_theme = "furo"
html_title = f"gpuwise {release}"
html_show_sphinx = False
