"""Proves settings against the defaults by the libraries' benchmarks, and says what they are worth. See README.md."""
