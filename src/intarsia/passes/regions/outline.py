"""A part of a program as a function, and what a call of it stands for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from intarsia.ir import Attrs, Call, Expr, Function, Tuple, TupleGetItem, Var


@dataclass(frozen=True, slots=True, eq=False)
class Outline:
    """A part of a program as a function.

    Attributes:
        function: Function that returns the output, or a tuple of the outputs.
        arguments: Expressions of the program that it is to be called with.
        outputs: Expressions of the program that its results stand for.
    """

    function: Function
    arguments: tuple[Expr, ...]
    outputs: tuple[Expr, ...]

    def called(self, arguments: tuple[Expr, ...]) -> dict[Expr, Expr]:
        """What stands for each output when the function is called; types, spans and devices are kept."""
        last, function = self.outputs[-1], self.function
        call = Call(
            function,
            arguments,
            checked_type=function.result_type,
            virtual_device=last.virtual_device,
            span=last.span,
        )
        if len(self.outputs) == 1:
            return {last: call}
        return {
            output: TupleGetItem(
                call,
                index,
                checked_type=output.checked_type,
                virtual_device=output.virtual_device,
                span=output.span,
            )
            for index, output in enumerate(self.outputs)
        }

    @classmethod
    def of(
        cls,
        params: Mapping[Expr, Var],
        results: tuple[Expr, ...],
        outputs: tuple[Expr, ...],
        attrs: Attrs,
    ) -> Outline:
        """A function literal that gives results over parameters; it stands where the last output stood."""
        last = outputs[-1]
        body = results[0]
        if len(results) > 1:
            body = Tuple(results, virtual_device=last.virtual_device, span=last.span)
        function = Function(
            tuple(params.values()), body, attrs, virtual_device=last.virtual_device, span=last.span
        )
        return cls(function, tuple(params), outputs)


def outline_params(arguments: Sequence[Expr]) -> dict[Expr, Var]:
    """A parameter p0, p1 ... for each argument, with its type, span and device."""
    return {
        arg: Var(
            f"p{position}",
            checked_type=arg.checked_type,
            virtual_device=arg.virtual_device,
            span=arg.span,
        )
        for position, arg in enumerate(arguments)
    }
