"""The toolchain openvino: Intel's OpenVINO on the CPU."""

from __future__ import annotations

from typing import ClassVar

from intarsia.ir import Call, DType, Function, IRModule
from intarsia.runtime.kernel import Kernel, KernelSource
from intarsia.target import Target
from intarsia.toolchain.onnx_compile import compile_onnx
from intarsia.toolchain.openvino_refusals import openvino_refuses
from intarsia.toolchain.package import package_availability, require
from intarsia.toolchain.protocol import Available, FusionStyle, OnnxLimits, Unavailable
from intarsia.toolchain.tensor_call import is_tensor_call

_DOMAINS = frozenset({""})
_UNKNOWN_TYPES = frozenset(
    {DType.STRING, DType.COMPLEX64, DType.COMPLEX128, DType.FLOAT8_E4M3FNUZ, DType.FLOAT8_E5M2FNUZ}
)


class OpenVino:
    """Compiled models of OpenVINO with prebound requests; see `openvino_model` for options and threads."""

    name: ClassVar[str] = "openvino"
    fusion_style: ClassVar[FusionStyle] = FusionStyle.GRAPH
    onnx_limits: ClassVar[OnnxLimits] = OnnxLimits(opset=28, ir_version=14)
    thread_policy: ClassVar[str] = "openvino: one stream, no pinning"
    conflicts: ClassVar[frozenset[str]] = frozenset()

    def availability(self) -> Available | Unavailable:
        """Whether openvino can be imported; never raises."""
        return package_availability("openvino", "pip install 'intarsia[openvino]'")

    def supports(self, call: Call) -> bool:
        """Any operator of ONNX on numbers; no strings, sequences or complex numbers.

        Calls that ONNX's backend tests have shown it to lack are left out: see `openvino_refusals`.
        """
        return is_tensor_call(call, _DOMAINS, _UNKNOWN_TYPES) and not openvino_refuses(call)

    def compile(self, function: Function, target: Target, module: IRModule | None = None) -> Kernel:
        """Compile a function.

        Raises:
            CompileError: OpenVINO refuses it.
            MissingToolchainError: OpenVINO is not usable here.
        """
        return compile_onnx(self, function, target, module)

    def load(self, source: KernelSource, blob: bytes | None = None) -> Kernel:
        """Make a kernel again: imported from the blob if that succeeds, else compiled from the source.

        Raises:
            CompileError: OpenVINO refuses the source.
            MissingToolchainError: OpenVINO is not usable here.
        """
        require(self)
        from intarsia.toolchain.openvino_kernel import load_kernel

        return load_kernel(source, blob)
