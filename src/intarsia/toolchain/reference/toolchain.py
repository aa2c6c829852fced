"""The toolchain reference: onnx's own reference evaluator, which defines what is right (and is slow)."""

from __future__ import annotations

from typing import ClassVar

from intarsia.ir import Call, Function, IRModule, Op
from intarsia.op import OPSETS
from intarsia.op.opaque import is_opaque
from intarsia.op.reference_gaps import reference_gap
from intarsia.runtime.kernel import Kernel, KernelSource
from intarsia.support.errors import CompileError
from intarsia.target import Target
from intarsia.target.reference import REFERENCE
from intarsia.toolchain.onnx_compile import compile_onnx, reachable_calls
from intarsia.toolchain.package import package_availability, require
from intarsia.toolchain.protocol import Available, FusionStyle, OnnxLimits, Unavailable


class Reference:
    """`onnx.reference.ReferenceEvaluator` on one thread, for tensors, sequences and optionals.

    It refuses the forms that the evaluator computes wrong (`op.reference_gaps`).
    """

    name: ClassVar[str] = REFERENCE
    fusion_style: ClassVar[FusionStyle] = FusionStyle.NONE
    onnx_limits: ClassVar[OnnxLimits] = OnnxLimits(opset=28, ir_version=14)
    thread_policy: ClassVar[str] = "reference: the caller's thread"
    conflicts: ClassVar[frozenset[str]] = frozenset()

    def availability(self) -> Available | Unavailable:
        """Whether onnx can be imported; never raises."""
        return package_availability("onnx", "pip install onnx")

    def supports(self, call: Call) -> bool:
        """Whether the evaluator computes a call right.

        Operators that ONNX does not define are computed by what declares their domain.
        """
        is_defined = isinstance(call.op, Op) and (call.op.domain in OPSETS or is_opaque(call))
        return is_defined and not reference_gap(call)

    def compile(self, function: Function, target: Target, module: IRModule | None = None) -> Kernel:
        """Prepare a function for evaluation.

        Raises:
            CompileError: The evaluator has no implementation of an operator, or a wrong one.
            MissingToolchainError: onnx is not usable here.
        """
        for call in reachable_calls(function, module):
            if gap := reference_gap(call):
                raise CompileError(
                    f"reference cannot compile this: onnx.reference computes it wrong: {gap}",
                    help="another toolchain computes it as ONNX says",
                )
        return compile_onnx(self, function, target, module)

    def load(self, source: KernelSource, blob: bytes | None = None) -> Kernel:  # noqa: ARG002 - has no blobs
        """Make the kernel of a source; an evaluator has no compiled form.

        Raises:
            CompileError: The evaluator has no implementation of an operator.
            MissingToolchainError: onnx is not usable here.
        """
        require(self)
        from intarsia.toolchain.reference.kernel import load_kernel

        return load_kernel(source)
