"""The toolchain onnxruntime: Microsoft's ONNX Runtime on the CPU, and on GPUs by CUDA or TensorRT."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from intarsia.ir import Call, DType, Function, IRModule
from intarsia.runtime.kernel import Kernel, KernelSource
from intarsia.target import Target
from intarsia.target.device_type import DeviceType
from intarsia.toolchain.onnx_compile import compile_onnx
from intarsia.toolchain.onnxruntime.forests import mislabels
from intarsia.toolchain.onnxruntime.refusals import onnxruntime_refuses
from intarsia.toolchain.package import missing, package_availability, require, require_on
from intarsia.toolchain.protocol import Available, FusionStyle, OnnxLimits, Unavailable
from intarsia.toolchain.tensor_call import declared_domains, is_tensor_call

if TYPE_CHECKING:
    from intarsia.op.pattern_table import PatternTable


_DOMAINS = frozenset({"", "ai.onnx.ml"})
_UNKNOWN_TYPES = frozenset({DType.COMPLEX64, DType.COMPLEX128})


class OnnxRuntime:
    """Sessions of onnxruntime with I/O binding; see `session` for options and threads."""

    name: ClassVar[str] = "onnxruntime"
    fusion_style: ClassVar[FusionStyle] = FusionStyle.GRAPH
    onnx_limits: ClassVar[OnnxLimits] = OnnxLimits(opset=26, ir_version=13)
    thread_policy: ClassVar[str] = "onnxruntime: one pool per session, sequential, spinning ends with the run"
    conflicts: ClassVar[frozenset[str]] = frozenset()

    def availability(self) -> Available | Unavailable:
        """Whether onnxruntime can be imported; never raises."""
        return package_availability("onnxruntime", "pip install 'intarsia[onnxruntime]'")

    def availability_on(self, kind: str) -> Available | Unavailable:
        """As `RunsOnDevices.availability_on`: GPUs need the package onnxruntime-gpu instead."""
        from intarsia.runtime.cuda.gpu_facts import gpus_here
        from intarsia.toolchain.onnxruntime.providers import CUDA, missing_provider

        available = self.availability()
        if isinstance(available, Unavailable) or kind != DeviceType.CUDA.kind:
            return available
        return missing_provider(CUDA) or gpus_here().unavailable or available

    def supports(self, call: Call) -> bool:
        """Any operator of ONNX or ONNX-ML on tensors, strings included; no sequences, no complex numbers.

        Opaque operators of the domains that declare this toolchain as well. Calls that ONNX's backend tests
        have shown it to lack are left out (`refusals`), and forests that it labels wrong
        (`forests`).
        """
        domains = _DOMAINS | declared_domains(call, self.name)
        if not is_tensor_call(call, domains, _UNKNOWN_TYPES):
            return False
        return not onnxruntime_refuses(call) and not mislabels(call)

    def patterns(self) -> PatternTable:
        """Return groups of operators that are candidates of Collage as a whole."""
        from intarsia.toolchain.onnxruntime.patterns import patterns

        return patterns()

    def compile(self, function: Function, target: Target, module: IRModule | None = None) -> Kernel:
        """Compile a function.

        Raises:
            CompileError: onnxruntime refuses it.
            MissingToolchainError: onnxruntime is not usable here.
        """
        return compile_onnx(self, function, target, module)

    def load(self, source: KernelSource, blob: bytes | None = None) -> Kernel:  # noqa: ARG002 - has no blobs
        """Make the kernel of a source; onnxruntime has no compiled form worth keeping.

        Raises:
            CompileError: onnxruntime refuses the source.
            MissingToolchainError: onnxruntime is not usable here, or not on GPUs.
        """
        require(self)
        target = Target(source.target)
        if target.kind == DeviceType.CUDA.kind:
            return self._load_for_gpu(source, target)
        from intarsia.toolchain.onnxruntime.kernel import load_kernel

        return load_kernel(source)

    def _load_for_gpu(self, source: KernelSource, target: Target) -> Kernel:
        require_on(self, self.name, target.kind)
        from intarsia.toolchain.onnxruntime.cuda_kernel import load_cuda_kernel
        from intarsia.toolchain.onnxruntime.providers import missing_provider, provider_name

        lacking = missing_provider(provider_name(target))
        if lacking is not None:
            raise missing(self.name, lacking, target.kind)
        return load_cuda_kernel(source)
