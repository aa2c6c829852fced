"""Buffers in SSA values: pieces of consecutive elements, with phis where control flow merges."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from intarsia.ir.dtype import DType
from intarsia.native.emission.builder import Builder
from intarsia.native.emission.loop_frame import LoopFrame
from intarsia.native.emission.types import Value, held_type, shuffle_mask, zero


@dataclass(slots=True)
class RegisterPlace:
    """The elements of one buffer.

    Attributes:
        name: Name of the buffer.
        dtype: Element type.
        private_lanes: Number of lanes if each lane of the enclosing vectorised loop has private elements;
            else 0.
        depth: Number of loops around its Allocate.
        row: Extent of its last dimension.
        row_end: Number of elements of a row that are used; padding follows.
        pieces: Width and value of each run of elements, by its first element. With private lanes, the width
            is 1 and the value a vector.
        owner: First element of the piece that contains each element.
    """

    name: str
    dtype: DType
    private_lanes: int = 0
    depth: int = 0
    row: int = 1
    row_end: int = 1
    pieces: dict[int, tuple[int, str]] = field(default_factory=dict)
    owner: dict[int, int] = field(default_factory=dict)

    def piece_type(self, width: int) -> str:
        """Return the LLVM type of a piece; one element is a scalar."""
        return held_type(self.dtype, self.private_lanes or (width if width > 1 else 0))

    def piece_zero(self, width: int) -> str:
        """Return the value of an unwritten piece."""
        return zero(self.dtype, self.private_lanes or (width if width > 1 else 0))

    def ends_in_padding(self, start: int, width: int, count: int) -> bool:
        """Return whether all elements of a vector but the first `count` are padding of its row."""
        column = start % self.row
        return not self.private_lanes and column + count >= self.row_end and column + width <= self.row

    def put(self, start: int, width: int, text: str) -> None:
        """Set a piece that no other piece partially overlaps."""
        self.pieces[start] = (width, text)
        for element in range(start, start + width):
            self.owner[element] = start


@dataclass(slots=True)
class RegisterFile:
    """All buffers in SSA values, at the current point of emission.

    Attributes:
        builder: Builder of the function.
        places: Buffers by name.
        loops: Enclosing loops, outermost first, each with the names of the buffers that it writes and their
            phis: buffer, first element, width, name.
    """

    builder: Builder
    places: dict[str, RegisterPlace] = field(default_factory=dict)
    loops: list[tuple[LoopFrame, frozenset[str], list[tuple[str, int, int, str]]]] = field(
        default_factory=list
    )

    def read(self, register: RegisterPlace, start: int, width: int) -> Value:
        """Return `width` consecutive elements."""
        lanes = register.private_lanes or (width if width > 1 else 0)
        exact = register.pieces.get(start)
        if exact is not None and exact[0] == width:
            return Value(exact[1], register.dtype, lanes)
        if width == 1:
            return Value(self._element(register, start), register.dtype, lanes)
        owner = register.owner.get(start)
        if owner is not None and owner == register.owner.get(start + width - 1):
            return Value(self._part(register, owner, start, width), register.dtype, lanes)
        if self._is_untouched(register, start, width):
            register.put(start, width, register.piece_zero(width))
            return Value(register.pieces[start][1], register.dtype, lanes)
        return self.read_each(register, list(range(start, start + width)))

    def _is_untouched(self, register: RegisterPlace, start: int, width: int) -> bool:
        """Return whether no code has written the elements, in earlier iterations either."""
        if any(register.name in written for _, written, _ in self.loops[register.depth :]):
            return False
        return not register.private_lanes and all(
            e not in register.owner for e in range(start, start + width)
        )

    def read_each(self, register: RegisterPlace, elements: list[int]) -> Value:
        """Return one element for each lane."""
        texts = [self._element(register, element) for element in elements]
        if register.private_lanes:
            values = [Value(text, register.dtype, register.private_lanes) for text in texts]
            texts = [self.builder.lane(value, lane).text for lane, value in enumerate(values)]
        return Value(self.builder.joined(texts, held_type(register.dtype)), register.dtype, len(elements))

    def _element(self, register: RegisterPlace, element: int) -> str:
        owner = register.owner.get(element)
        if owner is None:
            return self._first_seen(register, element)
        width, text = register.pieces[owner]
        if width == 1:
            return text
        return self.builder.pure(
            f"extractelement {held_type(register.dtype, width)} {text}, i64 {element - owner}"
        )

    def _part(self, register: RegisterPlace, owner: int, start: int, width: int) -> str:
        size, text = register.pieces[owner]
        vector = held_type(register.dtype, size)
        mask = shuffle_mask(tuple(range(start - owner, start - owner + width)))
        return self.builder.pure(f"shufflevector {vector} {text}, {vector} poison, {mask}")

    def _first_seen(self, register: RegisterPlace, element: int) -> str:
        """Return an element that no earlier text writes, but perhaps an earlier iteration."""
        text = register.piece_zero(1)
        for frame, written, phis in self.loops[register.depth :]:
            if register.name in written:
                name = self.builder.fresh("r")
                frame.pending.append((name, register.piece_type(1), text, f"{name}.next"))
                phis.append((register.name, element, 1, name))
                text = name
        register.put(element, 1, text)
        return text

    def write(self, register: RegisterPlace, start: int, width: int, text: str) -> None:
        """Set consecutive elements; partially overlapping pieces are split first."""
        exact = register.pieces.get(start)
        if exact is None or exact[0] != width:
            for owner in {register.owner[e] for e in range(start, start + width) if e in register.owner}:
                self._take_apart(register, owner)
            for element in range(start, start + width):
                register.pieces.pop(element, None)
        register.put(start, width, text)

    def _take_apart(self, register: RegisterPlace, owner: int) -> None:
        width, _ = register.pieces[owner]
        texts = [self._element(register, element) for element in range(owner, owner + width)]
        del register.pieces[owner]
        for element, text in enumerate(texts, owner):
            register.put(element, 1, text)

    def enter_loop(self, frame: LoopFrame, written: frozenset[str]) -> None:
        """Enter a loop: buffers that it writes get phis of the value before it and of the last iteration."""
        phis: list[tuple[str, int, int, str]] = []
        for name in sorted(written & self.places.keys()):
            register = self.places[name]
            for start, (width, text) in sorted(register.pieces.items()):
                phi = self.builder.fresh("r")
                frame.pending.append((phi, register.piece_type(width), text, f"{phi}.next"))
                phis.append((name, start, width, phi))
                register.pieces[start] = (width, phi)
        self.loops.append((frame, written, phis))

    def leave_loop(self) -> None:
        """Leave a loop: complete the phis with the values at the end of its body."""
        frame, _, phis = self.loops.pop()
        finals = {
            f"{phi}.next": self.read(self.places[name], start, width).text for name, start, width, phi in phis
        }
        frame.pending[:] = [
            (name, kind, first, finals.get(following, following))
            for name, kind, first, following in frame.pending
        ]

    def snapshot(self) -> dict[str, RegisterPlace]:
        """Return a copy of the current state, for `restore` and `merge`."""
        return {
            name: replace(register, pieces=dict(register.pieces), owner=dict(register.owner))
            for name, register in self.places.items()
        }

    def merge(self, then: Branch, otherwise: Branch, written: frozenset[str]) -> None:
        """Merge two branches in a new block, with phis for all buffers that one of them has written."""
        merged = {}
        for name, left in then.places.items():
            right = otherwise.places.get(name)
            if right is None:
                continue  # allocated inside a branch
            merged[name] = self._merged(left, right, then, otherwise) if name in written else left
        self.places = merged

    def _merged(
        self, left: RegisterPlace, right: RegisterPlace, then: Branch, otherwise: Branch
    ) -> RegisterPlace:
        result = replace(left, pieces={}, owner={})
        spans = {start: width for start, (width, _) in left.pieces.items()}
        spans |= {element: 1 for element in right.owner if element not in left.owner}
        for start, width in sorted(spans.items()):
            first = self._at_end(left, start, width, then)
            second = self._at_end(right, start, width, otherwise)
            if first != second:
                kind = result.piece_type(width)
                first = self.builder.value_of(
                    f"phi {kind} [ {first}, %{then.label} ], [ {second}, %{otherwise.label} ]"
                )
            result.put(start, width, first)
        return result

    def _at_end(self, register: RegisterPlace, start: int, width: int, branch: Branch) -> str:
        with self.builder.writing_into(branch.tail):
            return self.read(register, start, width).text


@dataclass(slots=True)
class Branch:
    """A predecessor of a merge block.

    Attributes:
        places: Registers at its end.
        tail: Hole for lines at its end.
        label: Label of its last block.
    """

    places: dict[str, RegisterPlace]
    tail: list[str | list]  # type: ignore[type-arg]  # Lines, which mypy cannot spell here
    label: str
