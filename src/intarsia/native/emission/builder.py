"""The text of one LLVM function while it grows: fresh names, values that are there already, blocks."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from intarsia.native.emission.types import Value, held_type, shuffle_mask

Lines = list["str | Lines"]
"""Lines, and lists of lines that are still open when what follows them is written."""


@dataclass(slots=True)
class ModuleText:
    """What the functions of one module share.

    Attributes:
        declarations: Declarations of functions that are called, by name.
        functions: Finished functions, in order.
        symbols: Functions of the process that are called (`expf`), a subset of the declared ones.
    """

    declarations: dict[str, str] = field(default_factory=dict)
    functions: list[str] = field(default_factory=list)
    symbols: set[str] = field(default_factory=set)

    def text(self) -> str:
        """The module."""
        return "\n".join((*self.declarations.values(), *self.functions)) + "\n"


@dataclass(slots=True)
class Builder:
    """Appends instructions; an instruction without effect that is there already is not written again.

    Attributes:
        module: The module of the function.
        lines: What has been written.
        block: Label of the current block.
        contract: " contract" if products and sums may be fused, else "".
    """

    module: ModuleText
    contract: str = ""
    lines: Lines = field(default_factory=list)
    block: str = "entry"
    _known: dict[str, str] = field(default_factory=dict)
    _added: list[list[str]] = field(default_factory=list)
    _noted: dict[Hashable, Any] = field(default_factory=dict)
    _notes: list[list[Hashable]] = field(default_factory=list)
    _count: int = 0

    def fresh(self, stem: str = "v") -> str:
        """A new name."""
        self._count += 1
        return f"%{stem}{self._count}"

    def pure(self, text: str) -> str:
        """The value of an instruction that has no effect and reads no memory."""
        found = self._known.get(text)
        if found is None:
            self._count += 1
            found = f"%v{self._count}"
            self.lines.append(f"  {found} = {text}")
            self._known[text] = found
            if self._added:
                self._added[-1].append(text)
        return found

    def read(self, text: str, version: str) -> str:
        """The value of an instruction that reads memory, which has been written to `version` times."""
        key = f"{version}:{text}"
        found = self._known.get(key)
        if found is None:
            found = self.value_of(text)
            self._known[key] = found
            if self._added:
                self._added[-1].append(key)
        return found

    def value_of(self, text: str) -> str:
        """The value of an instruction with effects."""
        self._count += 1
        found = f"%v{self._count}"
        self.lines.append(f"  {found} = {text}")
        return found

    def do(self, text: str) -> None:
        """An instruction without a value."""
        self.lines.append(f"  {text}")

    def once(self, text: str) -> None:
        """An instruction without a value that need not be repeated."""
        if text not in self._known:
            self._known[text] = ""
            self.do(text)
            if self._added:
                self._added[-1].append(text)

    def noted(self, key: Hashable) -> Any:
        """What `note` was told here, or around here; None if nothing."""
        return self._noted.get(key)

    def note(self, key: Hashable, value: object) -> None:
        """Remember what instructions that are there already compute, as long as they are known."""
        self._noted[key] = value
        if self._notes:
            self._notes[-1].append(key)

    def hole(self) -> Lines:
        """A place for lines that are written later."""
        lines: Lines = []
        self.lines.append(lines)
        return lines

    def label(self, stem: str) -> str:
        """A new label, without the percent sign."""
        self._count += 1
        return f"{stem}{self._count}"

    def start(self, label: str) -> None:
        """Begin a block."""
        self.lines.append(f"{label}:")
        self.block = label

    def jump(self, label: str) -> None:
        """End the block."""
        self.lines.append(f"  br label %{label}")

    def branch(self, cond: str, then: str, otherwise: str) -> None:
        """End the block by a condition."""
        self.lines.append(f"  br i1 {cond}, label %{then}, label %{otherwise}")

    @contextmanager
    def conditional(self) -> Iterator[None]:
        """Code that does not always run: what is computed in it is not known after it."""
        self._added.append([])
        self._notes.append([])
        yield
        for key in self._added.pop():
            del self._known[key]
        for note in self._notes.pop():
            del self._noted[note]

    @contextmanager
    def writing_into(self, lines: Lines) -> Iterator[None]:
        """Write into a hole instead; what is computed there is not known elsewhere."""
        current, self.lines = self.lines, lines
        with self.conditional():
            yield
        self.lines = current

    def splat(self, value: Value, lanes: int) -> str:
        """The text of a value in so many lanes; a vector stays as it is."""
        if value.lanes == lanes:
            return value.text
        scalar = held_type(value.dtype)
        return self.splat_text(value.text, scalar, lanes)

    def splat_text(self, text: str, element: str, lanes: int) -> str:
        """A scalar of an LLVM type in all lanes."""
        if not text.startswith("%"):
            return f"splat ({element} {text})"
        vector = f"<{lanes} x {element}>"
        first = self.pure(f"insertelement {vector} poison, {element} {text}, i64 0")
        mask = shuffle_mask((0,) * lanes)
        return self.pure(f"shufflevector {vector} {first}, {vector} poison, {mask}")

    def lane(self, value: Value, lane: int) -> Value:
        """One lane of a value."""
        if not value.lanes:
            return value
        text = f"extractelement {held_type(value.dtype, value.lanes)} {value.text}, i64 {lane}"
        return Value(self.pure(text), value.dtype, 0)

    def joined(self, lanes: list[str], element: str) -> str:
        """Scalars of an LLVM type as one vector."""
        vector = f"<{len(lanes)} x {element}>"
        text = "poison"
        for number, lane in enumerate(lanes):
            text = self.pure(f"insertelement {vector} {text}, {element} {lane}, i64 {number}")
        return text

    def call(self, result: str, name: str, args: str) -> str:
        """The value of a call of a function without effects; `args` are written with their types."""
        self.declare(result, name, args)
        return self.pure(f"call {result} @{name}({args})")

    def declare(self, result: str, name: str, args: str) -> None:
        """Declare a function that is called with such arguments."""
        if name not in self.module.declarations:
            types = ", ".join(_argument_type(arg) for arg in _split(args))
            self.module.declarations[name] = f"declare {result} @{name}({types})"

    def text(self) -> str:
        """All lines, holes filled."""
        return "\n".join(_flat(self.lines))


def _flat(lines: Lines) -> Iterator[str]:
    for line in lines:
        if isinstance(line, str):
            yield line
        else:
            yield from _flat(line)


def _split(args: str) -> list[str]:
    """Arguments apart: commas inside brackets do not count."""
    parts, depth, start = [], 0, 0
    for place, char in enumerate(args):
        depth += (char in "<(") - (char in ">)")
        if char == "," and depth == 0:
            parts.append(args[start:place].strip())
            start = place + 1
    return [*parts, args[start:].strip()]


def _argument_type(arg: str) -> str:
    return arg[: arg.index(">") + 1] if arg.startswith("<") else arg.split(" ", 1)[0]
