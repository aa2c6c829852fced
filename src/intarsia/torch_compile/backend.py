"""The backend "intarsia" of torch.compile."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any, Final

from intarsia.support.errors import IntarsiaError
from intarsia.torch_compile.options import CompileOptions

_NUMBERS: Final = count()


def compile_graph(
    graph_module: Any,
    example_inputs: Sequence[Any],
    *,
    options: Mapping[str, Any] | None = None,
    mode: str | None = None,
) -> Callable[..., Any]:
    """Compile a graph of dynamo: the function behind torch.compile(model, backend="intarsia").

    Args:
        graph_module: The graph.
        example_inputs: Arguments of its first call.
        options: See `CompileOptions`.
        mode: Mode of torch.compile.

    Returns:
        A function of the graph's arguments. A graph that cannot be compiled runs in eager mode, with one
        warning.

    Raises:
        UsageError: There is no such option or mode, or a value is not right.
        IntarsiaError: The graph cannot be compiled, and the option `strict` is set.
    """
    from intarsia.frontend.torch.torch_package import require_torch
    from intarsia.torch_compile.fallback import LeftToPyTorchError, run_eagerly
    from intarsia.torch_compile.output_views import has_computation

    parsed = CompileOptions.parse(options, mode)
    require_torch()
    if not has_computation(graph_module.graph):
        forward: Callable[..., Any] = graph_module.forward
        return forward
    try:
        return _compile(graph_module, example_inputs, parsed)
    except IntarsiaError as error:
        return run_eagerly(graph_module, error, is_strict=parsed.strict)
    except Exception as error:  # internals of PyTorch change from release to release
        reason = LeftToPyTorchError(f"{type(error).__name__}: {error}"[:400])
        reason.__cause__ = error
        return run_eagerly(graph_module, reason, is_strict=parsed.strict)


def _compile(graph_module: Any, example_inputs: Sequence[Any], options: CompileOptions) -> Callable[..., Any]:
    from intarsia.torch_compile.compiled_graph import CompiledGraph
    from intarsia.torch_compile.lowered_graph import lower_graph
    from intarsia.torch_compile.programs import Programs

    args = [_concrete(example) for example in example_inputs]
    graph = lower_graph(graph_module, args, f"graph_{next(_NUMBERS)}")
    return CompiledGraph(graph, Programs(options), graph_module.forward, args)


def _concrete(example: Any) -> Any:
    """An argument of the first call; dynamo gives a symbol in place of an integer that may change."""
    node = getattr(example, "node", None)
    return example if node is None or not hasattr(node, "hint") else int(node.hint)
