"""Contributed operators of onnxruntime, defined by ONNX's operators (DESIGN section 14.5).

One file per family; importing this package registers the definitions.
"""

from intarsia.frontend.onnx.contrib import (  # noqa: F401 - they register their definitions
    activations,
    attention,
    convolutions,
    embeddings,
    group_query_attention,
    matrix_products,
    multi_head_attention,
    narrow_weights,
    normalizations,
    quantized_attention,
    quantized_elementwise,
    quantized_layers,
    quantized_products,
    rearrangements,
    rotary_embeddings,
)
from intarsia.frontend.onnx.contrib.contrib_node import ImpliedSizeError
from intarsia.frontend.onnx.contrib.definition import NoDefinitionError, defined_operators, has_definition
from intarsia.frontend.onnx.contrib.expansion import expand

__all__ = ["ImpliedSizeError", "NoDefinitionError", "defined_operators", "expand", "has_definition"]
