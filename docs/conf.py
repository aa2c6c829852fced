"""Sphinx builds the pages of this folder as a site: `make docs`."""

from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

from intarsia.support.version import VERSION

project = "Intarsia"
release = VERSION
copyright = "the authors of Intarsia, Apache-2.0"  # noqa: A001  # Sphinx's name

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
nitpicky = False  # annotations name types of other libraries, which are not looked up: no network

myst_enable_extensions = ["attrs_block"]
myst_heading_anchors = 3  # as GitHub does, so that links work there too

default_role = "code"  # docstrings write names in single backticks
napoleon_google_docstring = True
napoleon_numpy_docstring = False
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
python_maximum_signature_line_length = 90

html_theme = "pydata_sphinx_theme"
html_title = "Intarsia"
html_show_sourcelink = False
html_theme_options = {
    "navigation_with_keys": False,
    "show_prev_next": True,
    "footer_start": ["copyright"],
    "footer_end": [],
}


def prepare_docstring(
    app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    """Bring a docstring into the form that Sphinx expects, in place.

    Of a module only the first line is kept: the rest lists its files, for readers of the source. Text that is
    indented behind a colon is code, as are the programs behind "Before:" and "After:".
    """
    if what == "module":
        del lines[1:]
    for number in range(len(lines) - 1, -1, -1):
        line, following = lines[number], [*lines[number + 1 :], ""]
        if line in {"Before:", "After:"}:
            lines[number : number + 1] = [f"{line}:", ""]
        elif line.endswith(":") and not following[0] and _indent(following[1:]) > _indent([line]):
            lines[number] = f"{line}:"


def _indent(lines: list[str]) -> int:
    return len(lines[0]) - len(lines[0].lstrip()) if lines else 0


def setup(app: Sphinx) -> None:
    """Connect what changes docstrings, to run before napoleon does, and show Mermaid diagrams as their text.

    GitHub draws them; drawing them here would load a program from another site into the reader's browser.
    """
    app.add_lexer("mermaid", TextLexer)
    app.connect("autodoc-process-docstring", prepare_docstring, priority=400)
