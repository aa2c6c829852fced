"""Small modules of PyTorch. Import it behind pytest.importorskip("torch")."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

Tensor = Any


class Attention(nn.Module):
    """Self-attention as models write it: one projection, reshapes, a permutation."""

    def __init__(self, width: int = 16, heads: int = 4) -> None:
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, width = x.shape
        q, k, v = self.qkv(x).reshape(batch, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        mixed = nn.functional.scaled_dot_product_attention(q, k, v)
        return self.out(mixed.transpose(1, 2).reshape(batch, tokens, width))


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attn, self.norm = Attention(), nn.LayerNorm(16)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x + self.attn(x))


class Encoder(nn.Module):
    """Layers of attention in a list."""

    def __init__(self, depth: int = 2) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Block() for _ in range(depth)])

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


class Counter(nn.Module):
    """A layer that counts its calls in a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(1))
        self.linear = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        self.calls.add_(1)
        return self.linear(x) * self.calls


class Eigenvalues(nn.Module):
    """An operator that ONNX has no equivalent of, in a module of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = _Eigenvalues()

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x)


class _Eigenvalues(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.linalg.eigh(x)[0]


class Branching(nn.Module):
    """Control flow that depends on values: a graph break for dynamo."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        if x.sum() > 0:
            x = x * 2
        return self.second(x)


class Regularised(nn.Module):
    """Dropout and batch normalization, which training mode changes."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.norm, self.drop = nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.5)

    def forward(self, x: Tensor) -> Tensor:
        return self.drop(self.norm(self.linear(x)))


class Named(nn.Module):
    """A module that returns a dictionary."""

    def forward(self, x: Tensor, scale: Tensor) -> dict[str, Tensor]:
        return {"scaled": x * scale, "total": x.sum()}


def linear() -> nn.Module:
    """Return a small network in evaluation mode."""
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)).eval()
