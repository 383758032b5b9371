"""How the documentation is built: `sphinx-build -W --keep-going -b html docs docs/_build/html`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "_ext"))

from firth.version import __version__

project = "Firth"
author = "The Firth authors"
copyright = "The Firth authors"
release = version = __version__

extensions = ["myst_parser", "mathml", "options", "commands", "codes", "api"]
myst_enable_extensions = ["dollarmath", "deflist", "attrs_inline"]
myst_heading_anchors = 3
exclude_patterns = ["_build", "results"]  # results are included by the pages that talk about them

nitpicky = True
highlight_language = "text"
html_theme = "furo"
html_title = f"Firth {__version__}"
html_static_path = ["_static"]
html_css_files = ["firth.css"]
html_math_renderer = "mathml"  # formulas are turned into MathML here: pages load nothing from elsewhere
html_show_sphinx = False
html_copy_source = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#1d5c8f", "color-brand-content": "#1d5c8f"},
    "dark_css_variables": {"color-brand-primary": "#7db8e8", "color-brand-content": "#7db8e8"},
}
