"""Serial loops in LLVM: counters, and pointers that advance with them (strength reduction)."""

from __future__ import annotations

from dataclasses import dataclass, field

from intarsia.native.emission.affine_index import AffineIndex, Symbol
from intarsia.native.emission.builder import Builder
from intarsia.native.emission.loop_frame import LoopFrame, Terms


@dataclass(slots=True)
class Symbols:
    """Run-time numbers of a function, and pointers that depend on them."""

    builder: Builder
    table: list[Symbol] = field(default_factory=list)
    _opaque: dict[str, int] = field(default_factory=dict)

    def counter(self, text: str, low: int, high: int, frame: LoopFrame) -> AffineIndex:
        """Add the counter of a loop, or a parameter of the function whose frame is given."""
        self.table.append(Symbol(text, low, high, frame))
        return AffineIndex(0, 0, ((len(self.table) - 1, 1),))

    def opaque(self, text: str, span: tuple[int, int] | None = None) -> AffineIndex:
        """Add any other int64, with its range if known; equal texts share one symbol."""
        if not text.startswith("%"):
            return AffineIndex(int(text))
        number = self._opaque.get(text)
        if number is None:
            number = self._opaque[text] = len(self.table)
            low, high = span if span is not None else (None, None)
            self.table.append(Symbol(text, low, high, None))
        return AffineIndex(0, 0, ((number, 1),))

    def sum(self, number: AffineIndex) -> str:
        """Emit a sum that all lanes share."""
        builder, text = self.builder, ""
        for symbol, coefficient in number.terms:
            part = self.table[symbol].text
            if coefficient != 1:
                part = builder.pure(f"mul i64 {part}, {coefficient}")
            text = builder.pure(f"add i64 {text}, {part}") if text else part
        if not text:
            return str(number.const)
        return builder.pure(f"add i64 {text}, {number.const}") if number.const else text

    def pointer(self, base: str, terms: Terms, size: int) -> str:
        """Return the address `base + size * terms`, which the loops of the symbols advance."""
        frame = self.table[terms[-1][0]].frame
        known = None if frame is None else frame.pointers.get((base, terms))
        if known is not None:
            return known
        plain = tuple(term for term in terms if self.table[term[0]].frame is not None)
        text = self._advancing(base, plain, size)
        for number, coefficient in terms:
            symbol = self.table[number]
            if symbol.frame is None:
                offset = self.builder.pure(f"mul i64 {symbol.text}, {coefficient * size}")
                text = self.builder.pure(f"getelementptr i8, ptr {text}, i64 {offset}")
        return text

    def _advancing(self, base: str, terms: Terms, size: int) -> str:
        if not terms:
            return base
        number, coefficient = terms[-1]
        symbol = self.table[number]
        frame = symbol.frame
        assert frame is not None  # the caller has sorted the others out
        known = frame.pointers.get((base, terms))
        if known is not None:
            return known
        outer = self._advancing(base, terms[:-1], size)
        step = coefficient * size
        name = self.builder.fresh("p")
        if frame.start is None or frame.start != "0":
            outer = self._offset_before(frame, outer, symbol.text, step, name)
        if frame.start is not None:
            following = f"{name}.next"
            frame.pending.append((name, "ptr", outer, following))
            frame.steps.append(f"  {following} = getelementptr i8, ptr {name}, i64 {step}")
            outer = name
        frame.pointers[(base, terms)] = outer
        return outer

    @staticmethod
    def _offset_before(frame: LoopFrame, outer: str, counter: str, step: int, name: str) -> str:
        count = counter if frame.start is None else frame.start
        frame.before.append(f"  {name}.offset = mul i64 {count}, {step}")
        frame.before.append(f"  {name}.first = getelementptr i8, ptr {outer}, i64 {name}.offset")
        return f"{name}.first"


@dataclass(slots=True)
class OpenLoop:
    """A loop between its head and its end."""

    frame: LoopFrame
    counter: str
    label: str


def open_loop(builder: Builder, start: str = "0") -> OpenLoop:
    """Begin a loop that runs at least once."""
    frame = LoopFrame(builder.hole(), [], builder.block, start)
    label = builder.label("loop")
    builder.jump(label)
    builder.start(label)
    builder.lines.append(frame.phis)
    return OpenLoop(frame, builder.fresh("i"), label)


def close_loop(builder: Builder, loop: OpenLoop, end: str, note: str = "") -> None:
    """End a loop whose counter runs up to `end`; its last branch may have metadata."""
    frame, counter = loop.frame, loop.counter
    assert frame.start is not None
    frame.pending.append((counter, "i64", frame.start, f"{counter}.next"))
    builder.lines.extend(frame.steps)
    builder.do(f"{counter}.next = add i64 {counter}, 1")
    done = builder.label("done")
    builder.do(f"{counter}.done = icmp eq i64 {counter}.next, {end}")
    for name, kind, first, following in frame.pending:
        frame.phis.append(
            f"  {name} = phi {kind} [ {first}, %{frame.entered_from} ], [ {following}, %{builder.block} ]"
        )
    builder.branch(f"{counter}.done", done, loop.label, note)
    builder.start(done)
