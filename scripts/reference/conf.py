"""Sphinx's settings. The pages are those that scripts/docs has put beside this file's copy."""

project = "Waywiser"
extensions = ["myst_parser"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 6
primary_domain = None
highlight_language = "text"
html_theme = "furo"
html_title = "Waywiser"
html_static_path = ["style"]
html_css_files = ["wide.css"]
html_show_copyright = False
html_copy_source = False
html_show_sourcelink = False
add_module_names = False
toc_object_entries_show_parents = "hide"
maximum_signature_line_length = 100
