"""What a trace says of a GPU's computation in a training step."""

from __future__ import annotations

import re
from dataclasses import dataclass

FORWARD, BACKWARD, OPTIMIZER = "forward", "backward", "optimizer"
# Kernels of cuBLAS, CUTLASS, cuDNN and of attention.
_PRODUCT = re.compile(r"gemm|nvjet|cutlass|xmma|flash|fmha|sdpa|cudnn_generated|conv(?!ert)", re.IGNORECASE)


def is_product(kernel: str) -> bool:
    """Whether a kernel multiplies matrices, by its name; the others move memory."""
    return _PRODUCT.search(kernel) is not None


@dataclass(frozen=True)
class Kernels:
    """Seconds of what a pass consists of."""

    products: float  # of matrices
    others: float  # kernels that move memory
    waits: float = 0.0

    @property
    def seconds(self) -> float:
        return self.products + self.others + self.waits

    def plus(self, other: Kernels) -> Kernels:
        return Kernels(self.products + other.products, self.others + other.others, self.waits + other.waits)


@dataclass(frozen=True)
class Traced:
    """Seconds of a GPU's computation in a step: the mean of `steps` steps. `sequences` were in it."""

    forward: float
    backward: float
    optimizer: float
    idle: float  # of them: no kernel ran
    steps: int
    sequences: int
    kernels: dict[str, Kernels]  # of each phase


def traced_of(kernels: dict[str, Kernels], steps: int, sequences: int) -> Traced:
    """`kernels`: of each phase."""
    forward, backward, optimizer = (kernels[phase].seconds for phase in (FORWARD, BACKWARD, OPTIMIZER))
    idle = sum(one.waits for one in kernels.values())
    return Traced(forward, backward, optimizer, idle, steps, sequences, kernels)
