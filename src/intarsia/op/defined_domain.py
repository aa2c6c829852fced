"""A domain of registered operators, in the form in which `op.opaque` describes domains."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from intarsia.ir import ABSENT, DType, TensorType, Type, is_compatible
from intarsia.op.onnx_types import attributes_from_protos, tensor_type_text
from intarsia.op.operator_definition import OperatorDefinition, defined_operators, definition_of
from intarsia.op.operator_signature import REQUIRED, AttributeFormal
from intarsia.support.errors import ExecutionError, IntarsiaError, InvalidModelError, UsageError

if TYPE_CHECKING:
    from onnx import NodeProto
    from onnx.defs import OpSchema

Array = npt.NDArray[Any]

_LONGEST: Final = 300
"""Characters of another library's message that are shown."""


class DefinedDomain:
    """Registered operators of a domain; see `op.opaque.OperatorDomain`.

    Args:
        domain: Name of the domain.
    """

    version: int = 1
    toolchains: frozenset[str] = frozenset()
    """Toolchains of the domain as a whole: none, since each operator has toolchains of its own."""
    judge: str = "its registered reference"

    def __init__(self, domain: str) -> None:
        self._domain = domain

    def obstacle(self) -> str | None:
        """Registered operators can be used on every machine."""
        return None

    def schema(self, name: str) -> OpSchema | None:
        """Return ONNX's description of an operator; None if it is not registered."""
        definition = definition_of(self._domain, name)
        return None if definition is None else _schema(definition)

    def operators(self) -> Sequence[str]:
        """Return the names of the registered operators."""
        return defined_operators(self._domain)

    def infer(
        self,
        node: NodeProto,
        types: Sequence[Type],
        values: Mapping[int, Array],  # noqa: ARG002 - shapes follow from types and attributes
    ) -> tuple[Type | None, ...]:
        """Return the types of a node's outputs, as the registered function infers them.

        Raises:
            InvalidModelError: The function raises, or the inputs or attributes do not fit.
            UsageError: The function returns something else than types.
        """
        return self._inferred(node, types)[: len(node.output)]

    def evaluate(self, node: NodeProto, types: Sequence[Type], values: Sequence[Array]) -> Sequence[Array]:
        """Compute the outputs of a node by the registered reference, in the inferred element types.

        Raises:
            ExecutionError: The reference raises, or its results have not the inferred types.
        """
        definition = self._definition(node.op_type)
        inferred = self._inferred(node, types)
        waiting = iter(values)
        given = [None if type_ == ABSENT else next(waiting) for type_ in types]
        keywords = _keywords(definition, node)
        try:
            with np.errstate(all="ignore"):  # infinities and NaNs are results like others
                returned = definition.reference(*definition.signature.positional(given), **keywords)
        except IntarsiaError:
            raise
        except Exception as error:  # functions of users raise any exception
            raise ExecutionError(
                f"the reference of operator {str(definition)!r} raises {_text(error)}"
            ) from error
        results = tuple(returned) if isinstance(returned, tuple | list) else (returned,)
        _check_count(definition, "reference", len(results), ExecutionError)
        results = tuple(
            _as_inferred(definition, value, type_) for value, type_ in zip(results, inferred, strict=True)
        )
        return results[: len(node.output)]

    def _inferred(self, node: NodeProto, types: Sequence[Type]) -> tuple[Type | None, ...]:
        """Return the type of every output of a node's operator."""
        definition = self._definition(node.op_type)
        keywords = _keywords(definition, node)
        _check_inputs(definition, types)
        given = definition.signature.positional([None if type_ == ABSENT else type_ for type_ in types])
        try:
            returned = definition.infer(*given, **keywords)
        except IntarsiaError:
            raise
        except Exception as error:  # functions of users raise any exception
            shown = ", ".join(map(str, types))
            raise InvalidModelError(
                f"operator {str(definition)!r} cannot be applied to ({shown}): infer raises {_text(error)}"
            ) from error
        results = tuple(returned) if isinstance(returned, tuple | list) else (returned,)
        _check_count(definition, "infer", len(results), UsageError)
        wrong = next((item for item in results if not isinstance(item, TensorType | None)), None)
        if wrong is not None:
            raise UsageError(
                f"infer of operator {str(definition)!r} returns {wrong!r}, expected a TensorType",
                help="from intarsia.ir import DType, TensorType; TensorType((2, 3), DType.FLOAT32)",
            )
        return results

    def _definition(self, name: str) -> OperatorDefinition:
        definition = definition_of(self._domain, name)
        assert definition is not None, name  # its schema was looked up before
        return definition


