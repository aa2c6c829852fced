"""What each operator is: schemas, types, fusion kinds (DESIGN section 2).

opset            the pinned opset, schemas by operator
opaque           operators that ONNX does not define, as packages declare them
onnx_types, attribute_protos
                 types and attributes of the language in ONNX's messages and back
register_operator  operators that users and packages register: operator_definition, operator_signature,
                 and defined_domain, which makes opaque ones of them
known_value      small integers known at compile time: shapes, axes, pads
infer            types of calls, through onnx's own inference per node
let_types        types of let variables
control_flow     types of Loop, Scan and SequenceMap, whose bodies are functions
intarsia_ops     the operators that ONNX lacks: counted_rows_op, simulated_quantize_op, token_append_op,
                 token_attention_op, token_filter_op, token_pool_op, token_positions_op, token_window_op,
                 tree_ensemble_op
operator_table   one row of facts per operator; operator_facts has the columns and their values
attribute_check  attribute values that onnx's inference cannot handle
constant_argument  which arguments have to be constants: shapes, axes, pads
call             building calls with their types
device_call      annotations with a device, and copies between devices
evaluate         the value of a call on constants
reference_gaps   forms of operators that onnx's reference implementation computes wrong
operator_predicate, pattern_table
                 which calls, and which groups of calls, a toolchain can run
purity           which calls draw random numbers, and what contains them
rewrite_typed    rewriting that keeps types, spans and devices
"""

from intarsia.op.call import absent, call, tuple_get
from intarsia.op.device_call import device_copy, on_device
from intarsia.op.infer import infer_call_type, infer_types
from intarsia.op.operator_facts import OpPatternKind
from intarsia.op.operator_table import op_pattern
from intarsia.op.opset import OPSETS, PINNED_OPSET
from intarsia.op.rewrite_typed import rewrite_typed
from intarsia.op.verify import verify

__all__ = [
    "OPSETS",
    "PINNED_OPSET",
    "OpPatternKind",
    "absent",
    "call",
    "device_copy",
    "infer_call_type",
    "infer_types",
    "on_device",
    "op_pattern",
    "rewrite_typed",
    "tuple_get",
    "verify",
]
