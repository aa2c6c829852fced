"""What toolchains of this package would like to have done to a program first (seed collage_rfc, appendix C).

A preamble is a pipeline with the name `optimize_for_<toolchain>`; a package with a toolchain registers its
own. It writes a program as its engine can take it. The engine's candidates get it, and no others: what helps
one engine may be slower on another.
"""

from __future__ import annotations

from intarsia.passes import DecomposeMl, DecomposeSwish, FoldConstant, InferType
from intarsia.transform import Sequential, register_pipeline


@register_pipeline("optimize_for_onnxruntime")
def optimize_for_onnxruntime() -> Sequential:
    """Return passes that take apart what ONNX Runtime has no kernel for; it fuses `x * sigmoid(x)` again."""
    return Sequential([InferType(), DecomposeSwish()])


@register_pipeline("optimize_for_openvino")
def optimize_for_openvino() -> Sequential:
    """Return passes that say with ONNX's operators what OpenVINO cannot read: it has none of ai.onnx.ml."""
    return Sequential([InferType(), DecomposeMl(), FoldConstant()])
