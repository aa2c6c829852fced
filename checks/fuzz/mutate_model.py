"""Random changes of nodes, attributes, types and weights of ONNX models, which stay messages of ONNX."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from tests.model_seeds import SEEDS
from tests.mutated_models import mutated

_NAMES = tuple(SEEDS)


def model_mutated(seeds: Sequence[bytes], random: Random) -> bytes:
    """Return a changed model of a family of operators; the given seeds are for changes of bytes."""
    del seeds
    model, _ = mutated(SEEDS[random.choice(_NAMES)], random)
    data: bytes = model.SerializeToString()
    return data
