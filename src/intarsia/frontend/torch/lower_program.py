"""Lower an exported program to ONNX, with weights beside the message as tensors."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import torch
from torch.export.graph_signature import OutputKind, OutputSpec
from torch.utils import _pytree

from intarsia.frontend.torch.node_names import module_path, name_nodes
from intarsia.frontend.torch.training_mode import mutating_operators
from intarsia.support.errors import UnsupportedModelError, causes

if TYPE_CHECKING:
    from onnx import ModelProto

_MUTATIONS: Final = tuple(
    getattr(OutputKind, name)
    for name in ("BUFFER_MUTATION", "USER_INPUT_MUTATION", "PARAMETER_MUTATION")
    if hasattr(OutputKind, name)  # PARAMETER_MUTATION is younger than the oldest release that we take
)


_FUSED_ATTENTION: Final = "_transformer_encoder_layer_fwd"
_FUSED_ATTENTION_HELP: Final = (
    "call torch.backends.mha.set_fastpath_enabled(False) before the model is compiled"
)
_HELP: Final = (
    "replace it, or compile the parts around it: torch.compile(model, backend='intarsia') "
    "leaves to PyTorch what cannot be converted"
)


@dataclass(frozen=True, slots=True)
class LoweredProgram:
    """A program of PyTorch as ONNX.

    Attributes:
        proto: The message; weights are inputs of its graph, after the other inputs.
        weights: Tensors of parameters, buffers and constants, by the names of those inputs.
        mutated: Names of buffers, and of inputs of the exported program, that the program writes to.
    """

    proto: ModelProto
    weights: dict[str, Any]
    mutated: tuple[str, ...] = ()


def lower_exported(exported: Any, *, keeps_mutations: bool = False) -> LoweredProgram:
    """Lower an ExportedProgram by PyTorch's ONNX exporter.

    Args:
        exported: The program.
        keeps_mutations: Whether new values of inputs and buffers that the program writes to are results,
            before the others. Otherwise they are left out.

    Raises:
        UnsupportedModelError: The exporter has no rule for an operator; the message names its module.
    """
    mutated: tuple[str, ...] = ()
    with no_tracing(), torch.no_grad():
        if mutating_operators(exported.graph_module):
            with silent_exporter():
                exported = exported.run_decompositions({})  # writes become results
            mutated = tuple(str(spec.target) for spec in _mutations(exported))
        if mutated and keeps_mutations:
            exported = _mutations_as_results(exported)
        try:
            with silent_exporter():
                program = torch.onnx.export(exported, dynamo=True, optimize=False, verbose=False)
        except Exception as error:  # the exporter passes on what operators raise
            raise unsupported(error) from error
    return replace(lower_onnx(program), mutated=mutated)


def lower_onnx(program: Any, *, optimizes: bool = True) -> LoweredProgram:
    """Take the weights out of an ONNXProgram.

    Args:
        program: The program; its model is changed.
        optimizes: Whether the exporter's constant folding runs, without the weights.
    """
    graph, weights = program.model.graph, {}
    for name, value in list(graph.initializers.items()):
        tensor = getattr(value.const_value, "raw", None)
        if not isinstance(tensor, torch.Tensor):
            continue
        weights[name] = tensor
        value.const_value = None
        del graph.initializers[name]
        graph.inputs.append(value)
    if optimizes:
        with silent_exporter():
            program.optimize()  # replaces the model
    name_nodes(program.model.graph)
    for function in program.model.functions.values():
        name_nodes(function)
    program.model.graph.metadata_props.clear()
    return LoweredProgram(program.model_proto, weights)


@contextmanager
def no_tracing() -> Generator[None]:
    """Hide a compilation by dynamo that is under way, so that an export has symbols of its own."""
    with torch._guards.tracing(None):
        yield


@contextmanager
def silent_exporter() -> Generator[None]:
    """Suppress the exporter's warnings, which are about its own code; errors are raised all the same."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


def unsupported(error: Exception) -> UnsupportedModelError:
    """Return an error of the exporter as one about the model, with the operator and its module if known."""
    chain = list(causes(error, with_contexts=True))
    operator, path = next(filter(any, map(_node_of, chain)), ("", ""))
    detail = next(
        (" ".join(str(item).split()) for item in reversed(chain) if str(item)), type(error).__name__
    )
    what = f"the operator {operator}" if operator else "the model"
    where = f" of module {path}" if path else ""
    return UnsupportedModelError(
        f"PyTorch's ONNX exporter cannot convert {what}{where}: {detail[:400]}",
        help=_FUSED_ATTENTION_HELP if _FUSED_ATTENTION in operator else _HELP,
    )


def _node_of(error: BaseException) -> tuple[str, str]:
    """Operator and module path of the FX node that an exception in the exporter is about."""
    traceback = error.__traceback__
    operator = path = ""
    while traceback is not None:
        node = traceback.tb_frame.f_locals.get("node")
        if isinstance(node, torch.fx.Node) and node.op == "call_function":
            stack = node.meta.get("nn_module_stack") or {}
            operator = str(node.target)
            path = module_path(list(stack.values())[-1][0]) if stack else ""
        traceback = traceback.tb_next
    return operator, path


def _mutations(exported: Any) -> Sequence[Any]:
    return [spec for spec in exported.graph_signature.output_specs if spec.kind in _MUTATIONS]


def _mutations_as_results(exported: Any) -> Any:
    """Return a program whose results include new values of what it writes to; they stand first already."""
    specs = [
        OutputSpec(OutputKind.USER_OUTPUT, spec.arg, None) if spec.kind in _MUTATIONS else spec
        for spec in exported.graph_signature.output_specs
    ]
    exported.graph_signature.output_specs = specs
    _, structure = _pytree.tree_flatten(tuple(range(len(specs))))
    exported.module_call_graph[0].signature.out_spec = structure
    return exported
