"""The reference site, which `make docs` builds into build/docs."""
