"""Simulated clusters: cluster files, costs of parts, sweeps. The simulator itself is in the core."""
