"""Small realistic inputs: images, texts, sounds and tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from corpus.draw import Draw

Array = npt.NDArray[Any]


def image(draw: Draw, *shape: int) -> Array:
    """Return normalised images or videos: smooth areas with edges between them, and some noise."""
    coarse = draw.values.standard_normal((*shape[:-2], 5, 5))
    rows = np.linspace(0, 4.99, shape[-2]).astype(int)
    columns = np.linspace(0, 4.99, shape[-1]).astype(int)
    areas = coarse[..., rows[:, None], columns]
    return np.asarray(areas + 0.2 * draw.values.standard_normal(shape), np.float32)


def tokens(draw: Draw, batch: int, length: int, vocabulary: int) -> Array:
    """Return token ids; low ids are much more frequent, as in text."""
    ids = (vocabulary * draw.values.random((batch, length)) ** 3).astype(np.int64)
    return np.clip(ids, 0, vocabulary - 1)


def prefix_mask(draw: Draw, batch: int, length: int) -> Array:
    """Return attention masks of padded texts: the first is full, the others are shorter."""
    lengths = draw.values.integers(length // 2, length, batch)
    lengths[0] = length
    return (np.arange(length) < lengths[:, None]).astype(np.int64)


def sound(draw: Draw, batch: int, samples: int) -> Array:
    """Return waves of a few tones with noise, at 16 kHz."""
    times = np.arange(samples) / 16000
    tones = draw.values.uniform(80, 3000, (batch, 4, 1))
    loudness = draw.values.uniform(0.05, 0.4, (batch, 4, 1))
    waves = (loudness * np.sin(2 * np.pi * tones * times)).sum(1)
    return np.asarray(waves + 0.02 * draw.values.standard_normal(waves.shape), np.float32)


def table(draw: Draw, rows: int, columns: int) -> Array:
    """Return columns of numbers on very different scales."""
    scales = 10.0 ** draw.values.integers(-2, 4, columns)
    return np.asarray(draw.values.standard_normal((rows, columns)) * scales, np.float32)
