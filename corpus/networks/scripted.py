"""TorchScript with control flow."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class EarlyExit(nn.Module):
    """A network that runs its second stage only if the first one has low confidence: If."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(16, width), nn.Linear(width, width)
        self.head = nn.Linear(width, 4)

    def forward(self, x: Tensor) -> Tensor:
        hidden = torch.relu(self.first(x))
        early = self.head(hidden)
        if float(torch.softmax(early, -1).max()) > 0.9:
            return early
        return self.head(torch.relu(self.second(hidden)) + hidden)


class GreedyDecoder(nn.Module):
    """A decoder that generates a fixed number of tokens: Loop."""

    def __init__(self, width: int, steps: int) -> None:
        super().__init__()
        self.embed, self.cell, self.head = (
            nn.Embedding(30, width),
            nn.Linear(2 * width, width),
            nn.Linear(width, 30),
        )
        self.steps = steps

    def forward(self, state: Tensor, token: Tensor) -> Tensor:
        scores = torch.zeros(state.shape[0], 30)
        for _ in range(self.steps):
            state = torch.tanh(self.cell(torch.cat([self.embed(token), state], -1)))
            logits = self.head(state)
            token = logits.argmax(-1)
            scores = scores + logits.softmax(-1)
        return scores


class Pieces(nn.Module):
    """A network that computes a list of parts one at a time: sequences."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.line = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        parts = torch.split(x, 2, dim=1)
        done: list[Tensor] = []
        for part in parts:
            done.append(  # noqa: PERF401  # the recipe tests a list that grows in a loop
                torch.sigmoid(self.line(part))
            )
        return torch.cat(done, dim=1)
