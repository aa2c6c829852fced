"""Small valid models of one kind of operator each, whose mutations tests import and build."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from tests.onnx_models import model_of

VICTIM: Final = "victim"
"""Name of the node under test."""


@dataclass(frozen=True)
class ModelSeed:
    """A valid model of one operator.

    Attributes:
        inputs: Declarations of the graph's inputs.
        node: The operator with its attributes and arguments.
        weights: Initializers by name.
        opset: Version of the operators.
        domain: A further domain that the node is of.
        others: Results of the node behind the first one.
    """

    inputs: str
    node: str
    weights: tuple[tuple[str, Any], ...] = ()
    opset: int = 23
    domain: str = ""
    others: tuple[str, ...] = ()

    def model(self) -> Any:
        """The model; its node is called VICTIM."""
        model = model_of(
            f"g ({self.inputs}) => (y) {{ {', '.join(('y', *self.others))} = {self.node} }}",
            opset=self.opset,
            imports=f'"{self.domain}": 1' if self.domain else "",
            ir_version=10,
            **dict(self.weights),
        )
        model.graph.node[0].name = VICTIM
        return model


def floats(*shape: int) -> Any:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def seed(
    inputs: str, node: str, *, opset: int = 23, domain: str = "", others: str = "", **weights: Any
) -> ModelSeed:
    return ModelSeed(inputs, node, tuple(weights.items()), opset, domain, tuple(others.split()))


IMAGE: Final = "float[1,2,6,6] x"
SEQUENCE: Final = "float[4,2,3] x"
INT8: Final = np.array(3, np.int8)
SCALE: Final = np.array(0.5, np.float32)
SCALES: Final = np.array([1, 1, 2, 2], np.float32)
MOMENT: Final = np.ones(2, np.float32)
