"""How the documentation is built.

``pip install ".[docs]"``, then ``sphinx-build -W --keep-going docs docs/_build/html``.
"""

import re
import warnings

import ihgmm

project = "ihgmm"
author = "The ihgmm developers"
copyright = "the ihgmm developers"
version = release = ihgmm.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = [
    "_build",
    "reproduction",
    "**/sg_execution_times.rst",
    "sg_execution_times.rst",
]
templates_path = ["_templates"]
nitpicky = True
nitpick_ignore_regex = [
    (r"py:.*", r"(sklearn|dataclasses)\..*"),  # other projects' pages
    (r"py:.*", r"ihgmm\.paper\.methods\..*"),  # not listed
]

# Pages are Markdown that reads well on a code host too, so formulas are plain text:
# the site needs no network and no script to show them.
myst_enable_extensions = ["attrs_block", "colon_fence", "deflist"]
myst_heading_anchors = 3
suppress_warnings = ["myst.header"]  # pages that are included begin at a lower level

autosummary_generate = True
autodoc_typehints = "none"  # numpydoc gives types in words
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

html_theme = "pydata_sphinx_theme"
html_title = "ihgmm"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": f"ihgmm {release}"},
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "show_toc_level": 2,
    "navigation_depth": 1,  # deeper pages would need a button, which has no name
}
html_sidebars = {
    page: [] for page in ("index", "start", "glossary", "changelog", "citing")
}

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"plot_",
    "abort_on_example_error": False,
    "only_warn_on_example_error": False,
    "show_memory": False,
    "download_all_examples": False,
    "remove_config_comments": True,
    "within_subsection_order": "FileNameSortKey",
    "min_reported_time": 1,
}

# What the site says of other sites cannot be checked where there is no network; pages,
# anchors and files of the site itself are.
linkcheck_ignore = [r"https?://"]

# scikit-learn's own methods whose docstrings refer to pages of its documentation.
THEIRS = {"get_metadata_routing", "set_output"}

RESULTS = re.compile(r"\]\(\.\./benchmarks/results/(\w+)\.md\)")
TOP = "|".join(name for name in ihgmm.__all__ if not name.startswith("_"))
NAMES = re.compile(rf"(?<![`\[])`(?:ihgmm\.)?({TOP}|(?<=ihgmm\.)[a-z][\w.]*\w)`(?!`)")

# Pictures are drawn without a screen.
warnings.filterwarnings("ignore", message=".*FigureCanvasAgg is non-interactive.*")


def skip_member(app, what, name, obj, skip, options):
    """Leave out what scikit-learn adds for its own machinery."""
    if name in THEIRS or re.fullmatch(r"set_\w+_request", name):
        return True
    return None


def link_name(match):
    """Return a link to the reference; only modules keep their full name."""
    name = match[1]
    short = "~" if "." in name or name in ihgmm.__all__ else ""
    return f"{{py:obj}}`{short}ihgmm.{name}`"


def prepare_page(app, docname, source):
    """Make a page of the repository one of the site.

    Links to files outside of the docs go to the pages that show them here, names of the
    package in the text become links to the reference, and the empty line that ends a
    doctest is not shown.
    """
    if app.env.doc2path(docname).suffix != ".md":
        return
    lines, code = [], False
    for line in source[0].splitlines():
        if line.startswith("```"):
            if code and not lines[-1]:
                lines.pop()
            code = not code
        elif not code and not line.startswith("#"):
            line = RESULTS.sub(r"](benchmarks/\1.md)", line)
            line = NAMES.sub(link_name, line)
        lines.append(line)
    source[0] = "\n".join(lines) + "\n"


# What Sphinx writes that a screen reader or a keyboard stumbles on, and what is better:
# a role that ARIA has deprecated, headers without text, tables that scroll but cannot
# be reached.
MENDED = {
    'role="doc-biblioentry"': 'role="listitem"',
    '<th class="head"><p></p></th>': "<td></td>",
    '<table class="table">': '<table class="table" tabindex="0">',
}


def mend_page(app, pagename, templatename, context, doctree):
    """Make a page accessible where Sphinx does not."""
    if "body" in context:
        for old, new in MENDED.items():
            context["body"] = context["body"].replace(old, new)


def setup(app):
    """Connect the functions above."""
    app.connect("html-page-context", mend_page)
    app.connect("autodoc-skip-member", skip_member)
    app.connect("source-read", prepare_page)
