"""Description of a zoo model, available before the model is built."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onnx import ModelProto


class Family(StrEnum):
    """The kind of network, as `intarsia zoo list` groups them."""

    CONVOLUTION = "convolution"
    TRANSFORMER = "transformer"
    GENERATIVE = "generative"
    RECURRENT = "recurrent"


@dataclass(frozen=True, slots=True)
class ZooModel:
    """A model that is built on this machine from a seed, without a download.

    `build(seed)` returns a whole model, weights inside; the same seed gives the same bytes in every process.
    """

    name: str
    family: Family
    description: str
    build: Callable[[int], ModelProto]