def _keywords(definition: OperatorDefinition, node: NodeProto) -> dict[str, Any]:
    given = attributes_from_protos(list(node.attribute))
    return definition.signature.keywords(given, str(definition))


def _check_inputs(definition: OperatorDefinition, types: Sequence[Type]) -> None:
    signature = definition.signature
    if not signature.required <= len(types) <= len(signature.inputs):
        few, many = signature.required, len(signature.inputs)
        expected = str(few) if few == many else f"{few} to {many}"
        raise InvalidModelError(
            f"operator {str(definition)!r} has {len(types)} inputs, expected {expected}",
            help=f"its inputs: {', '.join(signature.inputs) or 'none'}",
        )
    for name, type_ in zip(signature.inputs[: signature.required], types, strict=False):
        if type_ == ABSENT:
            raise InvalidModelError(f"operator {str(definition)!r} lacks its input {name!r}")


def _check_count(
    definition: OperatorDefinition, function: str, count: int, kind: Callable[[str], IntarsiaError]
) -> None:
    if count != len(definition.outputs):
        raise kind(
            f"{function} of operator {str(definition)!r} returns {count} values, "
            f"expected one for each output: {', '.join(definition.outputs)}"
        )


def _as_inferred(definition: OperatorDefinition, value: Any, type_: Type | None) -> Array:
    """Return a result in the inferred element type; a reference may compute in a wider one."""
    array = np.asarray(value)
    if not isinstance(type_, TensorType):
        return array
    if np.can_cast(array.dtype, type_.dtype.numpy, "same_kind"):
        array = array.astype(type_.dtype.numpy, copy=False)
    if array.dtype != type_.dtype.numpy or not is_compatible(TensorType.of(array), type_):
        raise ExecutionError(
            f"the reference of operator {str(definition)!r} returns {np.asarray(value).dtype.name} "
            f"{array.shape}, and its infer says {type_}"
        )
    return array


@lru_cache(maxsize=256)
def _schema(definition: OperatorDefinition) -> OpSchema:
    from onnx import defs

    signature = definition.signature
    kinds = defs.OpSchema.FormalParameterOption
    options = [
        kinds.Single if position < signature.required else kinds.Optional
        for position in range(len(signature.inputs))
    ]
    types = [tensor_type_text(dtype) for dtype in DType]
    inputs = [
        defs.OpSchema.FormalParameter(name, f"T{position}", param_option=option)
        for position, (name, option) in enumerate(zip(signature.inputs, options, strict=True))
    ]
    outputs = [
        defs.OpSchema.FormalParameter(name, f"R{position}")
        for position, name in enumerate(definition.outputs)
    ]
    variables = [formal.type_str for formal in (*inputs, *outputs)]
    return defs.OpSchema(
        definition.name,
        definition.domain,
        1,
        inputs=inputs,
        outputs=outputs,
        type_constraints=[(variable, types, "") for variable in variables],
        attributes=[_attribute(name, formal) for name, formal in signature.attributes.items()],
    )


def _attribute(name: str, formal: AttributeFormal) -> Any:
    from onnx import defs

    kind = getattr(defs.OpSchema.AttrType, formal.kind.value)
    return defs.OpSchema.Attribute(name, kind, required=formal.default is REQUIRED)


def _text(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:_LONGEST]
