"""Builder of the text of one LLVM function: fresh names, value numbering, blocks."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from intarsia.native.emission.types import Value, held_type, shuffle_mask

Lines = list["str | Lines"]
"""Lines, and nested lists of lines that may grow after the lines behind them were written."""


@dataclass(slots=True)
class ModuleText:
    """The text of one module, which its functions share.

    Attributes:
        declarations: Declarations of called functions, by name.
        functions: Finished functions, in order.
        symbols: Called functions of the process (`expf`), a subset of the declared ones.
        metadata: Lines of metadata that instructions name, without repetition.
    """

    declarations: dict[str, str] = field(default_factory=dict)
    functions: list[str] = field(default_factory=list)
    symbols: set[str] = field(default_factory=set)
    metadata: dict[str, None] = field(default_factory=dict)

    def text(self) -> str:
        """Return the text of the module."""
        return "\n".join((*self.declarations.values(), *self.functions, *self.metadata)) + "\n"


@dataclass(slots=True)
class Builder:
    """Appends instructions, and reuses equal instructions without effects (value numbering).

    Attributes:
        module: The module of the function.
        lines: Lines written so far.
        block: Label of the current block.
        contract: " contract" if products and sums may be fused, else "".
    """

    module: ModuleText
    contract: str = ""
    lines: Lines = field(default_factory=list)
    block: str = "entry"
    _values: dict[str, str] = field(default_factory=dict)
    _added: list[list[str]] = field(default_factory=list)
    _noted: dict[Hashable, Any] = field(default_factory=dict)
    _notes: list[list[Hashable]] = field(default_factory=list)
    _count: int = 0

    def fresh(self, stem: str = "v") -> str:
        """Return a new name."""
        self._count += 1
        return f"%{stem}{self._count}"

    def pure(self, text: str) -> str:
        """Return the value of an instruction that has no effect and reads no memory."""
        name = self._values.get(text)
        if name is None:
            self._count += 1
            name = f"%v{self._count}"
            self.lines.append(f"  {name} = {text}")
            self._values[text] = name
            if self._added:
                self._added[-1].append(text)
        return name

    def read(self, text: str, version: str) -> str:
        """Return the value of an instruction that reads memory which was written `version` times."""
        key = f"{version}:{text}"
        name = self._values.get(key)
        if name is None:
            name = self.value_of(text)
            self._values[key] = name
            if self._added:
                self._added[-1].append(key)
        return name

    def value_of(self, text: str) -> str:
        """Emit an instruction with effects, and return its value."""
        self._count += 1
        found = f"%v{self._count}"
        self.lines.append(f"  {found} = {text}")
        return found

    def do(self, text: str) -> None:
        """Emit an instruction without a value."""
        self.lines.append(f"  {text}")

    def once(self, text: str) -> None:
        """Emit an instruction without a value, unless it was emitted here before."""
        if text not in self._values:
            self._values[text] = ""
            self.do(text)
            if self._added:
                self._added[-1].append(text)

    def noted(self, key: Hashable) -> Any:
        """Return the value that `note` recorded here or in an enclosing block; None if there is none."""
        return self._noted.get(key)

    def note(self, key: Hashable, value: object) -> None:
        """Record the result of emitted instructions, valid in this block and those it dominates."""
        self._noted[key] = value
        if self._notes:
            self._notes[-1].append(key)

    def hole(self) -> Lines:
        """Insert a list for lines that are written later, and return it."""
        lines: Lines = []
        self.lines.append(lines)
        return lines

    def label(self, stem: str) -> str:
        """Return a new label, without the percent sign."""
        self._count += 1
        return f"{stem}{self._count}"

    def start(self, label: str) -> None:
        """Begin a block."""
        self.lines.append(f"{label}:")
        self.block = label

    def jump(self, label: str) -> None:
        """End the block with a jump."""
        self.lines.append(f"  br label %{label}")

    def branch(self, cond: str, then: str, otherwise: str, note: str = "") -> None:
        """End the block with a conditional branch, which may have metadata."""
        self.lines.append(f"  br i1 {cond}, label %{then}, label %{otherwise}{note}")

    @contextmanager
    def conditional(self) -> Iterator[None]:
        """Mark code that does not always run: its values do not dominate the code after it."""
        self._added.append([])
        self._notes.append([])
        yield
        for key in self._added.pop():
            del self._values[key]
        for note in self._notes.pop():
            del self._noted[note]

    @contextmanager
    def writing_into(self, lines: Lines) -> Iterator[None]:
        """Write into a hole; its values are not reused elsewhere."""
        current, self.lines = self.lines, lines
        with self.conditional():
            yield
        self.lines = current

    def splat(self, value: Value, lanes: int) -> str:
        """Return the text of a value broadcast to lanes; a vector stays unchanged."""
        if value.lanes == lanes:
            return value.text
        scalar = held_type(value.dtype)
        return self.splat_text(value.text, scalar, lanes)

    def splat_text(self, text: str, element: str, lanes: int) -> str:
        """Broadcast a scalar of an LLVM type to all lanes."""
        if not text.startswith("%"):
            return f"splat ({element} {text})"
        vector = f"<{lanes} x {element}>"
        first = self.pure(f"insertelement {vector} poison, {element} {text}, i64 0")
        mask = shuffle_mask((0,) * lanes)
        return self.pure(f"shufflevector {vector} {first}, {vector} poison, {mask}")

    def lane(self, value: Value, lane: int) -> Value:
        """Return one lane of a value."""
        if not value.lanes:
            return value
        text = f"extractelement {held_type(value.dtype, value.lanes)} {value.text}, i64 {lane}"
        return Value(self.pure(text), value.dtype, 0)

    def joined(self, lanes: list[str], element: str) -> str:
        """Build a vector of scalars of an LLVM type."""
        vector = f"<{len(lanes)} x {element}>"
        text = "poison"
        for number, lane in enumerate(lanes):
            text = self.pure(f"insertelement {vector} {text}, {element} {lane}, i64 {number}")
        return text

    def call(self, result: str, name: str, args: str) -> str:
        """Return the value of a call without effects; `args` contain types."""
        self.declare(result, name, args)
        return self.pure(f"call {result} @{name}({args})")

    def declare(self, result: str, name: str, args: str) -> None:
        """Declare a function by the arguments of a call."""
        if name not in self.module.declarations:
            types = ", ".join(_argument_type(arg) for arg in _split(args))
            self.module.declarations[name] = f"declare {result} @{name}({types})"

    def text(self) -> str:
        """Return all lines, with filled holes."""
        return "\n".join(_flat(self.lines))


def _flat(lines: Lines) -> Iterator[str]:
    for line in lines:
        if isinstance(line, str):
            yield line
        else:
            yield from _flat(line)


def _split(args: str) -> list[str]:
    """Split arguments at commas outside of brackets."""
    parts, depth, start = [], 0, 0
    for position, char in enumerate(args):
        depth += (char in "<(") - (char in ">)")
        if char == "," and depth == 0:
            parts.append(args[start:position].strip())
            start = position + 1
    return [*parts, args[start:].strip()]


def _argument_type(arg: str) -> str:
    if arg.startswith("ptr addrspace"):
        return arg.rsplit(" ", 1)[0]
    return arg[: arg.index(">") + 1] if arg.startswith("<") else arg.split(" ", 1)[0]
