"""Intarsia as a backend of ONNX's own interface (`onnx.backend.base`), which ONNX's test suite drives.

    import intarsia.onnx_backend as backend
    outputs = backend.prepare(model).run([x])

`IntarsiaBackend` chooses an engine: on the first run every usable engine is compiled and verified on the
inputs of
that run, and the fastest correct one is kept; the reference toolchain if there is none.
`backend_for("openvino")` uses one toolchain, without verification.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from onnx import ModelProto, NodeProto, TypeProto, helper
from onnx.backend.base import Backend, BackendRep
from onnx.backend.test.runner import BackendIsNotSupposedToImplementIt

from intarsia.build import build
from intarsia.frontend.onnx import from_onnx
from intarsia.frontend.onnx.exporter import IR_VERSION
from intarsia.ir import IRModule, SequenceType, TensorType, TupleType, Type
from intarsia.measure.element_kind import ElementKind, element_kind
from intarsia.measure.judge.definition_cost import is_small
from intarsia.measure.judge.gate import Gate
from intarsia.measure.judge.quorum import JudgeLimits
from intarsia.measure.whole_run import WholeRun, run_whole
from intarsia.op import PINNED_OPSET
from intarsia.op.onnx_types import type_to_proto
from intarsia.passes import partition_whole
from intarsia.runtime.executable import Executable
from intarsia.runtime.kernel import Array, Value
from intarsia.support.errors import CompileError, InputError, UnsupportedModelError
from intarsia.target import Target
from intarsia.target.reference import REFERENCE_TARGET
from intarsia.toolchain import targets

__all__ = [
    "BackendIsNotSupposedToImplementIt",
    "IntarsiaBackend",
    "IntarsiaRep",
    "backend_for",
    "prepare",
    "run_model",
    "run_node",
    "supports_device",
]


class IntarsiaRep(BackendRep):  # type: ignore[misc]  # onnx is not typed for us
    """A model that is ready to run, on a given toolchain or on the one that its first run chooses.

    Args:
        module: The imported model.
        target: Target of the whole model; None to choose on the first run.
    """

    def __init__(self, module: IRModule, target: Target | None) -> None:
        self._module = module
        self._executable = None if target is None else build(partition_whole(module, target))

    def run(self, inputs: Any, **_: Any) -> tuple[Value, ...]:
        """Run the model, and return its outputs.

        Args:
            inputs: Arrays (lists and None for ONNX's sequences and optionals): a sequence in the order of
                the model's inputs, a mapping by name, or the array of the only input.

        Raises:
            BackendIsNotSupposedToImplementIt: No toolchain can run the model.
            InputError: The inputs do not fit the model.
            ExecutionError: A toolchain failed while running.
        """
        named = self._bind(inputs)
        if self._executable is None:
            with _refusals():
                self._executable = _choose_fastest(self._module, named)
        return tuple(self._executable.run_flat(**named))

    def _bind(self, inputs: Any) -> dict[str, Any]:
        names = [param.name for param in self._module["main"].params]
        if not isinstance(inputs, Mapping):
            given = [inputs] if isinstance(inputs, np.ndarray) else list(inputs)
            if len(given) > len(names):
                raise InputError(f"{len(given)} inputs were given, expected {len(names)}")
            inputs = dict(zip(names, given, strict=False))
        return {name: _plain(value) for name, value in inputs.items()}


class IntarsiaBackend(Backend):  # type: ignore[misc]  # onnx is not typed for us
    """Runs each model on the fastest correct toolchain, which its first run chooses."""

    target: ClassVar[Target | None] = None

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **_: Any) -> IntarsiaRep:
        """Import a model and, if the backend has a fixed target, compile it.

        Raises:
            BackendIsNotSupposedToImplementIt: Intarsia, the toolchain or the device does not support it.
            InvalidModelError: It is not a valid model.
        """
        if not cls.supports_device(device):
            raise BackendIsNotSupposedToImplementIt(f"the device {device!r} is not supported, only CPU")
        with _refusals():
            return IntarsiaRep(from_onnx(model), cls.target)

    @classmethod
    def run_node(
        cls,
        node: NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Sequence[tuple[Any, tuple[int, ...]]] | None = None,
        **kwargs: Any,
    ) -> tuple[Value, ...]:
        """Run a single node.

        Args:
            node: The node.
            inputs: One value for each of its inputs that has a name, as for `IntarsiaRep.run`.
            device: "CPU".
            outputs_info: Ignored, because types are inferred.
            **kwargs: `opset_version`, if the node is not of the opset that Intarsia works with.

        Raises:
            BackendIsNotSupposedToImplementIt: As `prepare`.
            InvalidModelError: It is not a valid node.
        """
        del outputs_info
        names = [name for name in dict.fromkeys(node.input) if name]
        if not isinstance(inputs, Mapping):
            given = [inputs] if isinstance(inputs, np.ndarray) else list(inputs)
            if len(given) != len(names):
                raise InputError(f"{len(given)} inputs were given, expected {len(names)}")
            inputs = dict(zip(names, given, strict=True))
        feeds = {name: _plain(value) for name, value in inputs.items()}
        model = _model_of(node, feeds, int(kwargs.get("opset_version", PINNED_OPSET)))
        return cls.prepare(model, device).run(feeds)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether it is the CPU."""
        return device.split(":", maxsplit=1)[0] == "CPU"


def backend_for(toolchain: str) -> type[IntarsiaBackend]:
    """Create a backend that runs every model on one toolchain, without verification.

    Args:
        toolchain: Name of the toolchain, such as "openvino".
    """
    target = Target.for_toolchain(toolchain)
    return type(f"{toolchain.capitalize()}Backend", (IntarsiaBackend,), {"target": target})


prepare = IntarsiaBackend.prepare
run_model = IntarsiaBackend.run_model
run_node = IntarsiaBackend.run_node
supports_device = IntarsiaBackend.supports_device


@contextmanager
def _refusals() -> Iterator[None]:
    """Convert errors that mean "not supported" to the exception that ONNX's test suite expects."""
    try:
        yield
    except (UnsupportedModelError, CompileError) as error:
        raise BackendIsNotSupposedToImplementIt(str(error)) from error


def _choose_fastest(module: IRModule, inputs: Mapping[str, Any]) -> Executable:
    """Return the executable of the fastest correct engine, or of the reference if no engine is verified."""
    engines = [target for target in targets() if target != REFERENCE_TARGET]
    if engines and _is_comparable(module):
        with suppress(UnsupportedModelError):  # a result that cannot be compared
            right = list(_measure_correct(module, engines, inputs))
            if right:
                return min(right, key=lambda run: run.call_seconds).executable
    return build(partition_whole(module, REFERENCE_TARGET))


def _measure_correct(
    module: IRModule, engines: Sequence[Target], inputs: Mapping[str, Any]
) -> Iterator[WholeRun]:
    """Run the engines, and yield the correct runs with the time of the second call."""
    is_defined = is_small(module)
    gate = Gate.for_module(module, inputs, JudgeLimits(is_by_definition=is_defined))
    for target in engines:
        with suppress(Exception):  # engines raise exceptions of any type; one that fails is not correct
            run = run_whole(module, target, inputs)
            start = time.perf_counter()
            run.executable.run_flat(**inputs)
            seconds = time.perf_counter() - start
            is_right = gate.check(run.outputs).passed
            if is_right and (not is_defined or _conforms(run.outputs, gate.expected)):
                yield replace(run, call_seconds=seconds)


def _conforms(outputs: Sequence[Array], expected: Sequence[Array]) -> bool:
    """Whether ONNX's test suite would accept a result, by the tolerances of its runner.

    The gate has passed it already. The gate is stricter almost everywhere, but more tolerant next to zero,
    because
    an element of a long sum cannot be more accurate than the rounding of the sum's largest terms.
    """
    return all(_is_close(*pair) for pair in zip(outputs, expected, strict=True))


def _is_close(output: Array, expected: Array) -> bool:
    kind = element_kind(expected.dtype)
    if kind is ElementKind.TEXT:
        return True
    wide = np.complex128 if kind is ElementKind.COMPLEX else np.float64
    # The tolerances of onnx.backend.test.runner; bfloat16 has 8 significant bits, coarser than 1e-3.
    rtol = 2.0**-6 if expected.dtype.name == "bfloat16" else 1e-3
    close = np.isclose(output.astype(wide), expected.astype(wide), rtol, atol=1e-7, equal_nan=True)
    return bool(close.all())


def _is_comparable(module: IRModule) -> bool:
    """Whether all inputs and outputs of @main are tensors."""
    main = module["main"]
    types = [*(param.checked_type for param in main.params), *_fields(main.result_type)]
    return all(isinstance(type_, TensorType) for type_ in types)


def _fields(type_: Type | None) -> Iterable[Type | None]:
    return type_.fields if isinstance(type_, TupleType) else (type_,)


def _plain(value: Any) -> Value:
    return value if value is None or isinstance(value, list) else np.asarray(value)


def _model_of(node: NodeProto, feeds: Mapping[str, Value], opset: int) -> ModelProto:
    inputs = [helper.make_value_info(name, _proto_of(value)) for name, value in feeds.items()]
    outputs = [helper.make_value_info(name, TypeProto()) for name in node.output if name]
    opsets = [helper.make_opsetid(node.domain, opset)]
    graph = helper.make_graph([node], node.op_type or "node", inputs, outputs)
    return helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)


def _proto_of(value: Value) -> TypeProto:
    """Return the type of a value; an empty type for None, because the type of an absent value is unknown."""
    if value is None:
        return TypeProto()
    if isinstance(value, list):
        dtypes = {TensorType.of(item).dtype for item in value if isinstance(item, np.ndarray)}
        if len(dtypes) != 1:
            return TypeProto()
        return type_to_proto(SequenceType(TensorType(None, dtypes.pop())))
    return type_to_proto(TensorType.of(value))
