"""Execution providers of onnxruntime for a target: what runs the operators of a session, and where."""

from __future__ import annotations

import io
from contextlib import redirect_stdout
from typing import Any, Final, TypeAlias

from intarsia.runtime.availability import Unavailable
from intarsia.support.errors import CompileError
from intarsia.target import Target
from intarsia.target.device_type import DeviceType

Provider: TypeAlias = "str | tuple[str, dict[str, str]]"
"""Name of a provider, with its options if it has some."""

CUDA: Final = "CUDAExecutionProvider"
TENSORRT: Final = "TensorrtExecutionProvider"
_NAMES: Final = {"cuda": CUDA, "tensorrt": TENSORRT}
_INSTALL: Final = "pip uninstall onnxruntime, then pip install 'intarsia[onnxruntime-gpu]'"


def session_providers(target: Target, number: int) -> list[Provider]:
    """Return the providers of a session, the preferred one first; the CPU runs what they refuse.

    TensorRT leaves what it lacks to CUDA. CUDA multiplies float32 in full precision: by default onnxruntime
    lets it round to 10 bits (TF32). TensorRT decides by itself; NVIDIA_TF32_OVERRIDE=0 in the environment
    forbids that to all libraries of a process.

    Args:
        target: The target.
        number: Number of the GPU.
    """
    if target.kind != DeviceType.CUDA.kind:
        return ["CPUExecutionProvider"]
    cuda = CUDA, {"device_id": str(number), "use_tf32": "0"}
    if provider_name(target) == TENSORRT:
        return [(TENSORRT, {"device_id": str(number)}), cuda]
    return [cuda]


def provider_name(target: Target) -> str:
    """Return the name of the provider that the target of a GPU prefers."""
    return _NAMES[target.option("provider", "cuda")]


def missing_provider(name: str) -> Unavailable | None:
    """Return why the installed onnxruntime has no provider of that name; None if it has it."""
    import onnxruntime

    if name in onnxruntime.get_available_providers():
        return None
    return Unavailable(f"the installed onnxruntime {onnxruntime.__version__} has no {name}", help=_INSTALL)


def load_libraries() -> None:
    """Load the libraries of CUDA and cuDNN that packages beside onnxruntime-gpu bring, where there are some.

    It prints what it misses; `refuse_fallback` says the same once it matters.
    """
    import onnxruntime

    with redirect_stdout(io.StringIO()):
        onnxruntime.preload_dlls()


def refuse_fallback(session: Any, target: Target, number: int) -> None:
    """Refuse a session without the preferred provider: onnxruntime drops one whose libraries do not load.

    Raises:
        CompileError: It is dropped.
    """
    first = session_providers(target, number)[0]
    name = first if isinstance(first, str) else first[0]
    if name not in session.get_providers():
        raise CompileError(
            f"onnxruntime cannot compile this: {name} did not load",
            help="it needs libraries of CUDA and cuDNN, or those of TensorRT, in versions that fit",
        )
