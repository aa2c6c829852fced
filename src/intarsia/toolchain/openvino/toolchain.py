"""The toolchain openvino: Intel's OpenVINO on the CPU."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from intarsia.ir import Call, DType, Expr, Function, IRModule
from intarsia.ir.rule_errors import named_node
from intarsia.runtime.kernel import Kernel, KernelSource
from intarsia.support.errors import CompileError
from intarsia.target import Target
from intarsia.toolchain.onnx_compile import compile_onnx, reachable_calls
from intarsia.toolchain.openvino.attention import mixed_up_attention
from intarsia.toolchain.openvino.doubles import first_rounded
from intarsia.toolchain.openvino.integer_ranges import Interval
from intarsia.toolchain.openvino.integers import lost_bits, mask_limits
from intarsia.toolchain.openvino.limits import with_limits
from intarsia.toolchain.openvino.refusals import (
    empty_attention,
    openvino_refuses,
    overflowing_resize,
    stripped_quantization,
)
from intarsia.toolchain.package import package_availability, require
from intarsia.toolchain.protocol import Available, FusionStyle, OnnxLimits, Unavailable
from intarsia.toolchain.tensor_call import is_tensor_call

if TYPE_CHECKING:
    from intarsia.op.pattern_table import PatternTable


_DOMAINS = frozenset({""})
_UNKNOWN_TYPES = frozenset(
    {DType.STRING, DType.COMPLEX64, DType.COMPLEX128, DType.FLOAT8_E4M3FNUZ, DType.FLOAT8_E5M2FNUZ}
)


class OpenVino:
    """Compiled models of OpenVINO with prebound requests; see `properties` and `model`."""

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

        Calls that ONNX's backend tests have shown it to lack are left out: see `refusals`.
        """
        return is_tensor_call(call, _DOMAINS, _UNKNOWN_TYPES) and not openvino_refuses(call)

    def patterns(self) -> PatternTable:
        """Return groups of operators that are candidates of Collage as a whole."""
        from intarsia.toolchain.openvino.patterns import patterns

        return patterns()

    def compile(self, function: Function, target: Target, module: IRModule | None = None) -> Kernel:
        """Compile a function.

        Raises:
            CompileError: OpenVINO refuses it, does otherwise on this machine than an option says, or computes
                integers or float64 of the function in too few bits.
            MissingToolchainError: OpenVINO is not usable here.
        """
        limits = mask_limits(function, module)
        _refuse_lost_bits(function, module, limits)
        _refuse_doubles(function, module)
        if stripped_quantization(function, module):
            raise CompileError(
                "openvino cannot compile this: it leaves out QuantizeLinear to 16 bits, with its limits",
                help="another toolchain computes it as ONNX says",
            )
        if empty_attention(function, module):
            raise CompileError(
                "openvino cannot compile this: it writes outside of its memory for attention of no elements",
                help="another toolchain computes it as ONNX says",
            )
        if overflowing_resize(function, module):
            raise CompileError(
                "openvino cannot compile this: it crashes on a Resize to so many elements",
                help="another toolchain computes it as ONNX says, or resize to fewer elements",
            )
        if mixed_up_attention(function, module):
            raise CompileError(
                "openvino cannot compile this: it mixes up heads and queries where there are as many of both",
                help="another toolchain computes it as ONNX says, and so does OpenVINO for other lengths",
            )
        kernel = compile_onnx(
            self, function, target, module, prepare=lambda source: with_limits(source, function, limits)
        )
        from intarsia.toolchain.openvino.kernel import OpenVinoKernel
        from intarsia.toolchain.openvino.process import OpenVinoProcess

        assert isinstance(kernel, OpenVinoKernel | OpenVinoProcess)  # what `load_kernel` returns
        try:
            kernel.refuse_unmet_options()
        except CompileError:
            kernel.close()
            raise
        return kernel

    def load(self, source: KernelSource, blob: bytes | None = None) -> Kernel:
        """Make a kernel again: imported from the blob if that succeeds, else compiled from the source.

        Raises:
            CompileError: OpenVINO refuses the source.
            MissingToolchainError: OpenVINO is not usable here.
        """
        require(self)
        from intarsia.toolchain.openvino.kernel import load_kernel

        return load_kernel(source, blob)


def _refuse_doubles(function: Function, module: IRModule | None) -> None:
    """Refuse float64 that OpenVINO would round to float32, by whichever pass it got the function."""
    call = first_rounded(reachable_calls(function, module))
    if call is not None:
        with named_node(call):
            raise CompileError(
                f"openvino cannot compile this: it computes float64 in float32, here in {call.op}",
                help="another toolchain computes it as ONNX says: build for -toolchain=onnxruntime or native",
            )


def _refuse_lost_bits(function: Function, module: IRModule | None, limits: Mapping[Expr, Interval]) -> None:
    """Refuse integers that OpenVINO would cut without a word, by whichever pass it got the function."""
    lost = lost_bits(function, module, limits)
    if lost is not None:
        raise CompileError(
            f"openvino cannot compile this: it computes integers in 32 bits or in float32, and {lost}",
            help="another toolchain computes it as ONNX says; OpenVINO takes what the model itself bounds",
        )
