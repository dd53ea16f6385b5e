"""Sphinx's settings. The pages are those that scripts/docs has put beside this file's copy."""

from pathlib import Path

project = "Waywiser"
extensions = ["myst_parser"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 6
primary_domain = None
cpp_id_attributes = ["__device__", "__noinline__"]
highlight_language = "text"
html_theme = "furo"
html_title = "Waywiser"
html_static_path = ["style"]
html_css_files = ["wide.css"]
html_search_scorer = str(Path(__file__).parent / "style/scorer.js")
html_show_search_summary = False  # a page that is a file may not read others
html_show_copyright = False
html_copy_source = False
html_show_sourcelink = False
add_module_names = False
toc_object_entries_show_parents = "hide"
maximum_signature_line_length = 100


def shorten_navigation(app, page, template, context, doctree):
    """The side bar has titles of pages only. Without a depth Sphinx copies all headings and entries, and drops them."""
    if tree := context.get("toctree"):
        context["toctree"] = lambda **how: tree(**how | {"maxdepth": 2})


def setup(app):
    app.connect("html-page-context", shorten_navigation, priority=400)  # before the theme's own
    return {"parallel_read_safe": True, "parallel_write_safe": True}
