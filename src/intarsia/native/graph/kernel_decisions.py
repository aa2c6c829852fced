"""Decisions on single fusion groups, which replace the planner's rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any, Final, Self


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(sorted({int(number) for number in text.split("+")}))


def _truth(text: str) -> bool:
    return text == "true"


_READ: Final[Mapping[str, Callable[[str], Any]]] = MappingProxyType(
    {
        "lanes": int,
        "threads": int,
        "borders": _numbers,
        "form": str,
        "packing": str,
        "in_place": _truth,
        "merge": _truth,
    }
)


@dataclass(frozen=True, slots=True)
class KernelDecision:
    """What is decided about a fusion group; the defaults leave all to the rules.

    Attributes:
        lanes: Number of channels of a block; 0 for the plain layout; None for the rule.
        threads: Number of threads of the kernel; None for those of the region.
        borders: Positions of steps within the group whose results are stored, so that the kernel ends there.
        form: Form of a grouped convolution, a value of `GroupForm`; "" for the rule, which also decides where
            a convolution lacks the form.
        packing: Mode of reading the right matrices of products, a value of `MatrixPacking`; "" for the rule,
            which also decides where a product lacks the mode.
        in_place: Whether a Concat, Slice or channel shuffle may do without a kernel.
        merge: Whether a group without a convolution, product or reduction is computed where its only reader
            reads it.
    """

    lanes: int | None = None
    threads: int | None = None
    borders: tuple[int, ...] = ()
    form: str = ""
    packing: str = ""
    in_place: bool = True
    merge: bool = False

    def __str__(self) -> str:
        """Settings that are not left to the rules: "lanes=0:threads=1"."""
        return ":".join(
            f"{item.name}={_setting_text(getattr(self, item.name))}"
            for item in fields(self)
            if getattr(self, item.name) != item.default
        )

    def with_settings(self, settings: Mapping[str, str]) -> Self:
        """Return the decision with some settings replaced by the values of texts."""
        return replace(self, **{name: _READ[name](text) for name, text in settings.items()})


BY_RULE: Final = KernelDecision()
"""The decision that leaves a group to the rules."""


@dataclass(frozen=True)
class KernelDecisions:
    """Decisions by the key of a fusion group (`group_key`); the target option `decisions` holds the text.

    Attributes:
        by_key: Decisions that are not left to the rules.
    """

    by_key: Mapping[str, KernelDecision] = field(default_factory=dict)

    def __post_init__(self) -> None:
        kept = {key: item for key, item in sorted(self.by_key.items()) if item != BY_RULE}
        object.__setattr__(self, "by_key", MappingProxyType(kept))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse the result of `str`: the target option `decisions`, which was validated before, or ""."""
        by_key: dict[str, KernelDecision] = {}
        for entry in filter(None, text.split(",")):
            key, *settings = entry.split(":")
            by_key[key] = BY_RULE.with_settings(dict(_pair(setting) for setting in settings))
        return cls(by_key)

    def __str__(self) -> str:
        return ",".join(f"{key}:{item}" for key, item in self.by_key.items())

    def __hash__(self) -> int:
        return hash(str(self))

    @property
    def change_groups(self) -> bool:
        """Whether some group is to be split, or merged with its reader."""
        return any(item.borders or item.merge for item in self.by_key.values())

    def of(self, key: str) -> KernelDecision:
        """Return the decision on a group."""
        return self.by_key.get(key, BY_RULE)

    def updated(self, settings: Mapping[str, Mapping[str, str]]) -> Self:
        """Return the table with some settings replaced.

        Args:
            settings: Texts of values by name of the setting, by key of the group.
        """
        changed = {key: self.of(key).with_settings(texts) for key, texts in settings.items()}
        return type(self)({**self.by_key, **changed})


NO_DECISIONS: Final = KernelDecisions()
"""The table that leaves all groups to the rules."""


def _pair(setting: str) -> tuple[str, str]:
    name, _, text = setting.partition("=")
    return name, text


def _setting_text(value: int | str | tuple[int, ...] | None) -> str:
    if isinstance(value, tuple):
        return "+".join(map(str, value))
    return str(value).lower()
