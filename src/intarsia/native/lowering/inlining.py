"""Inlining of stages into the expressions that read them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from intarsia.ir.prim_func import Load, LoopVar, Scalar
from intarsia.native.loop_state.stage import ComputeAt, Stage
from intarsia.native.lowering.scalar_form import rewrite
from intarsia.native.te import ComputeOp
from intarsia.support.errors import UsageError


class Inlining:
    """Replaces loads of inlined stages by their expressions."""

    def __init__(self, stages: Sequence[Stage]) -> None:
        """Inline each inlined stage, in order, into the stages that read it.

        Raises:
            UsageError: A reduction, or what is no compute operation, is inlined.
        """
        self._inlined: dict[str, tuple[ComputeOp, Scalar]] = {}
        self._replacements: dict[Load, Scalar] = {}
        self._bodies: dict[str, tuple[Scalar, ...]] = {}
        for stage in stages:
            op = stage.op
            is_inlined = stage.compute_at is ComputeAt.INLINED
            if not isinstance(op, ComputeOp):
                if is_inlined:
                    raise UsageError(f"{op.name} is inlined; expected an operation with expressions")
                continue
            self._bodies[op.name] = self._with_inlined(op)
            if is_inlined:
                if op.combiner is not None:
                    raise UsageError(f"{op.name} is inlined; expected an operation without a reduction")
                self._inlined.update(
                    (buffer.name, (op, body))
                    for buffer, body in zip(op.buffers, self._bodies[op.name], strict=True)
                )

    def bodies(self, op: ComputeOp) -> tuple[Scalar, ...]:
        """Return an operation's expressions, which read no inlined stage."""
        return self._bodies[op.name]

    def load(self, load: Load) -> Scalar:
        """Return the replacement of a load: itself, or the element of an inlined stage."""
        inlined = self._inlined.get(load.buffer.name)
        if inlined is None:
            return load
        if load not in self._replacements:
            op, body = inlined
            values = {axis.name: index for axis, index in zip(op.axes, load.indices, strict=True)}
            self._replacements[load] = rewrite(body, _substitution(values))
        return self._replacements[load]

    def _with_inlined(self, op: ComputeOp) -> tuple[Scalar, ...]:
        if not any(tensor.buffer.name in self._inlined for tensor in op.inputs):
            return op.bodies

        def rule(scalar: Scalar) -> Scalar:
            return self.load(scalar) if isinstance(scalar, Load) else scalar

        return tuple(rewrite(body, rule) for body in op.bodies)


def _substitution(values: Mapping[str, Scalar]) -> Callable[[Scalar], Scalar]:
    def rule(scalar: Scalar) -> Scalar:
        return values[scalar.name] if isinstance(scalar, LoopVar) else scalar

    return rule
