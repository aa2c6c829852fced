"""Compilation targets: a device kind, a toolchain and its options."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Final, TypeVar, overload

from intarsia.support.errors import UsageError
from intarsia.target.device_type import DeviceType
from intarsia.target.option import TARGET_OPTIONS, OptionValue, check_known, option_text

_OPTION: Final = re.compile(r"-([^=]+)=(.+)", re.DOTALL)
_TOOLCHAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]*")
_EXAMPLE: Final = 'such as "cpu -toolchain=openvino -threads=2"'

V = TypeVar("V", str, int, bool, float)


@dataclass(frozen=True, slots=True, repr=False)
class Target:
    """A device kind, the toolchain that compiles for it, and options; compared by value.

    `kind` also accepts a whole target's text: `Target("cpu -toolchain=openvino -threads=2")` is
    `Target("cpu", "openvino", (("threads", 2),))`. A target without toolchain is *plain*: the device itself.

    Attributes:
        kind: Name of the device kind.
        toolchain: Name of the toolchain, or None.
        options: Names and values, sorted by name, each of the type registered in `TARGET_OPTIONS`.

    Raises:
        UsageError: Unknown device kind or option, malformed text or value, something given twice.
    """

    kind: str
    toolchain: str | None = None
    options: tuple[tuple[str, OptionValue], ...] = ()

    def __post_init__(self) -> None:
        try:
            kind, written = _read(self.kind)
            _check_kind(kind)
            toolchains = [value for name, value in written if name == "toolchain"]
            toolchains += [] if self.toolchain is None else [self.toolchain]
            for name in (*(name for name, _ in written if name != "toolchain"), *dict(self.options)):
                check_known(name, toolchains[0] if toolchains else None)
            options = [
                (name, TARGET_OPTIONS[name].parse(value)) for name, value in written if name != "toolchain"
            ]
            options += [(name, TARGET_OPTIONS[name].check(value)) for name, value in self.options]
            _refuse_repetition([*(name for name, _ in options), *("toolchain" for _ in toolchains)])
            _check_toolchains(toolchains)
            _check_understood([name for name, _ in options], toolchains[0] if toolchains else None)
        except UsageError as error:
            error.add_note(f'in target "{self.kind}"')
            raise
        object.__setattr__(self, "kind", kind)
        object.__setattr__(self, "toolchain", toolchains[0] if toolchains else None)
        object.__setattr__(self, "options", tuple(sorted(options, key=itemgetter(0))))

    @classmethod
    def parse(cls, text: str) -> Target:
        """The target that `text` describes; `parse(str(target)) == target`.

        Raises:
            UsageError: The text or an option is wrong; see the class.
        """
        return cls(text)

    @classmethod
    def of_text(cls, text: str) -> Target:
        """Return the target of a toolchain's name ("openvino"), or what `parse` reads.

        Raises:
            UsageError: The text or an option is wrong; see the class.
        """
        is_name = _TOOLCHAIN.fullmatch(text) is not None and not DeviceType.has_kind(text)
        return cls.for_toolchain(text) if is_name else cls.parse(text)

    @classmethod
    def for_toolchain(cls, toolchain: str, /, kind: str = "cpu", **options: OptionValue) -> Target:
        """The target of a toolchain with options by name.

        Raises:
            UsageError: The text or an option is wrong; see the class.
        """
        return cls(kind, toolchain, tuple(options.items()))

    @property
    def device_type(self) -> DeviceType:
        """The device type that `kind` names."""
        return DeviceType.of_kind(self.kind)

    @property
    def is_external_codegen(self) -> bool:
        """Whether a toolchain does the compiling."""
        return self.toolchain is not None

    @property
    def toolchain_text(self) -> str:
        """The toolchain for tables, with the kind of device if it is not the CPU: "native on cuda"."""
        where = "" if self.kind == DeviceType.CPU.kind else f" on {self.kind}"
        return f"{self.toolchain}{where}"

    def is_external_codegen_for(self, other: Target) -> bool:
        """Whether this target refines `other`: the same device kind, a toolchain here and none there."""
        return self.kind == other.kind and self.is_external_codegen and not other.is_external_codegen

    @overload
    def option(self, name: str) -> OptionValue | None: ...
    @overload
    def option(self, name: str, default: V) -> V: ...
    def option(self, name: str, default: OptionValue | None = None) -> OptionValue | None:
        """The value of an option, or the default where the target does not set it.

        Raises:
            UsageError: No option has that name, or the default is not one of its values.
        """
        registered = TARGET_OPTIONS[name]
        fallback = None if default is None else registered.check(default)
        return dict(self.options).get(name, fallback)

    def with_options(self, **changes: OptionValue | None) -> Target:
        """This target with some options set, or unset where the value is None.

        Raises:
            UsageError: Unknown option or malformed value.
        """
        merged = {**dict(self.options), **changes}
        for name in changes:
            TARGET_OPTIONS[name]  # an unknown name is an error even where it is to be unset
        options = tuple((name, value) for name, value in merged.items() if value is not None)
        return replace(self, options=options)

    def __str__(self) -> str:
        """The canonical text: kind, toolchain, options in alphabetical order."""
        toolchain = [] if self.toolchain is None else [f"-toolchain={self.toolchain}"]
        options = [f"-{name}={option_text(value)}" for name, value in self.options]
        return " ".join([self.kind, *toolchain, *options])

    def __repr__(self) -> str:
        return f"Target({str(self)!r})"


def _read(text: str) -> tuple[str, list[tuple[str, str]]]:
    """Split a target's text into the kind and the names and values as written."""
    words = text.split()
    if not words:
        raise UsageError(f"a target is empty; expected a device kind and options, {_EXAMPLE}")
    written = []
    for word in words[1:]:
        match = _OPTION.fullmatch(word)
        if match is None:
            raise UsageError(f"target option {word!r} is malformed; expected -name=value")
        written.append((match[1], match[2]))
    return words[0], written


def _check_kind(kind: str) -> None:
    """Refuse an unknown kind, with a hint if it may be a toolchain (a higher layer registers these)."""
    try:
        DeviceType.of_kind(kind)
    except UsageError as error:
        if not _TOOLCHAIN.fullmatch(kind) or error.help.startswith("did you mean"):
            raise
        hint = f'{error.help}; if {kind} is a toolchain, write "cpu -toolchain={kind}"'
        raise UsageError(error.problem, help=hint) from None


def _refuse_repetition(names: list[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"target option -{name} is given {names.count(name)} times; expected once")


def _check_understood(names: list[str], toolchain: str | None) -> None:
    """Refuse options of other toolchains."""
    for name in names:
        option = TARGET_OPTIONS[name]
        if not option.is_understood_by(toolchain):
            subject = "a target without toolchain" if toolchain is None else f"toolchain {toolchain}"
            raise UsageError(
                f"{subject} does not understand -{name}; expected {' or '.join(option.toolchains)}",
                help=option.help,
            )


def _check_toolchains(names: list[str]) -> None:
    for name in names:
        if not _TOOLCHAIN.fullmatch(name):
            raise UsageError(
                f"{name!r} is not a toolchain's name; expected letters, digits, '_', '-' and '.'"
            )
