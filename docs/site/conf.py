"""What Sphinx is told. `build.py` beside this file writes the pages and runs it."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import docstrings  # noqa: E402

import hogwild  # noqa: E402

project = "Hogwild"
version = release = hogwild.__version__
html_title = f"Hogwild {version}"
html_theme = "furo"
html_static_path = [str(HERE / "static")]
html_css_files = ["hogwild.css"]
html_copy_source = html_show_sphinx = False
extensions = ["myst_parser", "sphinx.ext.autodoc"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4  # links to headings as they are on other sites
autodoc_default_options = {"member-order": "bysource"}
toc_object_entries = False
pygments_style, pygments_dark_style = "tango", "github-dark"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
maximum_signature_line_length = 80


def setup(app: Any) -> None:
    """Docstrings are read by the rules of the house; signatures say types, not how help shows them."""

    def read(app: Any, kind: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
        lines[:] = docstrings.as_rst(lines)

    def sign(app: Any, kind: str, name: str, value: Any, options: Any, signature: Any, returned: Any) -> Any:
        if not signature:
            return None
        plain = re.sub(r"Annotated\[(.*?), [~\w.]*Shown\([^)]*\)\]", r"\1", signature)
        return re.sub(r"= <[^<>]*>", "= ...", plain), returned

    app.connect("autodoc-process-signature", sign)
    app.connect("autodoc-process-docstring", read)
