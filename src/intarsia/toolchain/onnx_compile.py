"""Function -> ONNX model -> kernel: the way of every toolchain that reads ONNX."""

from __future__ import annotations

from intarsia.ir import Function, IRModule
from intarsia.op import PINNED_OPSET
from intarsia.runtime.kernel import Kernel, KernelSource
from intarsia.support.errors import CompileError, ModelError
from intarsia.target import Target
from intarsia.toolchain.package import require
from intarsia.toolchain.protocol import Toolchain


def compile_onnx(toolchain: Toolchain, function: Function, target: Target, module: IRModule | None) -> Kernel:
    """Export the function at the pinned opset, or the newest below it that the toolchain reads, and load it.

    Raises:
        CompileError: It cannot be exported, or the toolchain refuses it.
        MissingToolchainError: The toolchain is not usable here.
    """
    from intarsia.frontend.onnx import onnx_source
    from intarsia.frontend.onnx.exporter import IR_VERSION

    require(toolchain)
    limits = toolchain.onnx_limits
    opset, ir_version = min(PINNED_OPSET, limits.opset), min(IR_VERSION, limits.ir_version)
    try:
        exported = onnx_source(function, module, opset=opset, ir_version=ir_version)
    except ModelError as error:
        raise CompileError(
            f"{toolchain.name} cannot compile this: {error.problem}", help=error.help
        ) from error
    return toolchain.load(KernelSource(toolchain.name, str(target), exported.model, exported.weights))
