"""What the backend leaves to PyTorch, and the warning about it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Final

from intarsia.support.errors import IntarsiaError, UnsupportedModelError

PREFIX: Final = 'torch.compile(backend="intarsia")'


class FallbackWarning(UserWarning):
    """A graph runs in PyTorch's eager mode, and the reason why."""


class LeftToPyTorchError(UnsupportedModelError):
    """A graph that the backend does not compile."""


def run_eagerly(graph_module: Any, reason: IntarsiaError, *, is_strict: bool) -> Callable[..., Any]:
    """Return the function of a graph that is not compiled, after one warning.

    Args:
        graph_module: The graph.
        reason: Reason why it is not compiled.
        is_strict: Whether the reason is raised in place of a warning.
    """
    if is_strict:
        raise reason
    warn(f"a graph runs in eager mode: {reason.problem}", reason.help)
    forward: Callable[..., Any] = graph_module.forward
    return forward


def warn(sentence: str, help: str = "") -> None:  # noqa: A002  # the word that errors use
    """Warn once for each text."""
    text = f"{PREFIX}: {sentence}"
    warnings.warn(FallbackWarning(f"{text}\nhelp: {help}" if help else text), stacklevel=2)
