"""The reference site: what `make docs` builds into build/docs."""
