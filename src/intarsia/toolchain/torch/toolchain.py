"""The toolchain torch: PyTorch's eager operators, on the CPU or on a CUDA device."""

from __future__ import annotations

from typing import ClassVar

from intarsia.ir import Call, Constant, DType, Function, IRModule, Op, Tuple
from intarsia.runtime.kernel import Kernel, KernelSource
from intarsia.target import Target
from intarsia.target.device_type import DeviceType
from intarsia.toolchain.onnx_compile import compile_onnx
from intarsia.toolchain.package import package_availability, require, require_on
from intarsia.toolchain.protocol import Available, FusionStyle, OnnxLimits, Unavailable
from intarsia.toolchain.tensor_call import is_tensor_call

_DOMAINS = frozenset({""})
_KNOWN_TYPES = frozenset(
    {
        *(DType.FLOAT16, DType.FLOAT32, DType.FLOAT64, DType.BOOL, DType.UINT8),
        *(DType.INT8, DType.INT16, DType.INT32, DType.INT64),
    }
)
_UNKNOWN_TYPES = frozenset(DType) - _KNOWN_TYPES


class Torch:
    """A model's operators called one by one; kernels for "cuda" take and give tensors of their device.

    Covers what common networks are made of; see `operators`.
    """

    name: ClassVar[str] = "torch"
    fusion_style: ClassVar[FusionStyle] = FusionStyle.OPERATOR
    onnx_limits: ClassVar[OnnxLimits] = OnnxLimits(opset=26, ir_version=13)
    thread_policy: ClassVar[str] = "torch: OpenMP threads of the calling thread, as many as the target says"
    takes_control_flow: ClassVar[bool] = False
    conflicts: ClassVar[frozenset[str]] = frozenset()

    def availability(self) -> Available | Unavailable:
        """Whether torch can be imported; never raises."""
        return package_availability("torch", "pip install 'intarsia[torch]'")

    def availability_on(self, kind: str) -> Available | Unavailable:
        """As `RunsOnDevices.availability_on`; torch itself does not touch the GPU for that."""
        from intarsia.runtime.cuda.gpu_facts import gpus_here

        available = self.availability()
        if isinstance(available, Unavailable) or kind != DeviceType.CUDA.kind:
            return available
        import torch

        if not torch.backends.cuda.is_built():
            return Unavailable(
                f"the installed torch {available.version} was built without CUDA",
                help="install a torch with CUDA: https://pytorch.org/get-started",
            )
        return gpus_here().unavailable or available

    def supports(self, call: Call) -> bool:
        """Operators with a rule whose shapes, axes and bounds are constants."""
        from intarsia.toolchain.torch.operators import FIXED_INPUTS, OPERATORS

        if not is_tensor_call(call, _DOMAINS, _UNKNOWN_TYPES):
            return False
        assert isinstance(call.op, Op)
        fixed = FIXED_INPUTS.get(call.op.name, ())
        given = (call.args[position] for position in fixed if position < len(call.args))
        is_fixed = all(isinstance(arg, (Constant, Tuple)) for arg in given)  # the empty tuple is absent
        return call.op.name in OPERATORS and is_fixed

    def compile(self, function: Function, target: Target, module: IRModule | None = None) -> Kernel:
        """Compile a function.

        Raises:
            CompileError: An operator has no rule, or a form that its rule does not cover.
            MissingToolchainError: torch is not usable here.
        """
        return compile_onnx(self, function, target, module)

    def load(self, source: KernelSource, blob: bytes | None = None) -> Kernel:  # noqa: ARG002 - has no blobs
        """Make the kernel of a source; for "cuda" on the GPU that is current in this thread.

        Raises:
            CompileError: An operator has no rule, or a form that its rule does not cover.
            MissingToolchainError: torch is not usable here, or not on GPUs.
        """
        require(self)
        kind = Target(source.target).kind
        if kind == DeviceType.CUDA.kind:
            require_on(self, self.name, kind)
            from intarsia.toolchain.torch.cuda_kernel import load_cuda_kernel

            return load_cuda_kernel(source)
        from intarsia.toolchain.torch.kernel import load_kernel

        return load_kernel(source)
