"""ONNX models in and out.

read_model       file, bytes or message -> message without weights, weights as arrays
wire             the only module with protobuf's wire format: finds weights without parsing them
external_data    weights in files beside the model
normal_form      one spelling of each thing that ONNX allows several of; text_check: every text is UTF-8
opset            any opset -> the pinned one; export_opset: and back
legacy_ops       what onnx would convert wrongly, of them group_normalization with scales per group
label_encoder    LabelEncoder of version 1; zip_map: tensors instead of maps
graph_check      checks with errors that name the node
shapes           shapes that the user fixes and the model declares; symbolic_shapes: shapes that onnx infers
importer         message -> program; constant_node: the values of Constant nodes
import_limits    how large values and expanded functions may be
exporter         program -> message; emitter: expressions -> nodes; graph_results: what a nested
                 graph returns; finishing: last touches
"""

from intarsia.frontend.onnx.exporter import OnnxSource, onnx_source, to_onnx
from intarsia.frontend.onnx.import_limits import UNLIMITED, ImportLimits, default_limits
from intarsia.frontend.onnx.importer import from_onnx, import_notes

__all__ = [
    "UNLIMITED",
    "ImportLimits",
    "OnnxSource",
    "default_limits",
    "from_onnx",
    "import_notes",
    "onnx_source",
    "to_onnx",
]
