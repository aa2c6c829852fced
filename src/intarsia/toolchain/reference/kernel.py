"""What the reference toolchain compiles to: an evaluator of onnx."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from intarsia.runtime.clones import source_on_threads
from intarsia.runtime.kernel import Array, Kernel, KernelSource, Value
from intarsia.support.errors import CompileError, ExecutionError, IntarsiaError, UsageError
from intarsia.support.forks import hold_off_forks
from intarsia.target.reference import REFERENCE
from intarsia.toolchain.delivery import deliver_all
from intarsia.toolchain.external_weights import weight_of
from intarsia.toolchain.onnx_port import Port, input_ports, output_ports, parse_model
from intarsia.toolchain.package import exception_text
from intarsia.toolchain.reference.gather_elements import gather_elements_operator
from intarsia.toolchain.reference.loop import loop_operator
from intarsia.toolchain.reference.lp_normalization import lp_normalization_operator
from intarsia.toolchain.reference.lrn import lrn_operator
from intarsia.toolchain.reference.non_max_suppression import non_max_suppression_operator
from intarsia.toolchain.reference.opaque import opaque_operator_classes
from intarsia.toolchain.reference.own_operators import own_operators
from intarsia.toolchain.reference.pad import pad_operator
from intarsia.toolchain.reference.token_operators import token_operators

if TYPE_CHECKING:
    from onnx import TensorProto
    from onnx.reference import ReferenceEvaluator
    from onnx.reference.op_run import OpRun

    from intarsia.toolchain.whole_profiler import WholeProfiler


def load_kernel(source: KernelSource) -> Kernel:
    """The kernel of a source.

    Raises:
        CompileError: The evaluator has no implementation of an operator.
    """
    model = parse_model(source, REFERENCE)
    try:
        operators = [*_operators(), *opaque_operator_classes(model)]
        evaluator = _evaluator_class(source.weights)(model, new_ops=operators)
    except CompileError:
        raise
    except IntarsiaError as error:
        raise CompileError(f"reference cannot compile this: {error.problem}", help=error.help) from error
    except Exception as error:  # the evaluator raises whatever its operators do
        raise CompileError(f"reference cannot compile this: {exception_text(error)}") from error
    return ReferenceKernel(source, evaluator, input_ports(model.graph), output_ports(model.graph))


class ReferenceKernel:
    """An evaluator; results have the declared element types, and are copied into the caller's buffers."""

    def __init__(
        self,
        source: KernelSource,
        evaluator: ReferenceEvaluator,
        inputs: tuple[Port, ...],
        outputs: tuple[Port, ...],
    ) -> None:
        self.source = source
        self._evaluator: ReferenceEvaluator | None = evaluator
        self._input_ports = inputs
        self._names = tuple(port.name for port in inputs)
        self._output_ports = outputs

    def blob(self) -> bytes | None:
        """None: an evaluator has no compiled form."""
        return None

    def start_profiler(self) -> WholeProfiler:
        """As `ProfilableKernel.start_profiler`: one row for all operators."""
        from intarsia.toolchain.whole_profiler import WholeProfiler

        return WholeProfiler(self)

    def clones(self, count: int, threads: int | None = None) -> Sequence[ReferenceKernel]:
        """As `ClonableKernel.clones`: the evaluator, which runs one call at a time, is shared."""
        if self._evaluator is None:
            raise UsageError("the kernel is closed")
        source, ports = source_on_threads(self.source, threads), (self._input_ports, self._output_ports)
        return [ReferenceKernel(source, self._evaluator, *ports) for _ in range(count)]

    def close(self) -> None:
        """Let go of the evaluator and its weights."""
        self._evaluator = None

    def run(self, inputs: Sequence[Value], outputs: Sequence[Array | None]) -> list[Value]:
        """As `Kernel.run`."""
        if self._evaluator is None:
            raise UsageError("the kernel is closed")
        feeds = dict(zip(self._names, inputs, strict=True))
        try:
            with hold_off_forks(), np.errstate(all="ignore"):  # infinities and NaNs are results like others
                results = self._evaluator.run(None, feeds)
        except IntarsiaError as error:  # of a registered operator
            raise ExecutionError(f"reference failed: {error.problem}", help=error.help) from error
        except Exception as error:  # the evaluator raises whatever its operators do
            raise ExecutionError(f"reference failed: {exception_text(error)}") from error
        results = [
            _declared(value, port.dtype) for value, port in zip(results, self._output_ports, strict=True)
        ]
        return deliver_all(results, outputs)


def _declared(value: Any, dtype: np.dtype[Any] | None) -> Value:
    """A result as the model declares it, in memory of its own.

    The evaluator returns Python scalars, wider element types, and views or its very inputs.
    """
    if value is None or isinstance(value, list):
        return None if value is None else [_declared(item, None) for item in value]
    return np.array(value, dtype, order="C")


def _evaluator_class(weights: Mapping[str, Array]) -> type[ReferenceEvaluator]:
    """An evaluator that takes external initializers from `weights`, in subgraphs too, without a copy."""
    from onnx.reference import ReferenceEvaluator

    class WeightsBeside(ReferenceEvaluator):  # type: ignore[misc]  # onnx is not typed for us
        def retrieve_external_data(self, initializer: TensorProto) -> Array:
            return weight_of(initializer, weights)

    return WeightsBeside


def _operators() -> list[type[OpRun]]:
    """What the evaluator lacks, or has wrong."""
    return [
        gather_elements_operator(),
        loop_operator(),
        lp_normalization_operator(),
        lrn_operator(),
        non_max_suppression_operator(),
        pad_operator(),
        *own_operators(),
        *token_operators(),
    ]
