"""Speech, recommender and tabular networks, small."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn


class StreamingGru(nn.Module):
    """A recurrent network over one block of sound features; its state is an input and an output."""

    def __init__(self, features: int, width: int, layers: int) -> None:
        super().__init__()
        self.gru = nn.GRU(features, width, layers, batch_first=True)
        self.head = nn.Linear(width, 29)

    def forward(self, block: Any, state: Any) -> Any:
        hidden, state = self.gru(block, state)
        return self.head(hidden).log_softmax(-1), state


class BidirectionalCtc(nn.Module):
    """Convolutions over a spectrogram, a bidirectional recurrent layer, letters (DeepSpeech 2)."""

    def __init__(self, width: int, kind: str) -> None:
        super().__init__()
        self.convs = nn.Sequential(
            nn.Conv2d(1, 8, (11, 5), (2, 2), (5, 2)), nn.BatchNorm2d(8), nn.Hardtanh(0, 20)
        )
        self.rnn = getattr(nn, kind)(8 * 20, width, bidirectional=True)
        self.head = nn.Linear(2 * width, 29)

    def forward(self, spectrogram: Any) -> Any:
        x = self.convs(spectrogram)
        batch, channels, rows, frames = x.shape
        x = x.reshape(batch, channels * rows, frames).permute(2, 0, 1)
        return self.head(self.rnn(x)[0]).log_softmax(-1)


class PackedRnn(nn.Module):
    """A recurrent layer over texts of several lengths."""

    def __init__(self, width: int, kind: str) -> None:
        super().__init__()
        self.embed, self.rnn = (
            nn.Embedding(60, width),
            getattr(nn, kind)(width, width, batch_first=True, bidirectional=True),
        )
        self.head = nn.Linear(2 * width, 3)

    def forward(self, ids: Any, lengths: Any) -> Any:
        packed = nn.utils.rnn.pack_padded_sequence(self.embed(ids), lengths, batch_first=True)
        hidden, _ = nn.utils.rnn.pad_packed_sequence(self.rnn(packed)[0], batch_first=True)
        return self.head(hidden)


class Conformer(nn.Module):
    """Blocks of half feed-forward layers around attention and a gated depthwise convolution."""

    def __init__(self, features: int, width: int, blocks: int, kernel: int) -> None:
        super().__init__()
        self.enter = nn.Linear(features, width)
        self.blocks = nn.ModuleList(_ConformerBlock(width, kernel) for _ in range(blocks))
        self.head = nn.Linear(width, 29)

    def forward(self, features: Any) -> Any:
        x = self.enter(features)
        for block in self.blocks:
            x = block(x)
        return self.head(x).log_softmax(-1)


class _ConformerBlock(nn.Module):
    def __init__(self, width: int, kernel: int) -> None:
        super().__init__()
        self.halves = nn.ModuleList(
            nn.Sequential(
                nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.SiLU(), nn.Linear(4 * width, width)
            )
            for _ in range(2)
        )
        self.norm, self.attention = nn.LayerNorm(width), nn.MultiheadAttention(width, 4, batch_first=True)
        self.conv_norm, self.gate = nn.LayerNorm(width), nn.Conv1d(width, 2 * width, 1)
        self.depthwise = nn.Conv1d(width, width, kernel, padding=kernel // 2, groups=width)
        self.batch_norm, self.close, self.last = (
            nn.BatchNorm1d(width),
            nn.Conv1d(width, width, 1),
            nn.LayerNorm(width),
        )

    def forward(self, x: Any) -> Any:
        x = x + 0.5 * self.halves[0](x)
        normed = self.norm(x)
        x = x + self.attention(normed, normed, normed, need_weights=False)[0]
        y = nn.functional.glu(self.gate(self.conv_norm(x).transpose(1, 2)), 1)
        x = x + self.close(nn.functional.silu(self.batch_norm(self.depthwise(y)))).transpose(1, 2)
        return self.last(x + 0.5 * self.halves[1](x))


class Dlrm(nn.Module):
    """Dense features and bags of categories, joined by products of all pairs."""

    def __init__(self, width: int, tables: int, bags: bool) -> None:
        super().__init__()
        self.bottom = nn.Sequential(nn.Linear(13, 32), nn.ReLU(), nn.Linear(32, width), nn.ReLU())
        kind = nn.EmbeddingBag if bags else nn.Embedding
        options = {"mode": "sum"} if bags else {}
        self.tables = nn.ModuleList(kind(50 + 10 * number, width, **options) for number in range(tables))
        pairs = (tables + 1) * tables // 2
        self.top = nn.Sequential(nn.Linear(width + pairs, 32), nn.ReLU(), nn.Linear(32, 1))
        self.register_buffer("lower", torch.tril_indices(tables + 1, tables + 1, -1))

    def forward(self, dense: Any, categories: Any) -> Any:
        x = self.bottom(dense)
        rows = [table(categories[number]) for number, table in enumerate(self.tables)]
        joined = torch.stack([x, *rows], 1)
        products = torch.bmm(joined, joined.transpose(1, 2))[:, self.lower[0], self.lower[1]]
        return self.top(torch.cat([x, products], 1)).sigmoid()


class Ncf(nn.Module):
    """Neural collaborative filtering: products of factors and a perceptron, of users and items."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(size, width) for size in (200, 300, 200, 300))
        self.deep = nn.Sequential(
            nn.Linear(2 * width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width), nn.ReLU()
        )
        self.head = nn.Linear(2 * width, 1)

    def forward(self, user: Any, item: Any) -> Any:
        shallow = self.tables[0](user) * self.tables[1](item)
        deep = self.deep(torch.cat([self.tables[2](user), self.tables[3](item)], -1))
        return self.head(torch.cat([shallow, deep], -1)).sigmoid()


class TwoTower(nn.Module):
    """Normalised embeddings of a user's history and of candidates, their products, and the best few."""

    def __init__(self, width: int, best: int) -> None:
        super().__init__()
        self.items, self.best = nn.Embedding(400, width), best
        self.user = nn.Sequential(nn.Linear(width, 64), nn.GELU(), nn.Linear(64, width))
        self.item = nn.Sequential(nn.Linear(width, 64), nn.GELU(), nn.Linear(64, width))

    def forward(self, history: Any, mask: Any, candidates: Any) -> Any:
        weights = mask.float().unsqueeze(-1)
        mean = (self.items(history) * weights).sum(1) / weights.sum(1).clamp(min=1)
        user = nn.functional.normalize(self.user(mean), dim=-1)
        item = nn.functional.normalize(self.item(self.items(candidates)), dim=-1)
        return torch.topk(user @ item.T, self.best, dim=-1)


class TabTransformer(nn.Module):
    """Attention over embedded categories, joined with normalised numbers."""

    def __init__(self, categories: int, numbers: int, width: int, layers: int) -> None:
        super().__init__()
        self.embed, self.norm = nn.Embedding(20 * categories, width), nn.LayerNorm(numbers)
        self.register_buffer("offsets", 20 * torch.arange(categories))
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, 0.0, "gelu", batch_first=True)
        torch.backends.mha.set_fastpath_enabled(False)  # its fused layer has no translation
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Sequential(nn.Linear(categories * width + numbers, 64), nn.SELU(), nn.Linear(64, 2))

    def forward(self, categories: Any, numbers: Any) -> Any:
        x = self.encoder(self.embed(categories + self.offsets)).flatten(1)
        return self.head(torch.cat([x, self.norm(numbers)], 1))
