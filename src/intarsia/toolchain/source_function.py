"""The source of a kernel as a program."""

from __future__ import annotations

from intarsia.frontend.onnx import UNLIMITED, from_onnx
from intarsia.ir import Constant, Expr, Function, GlobalVar, IRModule, substitute, with_fields
from intarsia.op.infer import infer_types
from intarsia.runtime.kernel import KernelSource
from intarsia.support.errors import CompileError, ModelError
from intarsia.toolchain.external_weights import external_tensors, weight_of
from intarsia.toolchain.onnx_port import parse_model


def source_function(source: KernelSource) -> Function:
    """The typed function that a source says; its weights are the source's arrays, not copied.

    Raises:
        CompileError: It is no model that Intarsia reads, or lacks a weight.
    """
    model = parse_model(source, source.toolchain)
    weights = {tensor.name: weight_of(tensor, source.weights) for tensor in external_tensors(model.graph)}
    kept = [tensor for tensor in model.graph.initializer if tensor.name not in weights]
    for tensor in model.graph.initializer:
        if tensor.name in weights:
            declared = model.graph.input.add(name=tensor.name)
            declared.type.tensor_type.elem_type = tensor.data_type
            shape = declared.type.tensor_type.shape
            for extent in tensor.dims:
                shape.dim.add(dim_value=extent)
    del model.graph.initializer[:]
    model.graph.initializer.extend(kept)
    try:
        imported = from_onnx(model, limits=UNLIMITED)["main"]
    except ModelError as error:
        problem = f"{source.toolchain} cannot compile this: {error.problem}"
        raise CompileError(problem, help=error.help) from error
    return _with_constants(imported, {name: Constant(array) for name, array in weights.items()})


def _with_constants(function: Function, constants: dict[str, Constant]) -> Function:
    """The function without the parameters that are constants."""
    bound: dict[Expr, Expr] = {
        param: constants[param.name] for param in function.params if param.name in constants
    }
    if not bound:
        return function
    params = tuple(param for param in function.params if param not in bound)
    body = substitute(function.body, bound)
    changed = with_fields(function, params=params, body=body, checked_type=None)
    typed = infer_types(IRModule({GlobalVar("main"): changed}))["main"]
    assert isinstance(typed, Function)
    return typed
