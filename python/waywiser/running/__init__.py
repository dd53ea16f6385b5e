"""Which way the bytes of a running job take, and who decided it."""
