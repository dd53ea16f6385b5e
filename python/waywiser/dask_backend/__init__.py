"""A communication back end of dask: addresses `waywiser://HOST:PORT`. Needs distributed, which is optional."""
