"""Passes in a row; the only place that decides whether a pass runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from intarsia.ir import IRModule
from intarsia.support.errors import UsageError
from intarsia.transform.compiler_pass import Pass
from intarsia.transform.enablement import enablement
from intarsia.transform.explanation import Explanation, explain
from intarsia.transform.name_list import name_list
from intarsia.transform.pass_context import PassContext
from intarsia.transform.pass_order import check_order
from intarsia.transform.pass_registry import create_pass
from intarsia.transform.pass_text import LINE_WIDTH, pass_text


class Sequential(Pass):
    """Runs passes one after the other (seed pass_infra, sequential passes). Sequences nest.

    For each pass: if the context enables it, its required passes run first, then the pass itself. Required
    passes run whatever the context says, and so do passes that are called without a sequence. `explain` says
    what will run and why.

    Args:
        passes: The passes, in order.
        name: For people, and for the sequence around this one.
        opt_level: Level from which a sequence around this one runs it; it does not bear on the passes inside.
        required: Passes to run before this sequence, if it stands in another one.
    """

    def __init__(
        self,
        passes: Iterable[Pass],
        name: str = "sequential",
        opt_level: int = 0,
        required: Iterable[str] = (),
    ) -> None:
        if isinstance(passes, str) or not isinstance(passes, Iterable):
            raise UsageError(
                f"a Sequential takes a list of passes, got {passes!r}",
                help="write [...] around it; load_pass_sequence finds a sequence by its name",
            )
        self.passes = tuple(passes)
        for item in self.passes:
            if not isinstance(item, Pass):
                raise UsageError(f"a Sequential takes passes, got {item!r}{_hint(item)}")
        self.info = replace(
            self.info, name=name, opt_level=opt_level, required=name_list("required", required)
        )
        self._is_constrained = any(item.info.is_constrained for item in self.flattened())

    def __call__(self, mod: IRModule, ctx: PassContext | None = None) -> IRModule:
        """Check the order of all passes, then run those that are enabled.

        Raises:
            PassOrderError: The sequence breaks a constraint of its passes; nothing has run.
        """
        ctx = PassContext.current() if ctx is None else ctx
        if self._is_constrained:
            check_order(self, ctx)
        return super().__call__(mod, ctx)

    def transform(self, mod: IRModule, ctx: PassContext) -> IRModule:
        """Run the passes that are enabled."""
        for item in self.passes:
            if enablement(item.info, ctx).is_enabled:
                mod = _with_required(item, mod, ctx)
        return mod

    def flattened(self) -> Iterator[Pass]:
        """Every pass inside, also inside nested sequences, in order; a sequence comes before its passes."""
        for item in self.passes:
            yield item
            if isinstance(item, Sequential):
                yield from item.flattened()

    def explain(self, ctx: PassContext | None = None) -> Explanation:
        """What would run under a context (default: the current one), and why; `print` it."""
        return explain(self, PassContext.current() if ctx is None else ctx)

    @property
    def is_recorded(self) -> bool:
        """No: a trace lists the passes inside."""
        return False

    @property
    def inner_passes(self) -> tuple[Pass, ...]:
        """The passes, in order."""
        return self.passes

    @property
    def options(self) -> dict[str, object]:
        """None: the passes inside are what it is."""
        return {}

    def __eq__(self, other: object) -> bool:
        """Whether the other is a sequence of equal passes, under the same name and constraints."""
        if not isinstance(other, Sequential):
            return NotImplemented
        return (self.info, self.passes) == (other.info, other.passes)

    def __hash__(self) -> int:
        return hash((self.info.name, len(self.passes)))

    def __repr__(self) -> str:
        """The text on one line, which is the same in every process, as digests of options need."""
        return pass_text(self)

    def __str__(self) -> str:
        """`Sequential{name="tidy", passes=[InferType, FoldConstant]}`, in lines if it is long."""
        return pass_text(self, LINE_WIDTH)


def _hint(wrong: object) -> str:
    if wrong is None:
        return " (a function that makes a pass has to return it)"
    if isinstance(wrong, type):
        return " (an instance is needed: add parentheses)"
    if isinstance(wrong, str):
        return f" (a pass is needed: get_pass({wrong!r}))"
    if callable(wrong):
        return " (a function becomes a pass by @module_pass or @function_pass)"
    return ""


def _with_required(item: Pass, mod: IRModule, ctx: PassContext) -> IRModule:
    for name in item.info.required:
        mod = _with_required(create_pass(name), mod, ctx)
    return Pass.__call__(item, mod, ctx)  # of a nested sequence, the order has been checked with the whole
