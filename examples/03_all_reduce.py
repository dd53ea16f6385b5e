"""Averages the gradients of all ranks, as data-parallel training does.

waywiser run -n 4 python examples/03_all_reduce.py
"""

import numpy as np

import waywiser as ww

group = ww.join()
random = np.random.default_rng(group.rank)

# Each rank has its own samples of y = 3 x - 1.
x = random.uniform(-1, 1, 1000)
y = 3 * x - 1

weights = np.zeros(2)
for _step in range(200):
    error = weights[0] * x + weights[1] - y
    gradient = np.array([(error * x).mean(), error.mean()])
    weights -= 0.5 * group.all_reduce(gradient, op="avg")

# All ranks have the same weights, to the last bit.
least, most = group.all_reduce(weights, op="min"), group.all_reduce(weights, op="max")
if group.rank == 0:
    print(f"y = {weights[0]:.3f} x {weights[1]:+.3f}; equal on all ranks: {bool((least == most).all())}", flush=True)
