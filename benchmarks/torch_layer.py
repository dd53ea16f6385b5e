"""The model that `torch_training.py` and `torch_steps.py` train."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional


class Layer(nn.Module):
    """A block of a transformer with causal attention; tokens of `width` numbers, heads of 128."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, tokens, _ = x.shape
        parts = self.qkv(self.first(x)).view(batch, tokens, -1, 3, 128)  # a rank has some of the heads, or all
        mixed = functional.scaled_dot_product_attention(*parts.permute(3, 0, 2, 1, 4), is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, tokens, -1))
        return x + self.down(functional.gelu(self.up(self.second(x))))
