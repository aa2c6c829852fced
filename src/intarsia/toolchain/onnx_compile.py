"""Function -> ONNX model -> kernel: the way of every toolchain that reads ONNX."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final

from intarsia.ir import Call, Expr, Function, GlobalVar, IRModule, Op, post_order
from intarsia.ir.rule_errors import named_node
from intarsia.op import PINNED_OPSET
from intarsia.op.opaque import declared_toolchains, is_opaque, is_opaque_domain
from intarsia.runtime.kernel import Kernel, KernelSource
from intarsia.support.errors import CompileError, ModelError
from intarsia.target import Target
from intarsia.target.reference import REFERENCE
from intarsia.toolchain.package import require
from intarsia.toolchain.protocol import Toolchain
from intarsia.transform import PassSettings

OLDER_OPSET: Final = 21
"""Where engines have kernels that they lack at newer ones: opset 22 gave many operators new element types and
nothing else; onnxruntime 1.31 has not followed with RandomNormalLike, RoiAlign, GlobalLpPool and others."""

_LACKS_KERNEL: Final = "Could not find an implementation for "


def compile_onnx(
    toolchain: Toolchain,
    function: Function,
    target: Target,
    module: IRModule | None,
    prepare: Callable[[KernelSource], KernelSource] = lambda source: source,
) -> Kernel:
    """Export the function at the pinned opset, or the newest below it that the toolchain reads, and load it.

    If the toolchain lacks a kernel there, `OLDER_OPSET` is tried, if the function can be said at it.

    Args:
        toolchain: The toolchain that loads the exported function.
        function: The function.
        target: The target, of this toolchain.
        module: The global functions that it calls.
        prepare: Changes the source before it is loaded.

    Raises:
        CompileError: It cannot be exported, or the toolchain refuses it.
        MissingToolchainError: The toolchain is not usable here.
    """
    require(toolchain)
    refuse_undeclared(toolchain.name, function, module)
    opset = newest_opset(toolchain)
    try:
        return toolchain.load(prepare(onnx_kernel_source(toolchain, function, target, module, opset)))
    except CompileError as error:
        if _LACKS_KERNEL not in error.problem or opset <= OLDER_OPSET:
            raise
        with suppress(CompileError):  # the first error says more
            older = onnx_kernel_source(toolchain, function, target, module, OLDER_OPSET)
            return toolchain.load(prepare(older))
        raise


def refuse_undeclared(toolchain: str, function: Function, module: IRModule | None) -> None:
    """Refuse a function with opaque operators of a domain that does not declare the toolchain.

    The reference toolchain takes them all: their domain computes them.

    Raises:
        CompileError: There is one, in the function or in a global function that it calls.
    """
    if toolchain == REFERENCE:
        return
    for call in reachable_calls(function, module):
        if is_opaque(call):
            assert isinstance(call.op, Op)
            with named_node(call):
                _refuse_undeclared_call(toolchain, call.op)


def reachable_calls(function: Function, module: IRModule | None) -> Iterator[Call]:
    """Yield the calls in a function and in the global functions that it calls."""
    waiting, seen = [function], {function}
    while waiting:
        for expr in post_order(waiting.pop()):
            callee = _callee(expr, module)
            if callee is not None and callee not in seen:
                seen.add(callee)
                waiting.append(callee)
            if isinstance(expr, Call):
                yield expr


def _callee(expr: Expr, module: IRModule | None) -> Function | None:
    if module is None or not isinstance(expr, GlobalVar) or expr.name not in module:
        return None
    callee = module.functions[module.global_var(expr.name)]  # loop functions call no operators
    return callee if isinstance(callee, Function) else None


def _refuse_undeclared_call(toolchain: str, op: Op) -> None:
    declared = declared_toolchains(op.domain, op.name)
    if toolchain in declared:
        return
    names = ", ".join(sorted(declared)) or f"the {REFERENCE}"
    if is_opaque_domain(op.domain):
        raise CompileError(
            f"{toolchain} cannot compile this: operator {str(op)!r} is opaque, and its domain is declared "
            f"for {names} only"
        )
    raise CompileError(
        f"{toolchain} cannot compile this: operator {str(op)!r} is registered for {names} only",
        help="a compute rule lets native run it; toolchains=[...] in register_operator names others",
    )


def newest_opset(toolchain: Toolchain) -> int:
    """The opset at which functions are said to a toolchain."""
    return min(PINNED_OPSET, toolchain.onnx_limits.opset)


def onnx_kernel_source(
    toolchain: Toolchain, function: Function, target: Target, module: IRModule | None, opset: int
) -> KernelSource:
    """A function as the ONNX model that a toolchain makes its kernel from, under the current pass settings.

    Raises:
        CompileError: It cannot be exported.
    """
    from intarsia.frontend.onnx import onnx_source
    from intarsia.frontend.onnx.exporter import IR_VERSION

    ir_version = min(IR_VERSION, toolchain.onnx_limits.ir_version)
    try:
        exported = onnx_source(function, module, opset=opset, ir_version=ir_version)
    except ModelError as error:
        raise CompileError(
            f"{toolchain.name} cannot compile this: {error.problem}", help=error.help
        ) from error
    settings = PassSettings.current().text
    return KernelSource(toolchain.name, str(target), exported.model, exported.weights, settings)
