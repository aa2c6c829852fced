"""A pass: `IRModule -> IRModule`, and nothing else happens to a model."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import fields, is_dataclass, replace
from typing import Any, Self

from intarsia.ir import IRModule
from intarsia.support.errors import UsageError
from intarsia.transform.completion import completed
from intarsia.transform.diagnostic import running
from intarsia.transform.immutable_module import IMMUTABLE_MODULE, changed_in_place
from intarsia.transform.pass_context import PassContext
from intarsia.transform.pass_info import PassInfo
from intarsia.transform.pass_text import pass_text
from intarsia.transform.program_feature import ProgramFeature, require_features


class Pass(ABC):
    """Turns a module into another; the same object if there is nothing to change (DESIGN sections 1 and 5).

    Write a pass as a subclass of `ModulePass`, `FunctionPass` or `PrimFuncPass`; its options are the fields
    of a frozen dataclass, and what `PassInfo` holds stands in the class statement:

        @register_pass
        @dataclass(frozen=True)
        class DropRelu(FunctionPass, opt_level=1, required=("InferType",)):
            only_first: bool = False

            def transform_function(self, function, mod, ctx): ...

    Attributes:
        info: Name, level and constraints.
    """

    info: PassInfo

    def __init_subclass__(
        cls,
        *,
        name: str | None = None,
        opt_level: int | None = None,
        required: Iterable[str] | None = None,
        after: Iterable[str] | None = None,
        directly_after: str | None = None,
        directly_before: str | None = None,
        conflicts: Iterable[str] | None = None,
        handles: Iterable[ProgramFeature] | None = None,
        places_devices: bool | None = None,
    ) -> None:
        """Derive the info from the class statement; what is left out comes from the base class."""
        given = {
            "opt_level": opt_level,
            "required": required,
            "after": after,
            "directly_after": directly_after,
            "directly_before": directly_before,
            "conflicts": conflicts,
            "handles": handles,
            "places_devices": places_devices,
        }
        inherited = getattr(cls, "info", PassInfo(""))
        changes: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
        cls.info = replace(inherited, name=name or cls.__name__, **changes)

    def with_info(self, **changes: object) -> Self:
        """The same pass under other constraints, such as `required=("InferType",)`.

        Raises:
            UsageError: `PassInfo` has no such fact, or it is of another type.
        """
        names = [item.name for item in fields(PassInfo)]
        unknown = next((name for name in changes if name not in names), None)
        if unknown is not None:
            raise UsageError(f"passes have no fact {unknown!r}", help=f"they have: {', '.join(names)}")
        other = copy.copy(self)
        info = replace(self.info, **changes)  # type: ignore[arg-type]  # names and types are the caller's
        object.__setattr__(other, "info", info)
        return other

    def __call__(self, mod: IRModule, ctx: PassContext | None = None) -> IRModule:
        """Apply the pass, whatever the context enables: only a `Sequential` decides that.

        Args:
            mod: The program; it stays as it is.
            ctx: The context to run under; default: the current one.

        Returns:
            The program after the pass; `mod` itself if an instrument said no, or nothing changed.

        Raises:
            UsageError: `mod` is no module, or the pass returned none.
            UnhandledFeatureError: The program uses a language feature that the pass does not handle.
        """
        if not isinstance(mod, IRModule):
            what = type(mod).__name__
            hint = "IRModule.from_expr(function) makes a module of one function" if what == "Function" else ""
            raise UsageError(f"pass {self.info.name} takes an IRModule, got {what}", help=hint)
        ctx = PassContext.current() if ctx is None else ctx
        if not isinstance(ctx, PassContext):
            raise UsageError(f"pass {self.info.name} runs under a PassContext, got {type(ctx).__name__}")
        if not ctx.before_pass(mod, self.info):
            return mod
        try:
            with running(self.info.name):
                if ctx.trace is None or not self.is_recorded:
                    after = self._apply(mod, ctx)
                else:
                    after = ctx.trace.recorded(self, mod, lambda: self._apply(mod, ctx))
        except Exception as error:
            error.add_note(f"in pass {self.info.name}")
            raise
        ctx.after_pass(after, self.info)
        return after

    def _apply(self, mod: IRModule, ctx: PassContext) -> IRModule:
        if self.info.handles is not None:
            require_features(mod, self.info.name, self.info.handles)
        if ctx.option(IMMUTABLE_MODULE):
            with changed_in_place(mod):
                after = self.transform(mod, ctx)
        else:
            after = self.transform(mod, ctx)
        if not isinstance(after, IRModule):
            raise UsageError(
                f"pass {self.info.name} returned {type(after).__name__}, expected an IRModule",
                help="return the module that it was given if there is nothing to change",
            )
        return after if self.inner_passes else completed(mod, after, self.info, ctx)

    @abstractmethod
    def transform(self, mod: IRModule, ctx: PassContext) -> IRModule:
        """What the pass does."""

    @property
    def is_recorded(self) -> bool:
        """Whether a trace lists the pass itself (not the passes inside it)."""
        return True

    @property
    def inner_passes(self) -> tuple[Pass, ...]:
        """The passes that it runs inside by the rules of a sequence; none but in a `Sequential`."""
        return ()

    @property
    def options(self) -> dict[str, object]:
        """The values of the pass's fields, by name."""
        return {item.name: getattr(self, item.name) for item in fields(self)} if is_dataclass(self) else {}

    def __str__(self) -> str:
        """`FoldConstant{max_bytes=1024}`: its name, and the options that are not as by default."""
        return pass_text(self)
