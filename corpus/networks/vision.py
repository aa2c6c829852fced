"""Detection, segmentation, video and diffusion networks, small."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn


def conv_block(
    inputs: int, outputs: int, stride: int = 1, kernel: int = 3, groups: int = 1, activation: Any = nn.ReLU
) -> Any:
    """Return a convolution with batch norm and activation."""
    conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(outputs), activation())


class UNet(nn.Module):
    """U-Net with transposed convolutions or resizing on the way up."""

    def __init__(self, width: int, levels: int, transposed: bool) -> None:
        super().__init__()
        widths = [width * 2**level for level in range(levels)]
        self.down = nn.ModuleList(
            nn.Sequential(conv_block(before, after), conv_block(after, after))
            for before, after in zip([3, *widths], widths, strict=False)
        )
        self.up, self.merge = nn.ModuleList(), nn.ModuleList()
        for low, high in zip(widths[::-1], widths[-2::-1], strict=False):
            resize = nn.Sequential(nn.Upsample(scale_factor=2, mode="bilinear"), nn.Conv2d(low, high, 1))
            self.up.append(nn.ConvTranspose2d(low, high, 2, 2) if transposed else resize)
            self.merge.append(nn.Sequential(conv_block(2 * high, high), conv_block(high, high)))
        self.head = nn.Conv2d(width, 4, 1)

    def forward(self, image: Any) -> Any:
        skipped = []
        for number, block in enumerate(self.down):
            image = block(nn.functional.max_pool2d(image, 2) if number else image)
            skipped.append(image)
        for up, merge, skip in zip(self.up, self.merge, skipped[-2::-1], strict=True):
            image = merge(torch.cat([up(image), skip], 1))
        return self.head(image)


class DeepLab(nn.Module):
    """Parallel dilated convolutions of several rates over a small backbone (DeepLab)."""

    def __init__(self, width: int, rates: tuple[int, ...]) -> None:
        super().__init__()
        self.backbone = nn.Sequential(
            conv_block(3, width, 2), conv_block(width, 2 * width, 2), conv_block(2 * width, 2 * width, 2)
        )
        self.branches = nn.ModuleList(
            nn.Sequential(nn.Conv2d(2 * width, width, 3, padding=rate, dilation=rate), nn.ReLU())
            for rate in rates
        )
        self.pooled = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(2 * width, width, 1), nn.ReLU())
        self.head = nn.Conv2d(width * (len(rates) + 1), 6, 1)

    def forward(self, image: Any) -> Any:
        features = self.backbone(image)
        pooled = nn.functional.interpolate(self.pooled(features), features.shape[-2:], mode="bilinear")
        joined = torch.cat([branch(features) for branch in self.branches] + [pooled], 1)
        return nn.functional.interpolate(
            self.head(joined), image.shape[-2:], mode="bilinear", align_corners=False
        )


class Yolo(nn.Module):
    """Anchor-free detector with two scales, decoded boxes and optional non-maximum suppression."""

    def __init__(self, width: int, classes: int, suppress: bool) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            conv_block(3, width, 2, activation=nn.SiLU), conv_block(width, 2 * width, 2, activation=nn.SiLU)
        )
        self.low = conv_block(2 * width, 4 * width, 2, activation=nn.SiLU)
        self.lower = conv_block(4 * width, 8 * width, 2, activation=nn.SiLU)
        self.pool = nn.ModuleList(nn.MaxPool2d(size, 1, size // 2) for size in (5, 9))
        self.reduce = conv_block(24 * width, 4 * width, kernel=1, activation=nn.SiLU)
        self.up = nn.Upsample(scale_factor=2, mode="nearest")
        self.merge = conv_block(8 * width, 4 * width, activation=nn.SiLU)
        self.heads = nn.ModuleList(nn.Conv2d(4 * width, 5 + classes, 1) for _ in range(2))
        self.suppress = suppress

    def forward(self, image: Any) -> Any:
        low = self.low(self.stem(image))
        lower = self.lower(low)
        lower = self.reduce(torch.cat([lower, *(pool(lower) for pool in self.pool)], 1))
        merged = self.merge(torch.cat([low, self.up(lower)], 1))
        decoded = [
            self._decode(head(x), step)
            for head, x, step in zip(self.heads, (merged, lower), (8, 16), strict=True)
        ]
        boxes, scores = (torch.cat(parts, 1) for parts in zip(*decoded, strict=True))
        if not self.suppress:
            return boxes, scores
        import torchvision

        best, labels = scores[0].max(1)
        kept = torchvision.ops.nms(boxes[0], best, 0.5)[:20]
        return boxes[0][kept], best[kept], labels[kept]

    def _decode(self, raw: Any, step: int) -> tuple[Any, Any]:
        batch, _, rows, columns = raw.shape
        grid = torch.stack(torch.meshgrid(torch.arange(columns), torch.arange(rows), indexing="xy"), -1)
        raw = raw.permute(0, 2, 3, 1)
        centre = (raw[..., :2].sigmoid() * 2 - 0.5 + grid) * step
        half = (raw[..., 2:4].sigmoid() * 2) ** 2 * step
        boxes = torch.cat([centre - half, centre + half], -1).reshape(batch, -1, 4)
        scores = (raw[..., 4:5].sigmoid() * raw[..., 5:].sigmoid()).reshape(batch, rows * columns, -1)
        return boxes, scores


class Split3d(nn.Module):
    """Convolutions over rows and columns, then over time (R(2+1)D)."""

    def __init__(self, width: int, blocks: int) -> None:
        super().__init__()
        self.stem = nn.Conv3d(3, width, (1, 7, 7), (1, 2, 2), (0, 3, 3))
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.Conv3d(width, width, (1, 3, 3), padding=(0, 1, 1), bias=False),
                nn.BatchNorm3d(width),
                nn.ReLU(),
                nn.Conv3d(width, width, (3, 1, 1), padding=(1, 0, 0), bias=False),
                nn.BatchNorm3d(width),
            )
            for _ in range(blocks)
        )
        self.head = nn.Linear(width, 10)

    def forward(self, video: Any) -> Any:
        video = torch.relu(self.stem(video))
        for block in self.blocks:
            video = torch.relu(video + block(video))
        return self.head(nn.functional.adaptive_avg_pool3d(video, 1).flatten(1))


class X3d(nn.Module):
    """Depthwise 3-D convolutions with squeeze and excite (X3D)."""

    def __init__(self, width: int, blocks: int) -> None:
        super().__init__()
        self.stem = nn.Conv3d(3, width, (3, 3, 3), (1, 2, 2), 1)
        self.blocks = nn.ModuleList(_X3dBlock(width, 2 * width) for _ in range(blocks))
        self.pool, self.head = nn.MaxPool3d((1, 2, 2)), nn.Linear(width, 10)

    def forward(self, video: Any) -> Any:
        video = self.pool(torch.relu(self.stem(video)))
        for block in self.blocks:
            video = video + block(video)
        return self.head(video.mean((2, 3, 4)))


class _X3dBlock(nn.Module):
    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.expand = nn.Conv3d(width, inner, 1)
        self.depthwise = nn.Conv3d(inner, inner, 3, padding=1, groups=inner, bias=False)
        self.norm = nn.BatchNorm3d(inner)
        self.squeeze, self.excite = nn.Conv3d(inner, 8, 1), nn.Conv3d(8, inner, 1)
        self.project = nn.Conv3d(inner, width, 1)

    def forward(self, video: Any) -> Any:
        video = self.norm(self.depthwise(torch.relu(self.expand(video))))
        weights = self.excite(torch.relu(self.squeeze(nn.functional.adaptive_avg_pool3d(video, 1))))
        return self.project(nn.functional.silu(video * weights.sigmoid()))


class DiffusionUNet(nn.Module):
    """Residual blocks with time embeddings, group norm, and attention to the image and to a text."""

    def __init__(self, width: int, text: int, heads: int) -> None:
        super().__init__()
        self.width, wide = width, 2 * width
        self.time = nn.Sequential(nn.Linear(width, 4 * width), nn.SiLU(), nn.Linear(4 * width, 4 * width))
        self.enter = nn.Conv2d(4, width, 3, padding=1)
        self.first = _TimedBlock(width, width, 4 * width)
        self.down = nn.Conv2d(width, wide, 3, 2, 1)
        self.second = _TimedBlock(wide, wide, 4 * width)
        self.attention = _SpatialAttention(wide, text, heads)
        self.up = nn.Sequential(
            nn.Upsample(scale_factor=2.0, mode="nearest"), nn.Conv2d(wide, width, 3, padding=1)
        )
        self.third = _TimedBlock(2 * width, width, 4 * width)
        self.leave = nn.Sequential(nn.GroupNorm(4, width), nn.SiLU(), nn.Conv2d(width, 4, 3, padding=1))

    def forward(self, sample: Any, timestep: Any, text: Any) -> Any:
        half = self.width // 2
        rates = torch.exp(torch.arange(half) * (-math.log(10000) / half))
        angles = timestep[:, None].float() * rates[None]
        time = self.time(torch.cat([angles.cos(), angles.sin()], -1))
        first = self.first(self.enter(sample), time)
        second = self.attention(self.second(self.down(first), time), text)
        return self.leave(self.third(torch.cat([self.up(second), first], 1), time))


class _TimedBlock(nn.Module):
    def __init__(self, inputs: int, outputs: int, time: int) -> None:
        super().__init__()
        self.first = nn.Sequential(
            nn.GroupNorm(4, inputs), nn.SiLU(), nn.Conv2d(inputs, outputs, 3, padding=1)
        )
        self.time = nn.Linear(time, outputs)
        self.second = nn.Sequential(
            nn.GroupNorm(4, outputs), nn.SiLU(), nn.Conv2d(outputs, outputs, 3, padding=1)
        )
        self.skip = nn.Identity() if inputs == outputs else nn.Conv2d(inputs, outputs, 1)

    def forward(self, x: Any, time: Any) -> Any:
        inner = self.first(x) + self.time(nn.functional.silu(time))[:, :, None, None]
        return self.skip(x) + self.second(inner)


class _SpatialAttention(nn.Module):
    def __init__(self, width: int, text: int, heads: int) -> None:
        super().__init__()
        self.norm, self.heads = nn.GroupNorm(4, width), heads
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
        self.queries = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(2))
        self.keys = nn.ModuleList(nn.Linear(size, 2 * width, bias=False) for size in (width, text))
        self.outs = nn.ModuleList(nn.Linear(width, width) for _ in range(2))
        self.gate, self.close = nn.Linear(width, 4 * width), nn.Linear(2 * width, width)

    def forward(self, x: Any, text: Any) -> Any:
        batch, width, rows, columns = x.shape
        rest = self.norm(x).flatten(2).transpose(1, 2)
        for number in range(2):
            normed = self.norms[number](rest)
            memory = normed if number == 0 else text
            key, value = self.keys[number](memory).chunk(2, -1)
            query, key, value = (self._split(tensor) for tensor in (self.queries[number](normed), key, value))
            mixed = nn.functional.scaled_dot_product_attention(query, key, value)
            rest = rest + self.outs[number](mixed.transpose(1, 2).reshape(batch, rows * columns, width))
        value, gate = self.gate(self.norms[2](rest)).chunk(2, -1)
        rest = rest + self.close(value * nn.functional.gelu(gate))
        return x + rest.transpose(1, 2).reshape(batch, width, rows, columns)

    def _split(self, x: Any) -> Any:
        return x.reshape(x.shape[0], x.shape[1], self.heads, -1).transpose(1, 2)


class ImageDecoder(nn.Module):
    """The decoder of a latent diffusion model: group norms, residual blocks, attention, nearest resizing."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.enter = nn.Conv2d(4, width, 3, padding=1)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.GroupNorm(4, width), nn.SiLU(), nn.Conv2d(width, width, 3, padding=1))
            for _ in range(3)
        )
        self.norm, self.qkv, self.out = (
            nn.GroupNorm(4, width),
            nn.Conv2d(width, 3 * width, 1),
            nn.Conv2d(width, width, 1),
        )
        self.leave = nn.Conv2d(width, 3, 3, padding=1)

    def forward(self, latent: Any) -> Any:
        x = self.enter(latent / 0.18215)
        batch, width, rows, columns = x.shape
        query, key, value = self.qkv(self.norm(x)).flatten(2).chunk(3, 1)
        weights = torch.softmax(query.transpose(1, 2) @ key * width**-0.5, -1)
        x = x + self.out((value @ weights.transpose(1, 2)).reshape(batch, width, rows, columns))
        for number, block in enumerate(self.blocks):
            x = x + block(x)
            if number < 2:
                x = nn.functional.interpolate(x, scale_factor=2.0, mode="nearest")
        return torch.tanh(self.leave(x))
