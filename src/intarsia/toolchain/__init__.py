"""Toolchains: the inference engines that can run a function of the language (DESIGN section 9).

protocol            what a toolchain is
registered          which are known, which work here
package             whether the Python package behind one works
onnx_compile        function -> ONNX -> kernel, for every toolchain that reads ONNX
onnx_port           inputs and outputs of an ONNX model
bound_memory        whether what an engine is bound to is still there
input_identity      a way around what engines do to inputs that they pass through
external_weights    the weights beside a model, given back to it
tensor_call         operator predicates by domain and element type
call_facts          what operator predicates ask about a call
onnxruntime_refusals, openvino_refusals
                    calls that the engine is known to lack
delivery            results into the caller's buffers
engine_message      the essential sentence of an engine's error
onnxruntime, openvino, reference
                    one toolchain each; `*_kernel` is what it compiles to, `onnxruntime_session` and
                    `openvino_model` hold the options, threads and weights
torch               PyTorch on the CPU or a CUDA device. torch_rule: how an operator is said in it;
                    torch_arithmetic, torch_networks, torch_shapes: the rules, torch_operators: all of them;
                    torch_types: element types; torch_kernel: what it compiles to; torch_device: `cuda:i`
native              our own code generator. native_simplified: what is done to a function first;
                    native_source: the function of a source; native_plan: its kernels, planned;
                    native_build: compiled; native_caches: where kernels and schedules are kept;
                    native_region: these as data; native_blob: as bytes; native_kernel: in memory
"""

from intarsia.toolchain.protocol import Available, FusionStyle, OnnxLimits, Toolchain, Unavailable
from intarsia.toolchain.registered import (
    ToolchainStatus,
    installed_toolchains,
    targets,
    toolchain,
    usable_toolchains,
)

__all__ = [
    "Available",
    "FusionStyle",
    "OnnxLimits",
    "Toolchain",
    "ToolchainStatus",
    "Unavailable",
    "installed_toolchains",
    "targets",
    "toolchain",
    "usable_toolchains",
]
