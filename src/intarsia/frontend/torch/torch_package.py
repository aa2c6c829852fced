"""The packages behind the front doors for PyTorch: imported on first use, or an error that says how."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any, Final

from intarsia.support.errors import UsageError

INSTALL: Final = "pip install 'intarsia[torch]'"
OLDEST: Final = (2, 6)
"""Oldest release whose ONNX exporter takes an ExportedProgram with dynamic dimensions."""


def require_torch() -> Any:
    """Import torch and the package that its ONNX exporter needs, and return torch.

    Raises:
        UsageError: One is missing, too old or broken; the message says what to install.
    """
    try:
        torch = import_module("torch")
        import_module("onnxscript")
    except ModuleNotFoundError as error:
        raise UsageError(
            f"models of PyTorch need the package {error.name}, which is missing", help=INSTALL
        ) from None
    except Exception as error:  # a broken installation may raise anything
        problem = f"importing PyTorch failed with {type(error).__name__}: {error}"
        raise UsageError(problem, help=f"repair it: {INSTALL} --force-reinstall") from error
    release = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
    if release < OLDEST:
        raise UsageError(
            f"PyTorch {torch.__version__} is installed, expected {'.'.join(map(str, OLDEST))} or newer",
            help=f"{INSTALL} --upgrade",
        )
    return torch


def is_torch_model(model: object) -> bool:
    """Return whether a value is a module or program of PyTorch, without importing torch for the question."""
    torch = sys.modules.get("torch")
    if torch is None:
        return False
    return isinstance(model, (torch.nn.Module, torch.export.ExportedProgram, torch.onnx.ONNXProgram))
