"""Toolchains: the inference engines that can run a function of the language (DESIGN section 9).

protocol            what a toolchain is
registered          installed toolchains, and those that work on this machine
package             checks the Python package behind a toolchain
native, onnxruntime, openvino, torch, tensorrt, reference
                    one room for each toolchain: `toolchain` is the class, `options` those of its targets,
                    `kernel` what it compiles to

Shared by the rooms:
onnx_compile        function -> ONNX -> kernel, for every toolchain that reads ONNX
onnx_port           inputs and outputs of an ONNX model
external_weights    the weights beside an ONNX model, given back to it
input_identity      identity nodes where an engine would hand an input through as an output
tensor_call, call_facts
                    properties of calls that operator predicates test
bound_memory        checks that the arrays an engine is bound to still have their addresses
delivery            copies results into the caller's buffers
engine_message      shortens the message of an engine's error
this_host           the host with the versions of its toolchains
devices_here        the devices of this machine, and the toolchains that work on them

Names are loaded when they are first used: the options of a toolchain are read without the rest of it.
"""

from typing import TYPE_CHECKING

from intarsia.support.lazy_names import lazy_names

if TYPE_CHECKING:
    from intarsia.toolchain.protocol import Available, FusionStyle, OnnxLimits, Toolchain, Unavailable
    from intarsia.toolchain.registered import (
        ToolchainStatus,
        availability_on,
        cpu_toolchains,
        installed_toolchains,
        targets,
        toolchain,
        toolchain_for,
        usable_toolchains,
    )

_HOMES = {
    "Available": "intarsia.toolchain.protocol",
    "FusionStyle": "intarsia.toolchain.protocol",
    "OnnxLimits": "intarsia.toolchain.protocol",
    "Toolchain": "intarsia.toolchain.protocol",
    "ToolchainStatus": "intarsia.toolchain.registered",
    "Unavailable": "intarsia.toolchain.protocol",
    "availability_on": "intarsia.toolchain.registered",
    "cpu_toolchains": "intarsia.toolchain.registered",
    "installed_toolchains": "intarsia.toolchain.registered",
    "targets": "intarsia.toolchain.registered",
    "toolchain": "intarsia.toolchain.registered",
    "toolchain_for": "intarsia.toolchain.registered",
    "usable_toolchains": "intarsia.toolchain.registered",
}

__all__ = [
    "Available",
    "FusionStyle",
    "OnnxLimits",
    "Toolchain",
    "ToolchainStatus",
    "Unavailable",
    "availability_on",
    "cpu_toolchains",
    "installed_toolchains",
    "targets",
    "toolchain",
    "toolchain_for",
    "usable_toolchains",
]

__getattr__, __dir__ = lazy_names(globals(), _HOMES)
