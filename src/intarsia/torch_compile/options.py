"""Options of the backend: `options={...}` and `mode=` of torch.compile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import Any, Final, Self

from intarsia.driver.budget import parse_budget
from intarsia.support.errors import UsageError
from intarsia.target import Target

DEFAULT_TOOLCHAINS: Final = ("native", "onnxruntime", "openvino", "torch")
"""Toolchains in the order in which a graph without a budget is built, until one takes it and is right."""

_MODES: Final = {
    None: None,
    "default": None,
    "reduce-overhead": None,  # an executable has buffers and steps of its own already
    "max-autotune": "60s",
    "max-autotune-no-cudagraphs": "60s",
}
"""Modes of torch.compile, with the budget that each stands for."""


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """Options of torch.compile(model, backend="intarsia", options={...}).

    Attributes:
        budget: Time to tune each graph, as text or in seconds; None to build without measuring.
        toolchains: Names or targets of toolchains to choose from, in order of preference; None for all.
        threads: Number of threads of each program; None for all usable cores.
        database: Database of measurements: a path or URL, True for the user's own, False for none.
        strict: Whether a graph that cannot be compiled is an error; otherwise PyTorch runs it.
        verify: Whether the first results are compared with PyTorch's before a program is used.
    """

    budget: str | float | None = None
    toolchains: tuple[str, ...] | None = None
    threads: int | None = None
    database: str | bool = True
    strict: bool = False
    verify: bool = True

    @classmethod
    def parse(cls, options: Mapping[str, Any] | None, mode: str | None = None) -> Self:
        """Return the options of a call of torch.compile.

        Args:
            options: Argument `options`.
            mode: Argument `mode`; "max-autotune" stands for a budget of 60 s.

        Raises:
            UsageError: There is no such option or mode, or a value is not right.
        """
        given = dict(options or {})
        names = [field.name for field in fields(cls)]
        for name in given:
            if name not in names:
                close = get_close_matches(str(name), names, n=1)
                hint = f'did you mean "{close[0]}"?' if close else f"the options are {', '.join(names)}"
                raise UsageError(f'the backend "intarsia" has no option "{name}"', help=hint)
        if mode not in _MODES:
            modes = ", ".join(str(name) for name in _MODES if name)
            raise UsageError(f'the backend "intarsia" has no mode "{mode}"', help=f"the modes are {modes}")
        given.setdefault("budget", _MODES[mode])
        if given.get("toolchains") is not None:
            given["toolchains"] = _texts(given["toolchains"])
        parsed = cls(**given)
        if parsed.budget is not None and parse_budget(parsed.budget) == 0:
            raise UsageError(
                'the budget of the backend "intarsia" is 0', help="leave it out to build without measuring"
            )
        parsed.targets()
        return parsed

    def targets(self) -> tuple[Target, ...]:
        """Return the targets to choose from, in order of preference.

        Raises:
            UsageError: A target names no toolchain.
        """
        names = DEFAULT_TOOLCHAINS if self.toolchains is None else self.toolchains
        targets = [Target.of_text(name) for name in names]
        for target in targets:
            if target.toolchain is None:
                raise UsageError(
                    f'the target "{target}" names no toolchain', help='write, for example, "native"'
                )
        return tuple(
            target if self.threads is None else target.with_options(threads=self.threads)
            for target in targets
        )


def _texts(toolchains: object) -> tuple[str, ...]:
    if isinstance(toolchains, (str, Target)):
        return (str(toolchains),)
    if not isinstance(toolchains, Sequence) or not toolchains:
        raise UsageError(
            f"toolchains is {toolchains!r}, expected a list of names", help='write ["native", "onnxruntime"]'
        )
    return tuple(str(item) for item in toolchains)
