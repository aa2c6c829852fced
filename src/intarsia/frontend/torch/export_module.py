"""Export a module with torch.export, with errors that name its modules."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import torch

from intarsia.frontend.torch.lower_program import no_tracing, silent_exporter
from intarsia.frontend.torch.training_mode import training_reasons
from intarsia.support.errors import UnsupportedModelError, UsageError

_DATA_DEPENDENT: Final = ("data-dependent", "data dependent", "DataDependent", "GuardOnDataDependent")


def export_module(
    module: Any, args: Sequence[Any], kwargs: Mapping[str, Any] | None = None, dynamic_shapes: Any = None
) -> Any:
    """Return the ExportedProgram of a module.

    Args:
        module: Module in evaluation mode.
        args: Example inputs by position.
        kwargs: Example inputs by name.
        dynamic_shapes: Dynamic dimensions, as torch.export.export takes them.

    Raises:
        UnsupportedModelError: Its control flow depends on values of tensors, or torch.export cannot trace it.
        UsageError: A layer is in training mode.
    """
    try:
        with no_tracing(), torch.no_grad(), silent_exporter(), _plain_attention():
            exported = torch.export.export(
                module, tuple(args), dict(kwargs or {}), dynamic_shapes=dynamic_shapes, strict=False
            )
    except Exception as error:  # it passes on whatever the module's code raises
        raise _untraceable(module, error) from error
    refuse_training(exported)
    return exported


@contextmanager
def _plain_attention() -> Generator[None]:
    """Switch off the fused operators of nn.MultiheadAttention, which the ONNX exporter does not have."""
    is_enabled = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(is_enabled)


def refuse_training(exported: Any) -> None:
    """Refuse a program with layers in training mode.

    Raises:
        UsageError: There is one; the message names its module.
    """
    reasons = training_reasons(exported.graph_module)
    if reasons:
        more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
        raise UsageError(f"{reasons[0]}{more}", help="call model.eval() first: programs are for inference")


def _untraceable(module: Any, error: Exception) -> UnsupportedModelError:
    name, message = type(module).__name__, " ".join(str(error).split())
    if any(word in f"{type(error).__name__} {message}" for word in _DATA_DEPENDENT):
        return UnsupportedModelError(
            f"the control flow of {name} depends on values of tensors: {message[:300]}",
            help="write it with torch.where or torch.cond, or use torch.compile(model, backend='intarsia'), "
            "which leaves such code to Python",
        )
    return UnsupportedModelError(
        f"torch.export cannot trace {name}: {type(error).__name__}: {message[:300]}",
        help="use torch.compile(model, backend='intarsia'), which leaves to Python what cannot be traced",
    )
