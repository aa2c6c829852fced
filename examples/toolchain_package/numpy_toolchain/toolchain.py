"""The toolchain numpy: elementwise operators and matrix products, one NumPy call each."""

from __future__ import annotations

from typing import ClassVar, Final

from intarsia.ir import Call, DType, Function, IRModule, Op, TensorType
from intarsia.runtime.kernel import Kernel, KernelSource
from intarsia.target import Target
from intarsia.toolchain import Available, FusionStyle, OnnxLimits, Unavailable
from intarsia.toolchain.onnx_compile import compile_onnx
from intarsia.toolchain.package import package_availability, require

from .operators import OPERATORS

_TYPES: Final = frozenset({DType.FLOAT32, DType.FLOAT64})


class Numpy:
    """Implementation of `intarsia.toolchain.protocol.Toolchain`; Intarsia creates it without arguments."""

    name: ClassVar[str] = "numpy"
    fusion_style: ClassVar[FusionStyle] = FusionStyle.NONE
    onnx_limits: ClassVar[OnnxLimits] = OnnxLimits(opset=23, ir_version=11)
    thread_policy: ClassVar[str] = "numpy: the caller's thread; matrix products as NumPy's BLAS is configured"
    conflicts: ClassVar[frozenset[str]] = frozenset()
    takes_control_flow: ClassVar[bool] = False

    def availability(self) -> Available | Unavailable:
        """Whether NumPy can be imported; never raises."""
        return package_availability("numpy", "pip install numpy")

    def supports(self, call: Call) -> bool:
        """Whether the operator is one of `OPERATORS` with operands and results of float32 or float64.

        A type that is not inferred yet counts as supported; `compile` checks again.
        """
        if not isinstance(call.op, Op) or call.op.domain or call.op.name not in OPERATORS:
            return False
        types = (call.checked_type, *(argument.checked_type for argument in call.args))
        return all(
            type_ is None or (isinstance(type_, TensorType) and type_.dtype in _TYPES) for type_ in types
        )

    def compile(self, function: Function, target: Target, module: IRModule | None = None) -> Kernel:
        """Export a function as an ONNX model, and `load` it.

        Raises:
            CompileError: The toolchain does not support an operator or an element type.
            MissingToolchainError: NumPy is not usable here.
        """
        return compile_onnx(self, function, target, module)

    def load(self, source: KernelSource, blob: bytes | None = None) -> Kernel:
        """Make the kernel of an exported function, after compiling or from a saved artifact.

        Raises:
            CompileError: The toolchain does not support an operator or an element type.
            MissingToolchainError: NumPy is not usable here.
        """
        require(self)
        from .kernel import load_kernel

        return load_kernel(source)
