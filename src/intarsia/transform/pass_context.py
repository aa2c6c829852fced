"""What passes run under: level, enabled and disabled passes, options, instruments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from intarsia.ir import Expr, IRModule
from intarsia.support.errors import UsageError
from intarsia.transform.diagnostic import Diagnostic, DiagnosticLevel, DiagnosticNote, running_pass
from intarsia.transform.instrument_list import checked_instruments
from intarsia.transform.name_list import name_list
from intarsia.transform.pass_config import ConfigOption, checked_config, config_options
from intarsia.transform.pass_info import PassInfo
from intarsia.transform.pass_trace import PassTrace

if TYPE_CHECKING:
    from intarsia.transform.instrument.pass_instrument import PassInstrument

T = TypeVar("T")


class PassContext:
    """The settings that passes run under; enter it with `with` (seed pass_infra, PassContext).

    Entered contexts nest; each thread and each asyncio task has its own nesting. `current()` is the
    innermost, or a default context. An inner context replaces the outer one, it inherits nothing. What is
    compiled, tuned or measured inside is compiled under its settings; instruments watch this process only.

    Attributes:
        opt_level: Highest level of passes that a `Sequential` runs.
        required_pass: Names that a `Sequential` runs at any level, without asking instruments.
        disabled_pass: Names that a `Sequential` never runs; stronger than `required_pass`.
        config: Values of registered options, by key.
        trace: The passes applied under this context, if it was made with `record=True`; else None.

    Raises:
        UsageError: An unknown config key, a value of the wrong type, a string for a list of names, an
            instrument that is none.
    """

    def __init__(
        self,
        opt_level: int = 2,
        required_pass: Iterable[str] = (),
        disabled_pass: Iterable[str] = (),
        config: Mapping[str, object] | None = None,
        instruments: Iterable[PassInstrument] = (),
        record: bool = False,
    ) -> None:
        if not isinstance(opt_level, int):
            raise UsageError(f"opt_level is {opt_level!r}, expected a whole number")
        self.opt_level = opt_level
        self.required_pass = name_list("required_pass", required_pass)
        self.disabled_pass = name_list("disabled_pass", disabled_pass)
        self.config = checked_config(config or {})
        self.trace = PassTrace() if record else None
        self._instruments = checked_instruments(instruments)

    def __repr__(self) -> str:
        """The arguments that differ from the defaults, with the names of instruments."""
        given = [f"opt_level={self.opt_level}"]
        given += [
            f"{name}={list(value)!r}"
            for name, value in (("required_pass", self.required_pass), ("disabled_pass", self.disabled_pass))
            if value
        ]
        given += [f"config={dict(self.config)!r}"] if self.config else []
        instruments = ", ".join(type(instrument).__name__ for instrument in self._instruments)
        given += [f"instruments=[{instruments}]"] if instruments else []
        given += ["record=True"] if self.trace is not None else []
        return f"PassContext({', '.join(given)})"

    @staticmethod
    def current() -> PassContext:
        """The innermost context entered in this thread or task, or its default context."""
        stack = _ENTERED.get()
        if stack:
            return stack[-1]
        default = _DEFAULT.get()
        if default is None:
            default = PassContext()
            _DEFAULT.set(default)
        return default

    @staticmethod
    def list_configs() -> tuple[ConfigOption[object], ...]:
        """Every option that `config` may set, with its type, default and meaning."""
        return config_options()

    def option(self, option: ConfigOption[T]) -> T:
        """The value of an option under this context."""
        return self.config.get(option.key, option.default)  # type: ignore[return-value]  # checked on entry

    @property
    def instruments(self) -> tuple[PassInstrument, ...]:
        """The instruments in use, in calling order."""
        return tuple(self._instruments)

    @property
    def settings(self) -> dict[str, Any]:
        """Arguments of a context with the same settings and instruments: `PassContext(**ctx.settings)`."""
        return {
            "opt_level": self.opt_level,
            "required_pass": self.required_pass,
            "disabled_pass": self.disabled_pass,
            "config": self.config,
            "instruments": self.instruments,
        }

    def inner(self, required_pass: Iterable[str] = ()) -> PassContext:
        """Return a context with the same settings and instruments, for passes on a part of the program.

        It has no trace: a trace replays on the program itself. It is handed to passes, not entered, so that
        the instruments stay entered once.

        Args:
            required_pass: Names of further required passes.
        """
        settings = self.settings
        settings["required_pass"] = (*self.required_pass, *required_pass)
        return PassContext(**settings)

    def __enter__(self) -> Self:
        """Make this the current context; instruments are entered once, also if a pass enters it again."""
        stack = _ENTERED.get()
        if not any(entered is self for entered in stack):
            self._enter_instruments()
        _ENTERED.set((*stack, self))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Make the context around it the current one again.

        Raises:
            UsageError: It is not the innermost of this thread or task; it is left all the same.
        """
        stack = _ENTERED.get()
        position = max((index for index, entered in enumerate(stack) if entered is self), default=None)
        if position is None:
            raise UsageError("a PassContext is left that was not entered in this thread or task", help=_WITH)
        rest = (*stack[:position], *stack[position + 1 :])
        _ENTERED.set(rest)
        if not any(entered is self for entered in rest):
            self._exit_instruments()
        if position != len(stack) - 1:
            raise UsageError("a PassContext is left before one that was entered inside it", help=_WITH)

    def override_instruments(self, instruments: Iterable[PassInstrument]) -> None:
        """Leave the instruments in use, and enter others in their place (also on the default context)."""
        checked = checked_instruments(instruments)
        self._exit_instruments()
        self._instruments = checked
        self._enter_instruments()

    @property
    def is_diagnosing(self) -> bool:
        """Whether an instrument takes diagnostics; if not, a pass need not look for reasons."""
        return any(hasattr(instrument, _DIAGNOSTIC_HOOK) for instrument in self._instruments)

    def diagnose(
        self,
        expr: Expr,
        level: DiagnosticLevel,
        text: str,
        notes: Iterable[DiagnosticNote] = (),
    ) -> None:
        """Hand a statement of the running pass about an expression to the instruments that take it.

        Args:
            expr: Expression of the program that the pass was given.
            level: Level of the statement.
            text: The statement, which goes on after the name of the expression: "keeps its layout: ...".
            notes: Further expressions, each with what it has to do with the statement.
        """
        diagnostic = Diagnostic(running_pass(), expr, level, text, tuple(notes))
        for instrument in self.instruments:
            hook = getattr(instrument, _DIAGNOSTIC_HOOK, None)
            if hook is not None:
                hook(diagnostic)

    def before_pass(self, mod: IRModule, info: PassInfo) -> bool:
        """Call the instruments before a pass, and return whether it is to run.

        Every `should_run` is called, also after one returned false; a pass of `required_pass` runs unasked.
        """
        instruments = self.instruments
        if info.name not in self.required_pass:
            answers = [_answer(instrument, mod, info) for instrument in instruments]
            if not all(answers):
                return False
        for instrument in instruments:
            with _noting("run_before_pass", instrument, info):
                instrument.run_before_pass(mod, info)
        return True

    def after_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Call the instruments after a pass, with the module that it returned."""
        for instrument in self.instruments:
            with _noting("run_after_pass", instrument, info):
                instrument.run_after_pass(mod, info)

    def _enter_instruments(self) -> None:
        """Enter each in turn; if one raises, those entered are left in reverse order, and all are dropped."""
        entered: list[PassInstrument] = []
        try:
            for instrument in self._instruments:
                instrument.enter_pass_ctx()
                entered.append(instrument)
        except BaseException:
            self._instruments = []
            for instrument in reversed(entered):
                instrument.exit_pass_ctx()
            raise

    def _exit_instruments(self) -> None:
        """Leave each in turn; if one raises, the later ones are not left, and all are dropped."""
        try:
            for instrument in self._instruments:
                instrument.exit_pass_ctx()
        except BaseException:
            self._instruments = []
            raise


_DIAGNOSTIC_HOOK: Final = "run_diagnostic"
_WITH: Final = "write `with PassContext(...):`, which leaves contexts in the right order"
_ENTERED: ContextVar[tuple[PassContext, ...]] = ContextVar("entered pass contexts", default=())
_DEFAULT: ContextVar[PassContext | None] = ContextVar("default pass context", default=None)


def _answer(instrument: PassInstrument, mod: IRModule, info: PassInfo) -> bool:
    with _noting("should_run", instrument, info):
        answer = instrument.should_run(mod, info)
        if answer is None:
            raise UsageError("should_run returned None, expected True or False", help="return one of them")
    return answer


@contextmanager
def _noting(hook: str, instrument: PassInstrument, info: PassInfo) -> Iterator[None]:
    """Say of an exception which hook of which instrument it comes from."""
    try:
        yield
    except Exception as error:
        error.add_note(f"in {hook} of {instrument.name}, for pass {info.name}")
        raise
