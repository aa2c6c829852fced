"""The toolchain tensorrt: NVIDIA's TensorRT, on GPUs only."""

from __future__ import annotations

from typing import ClassVar

from intarsia.ir import Call, DType, Function, IRModule
from intarsia.runtime.kernel import Kernel, KernelSource
from intarsia.support.errors import CompileError
from intarsia.target import Target
from intarsia.target.device_type import DeviceType
from intarsia.toolchain.onnx_compile import compile_onnx
from intarsia.toolchain.package import package_availability, require_on
from intarsia.toolchain.protocol import Available, FusionStyle, OnnxLimits, Unavailable
from intarsia.toolchain.tensor_call import is_tensor_call

_DOMAINS = frozenset({""})
_KNOWN_TYPES = frozenset(
    {
        *(DType.FLOAT16, DType.BFLOAT16, DType.FLOAT32, DType.BOOL),
        *(DType.INT8, DType.UINT8, DType.INT32, DType.INT64),
    }
)
_UNKNOWN_TYPES = frozenset(DType) - _KNOWN_TYPES


class TensorRt:
    """Engines of TensorRT for models of static shapes; see `engine`."""

    name: ClassVar[str] = "tensorrt"
    fusion_style: ClassVar[FusionStyle] = FusionStyle.GRAPH
    onnx_limits: ClassVar[OnnxLimits] = OnnxLimits(opset=21, ir_version=10)
    thread_policy: ClassVar[str] = "tensorrt: none, its work is the GPU's"
    takes_control_flow: ClassVar[bool] = False
    conflicts: ClassVar[frozenset[str]] = frozenset()
    is_for_gpus_only: ClassVar[bool] = True

    def availability(self) -> Available | Unavailable:
        """Whether tensorrt can be imported; never raises."""
        return package_availability("tensorrt", "pip install 'intarsia[tensorrt]'")

    def availability_on(self, kind: str) -> Available | Unavailable:
        """As `RunsOnDevices.availability_on`."""
        from intarsia.runtime.cuda.gpu_facts import gpus_here

        available = self.availability()
        if isinstance(available, Unavailable):
            return available
        if kind != DeviceType.CUDA.kind:
            return Unavailable(
                "tensorrt makes kernels for GPUs only", help='write "cuda -toolchain=tensorrt"'
            )
        return gpus_here().unavailable or available

    def supports(self, call: Call) -> bool:
        """Any operator of ONNX on tensors of its element types; `compile` has the last word."""
        return is_tensor_call(call, _DOMAINS, _UNKNOWN_TYPES)

    def compile(self, function: Function, target: Target, module: IRModule | None = None) -> Kernel:
        """Compile a function.

        Raises:
            CompileError: TensorRT refuses it, or a shape is known at run time only.
            MissingToolchainError: TensorRT is not usable here, or the target is not a GPU's.
        """
        return compile_onnx(self, function, target, module)

    def load(self, source: KernelSource, blob: bytes | None = None) -> Kernel:
        """Make the kernel of a source: from an engine for this GPU if one is given, else from the model.

        Raises:
            CompileError: TensorRT refuses the source.
            MissingToolchainError: TensorRT is not usable here, or the target is not a GPU's.
        """
        require_on(self, self.name, Target(source.target).kind)
        from intarsia.toolchain.tensorrt.engine import build_engine
        from intarsia.toolchain.tensorrt.kernel import TensorRtKernel

        if blob is not None:
            kernel = TensorRtKernel(source, blob)
            try:
                kernel.load_engine()
            except CompileError:  # of another version, or for another GPU
                kernel.close()
            else:
                return kernel
        return TensorRtKernel(source, build_engine(source))
