"""Buffers that live in SSA values: pieces of consecutive elements, with phis where control flow meets."""

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
        name: The name of the buffer.
        dtype: Its element type.
        private_lanes: Each lane of the vectorised loop around it has its own elements: so many lanes; else 0.
        depth: How many loops are around its Allocate.
        pieces: Width and value of each run of elements, by its first element. Where each lane has its own
            elements, the width is 1 and the value a vector.
        owner: The first element of the piece in which an element lies.
    """

    name: str
    dtype: DType
    private_lanes: int = 0
    depth: int = 0
    pieces: dict[int, tuple[int, str]] = field(default_factory=dict)
    owner: dict[int, int] = field(default_factory=dict)

    def piece_type(self, width: int) -> str:
        """The LLVM type of a piece; one element is a scalar."""
        return held_type(self.dtype, self.private_lanes or (width if width > 1 else 0))

    def piece_zero(self, width: int) -> str:
        """What a piece holds to which nothing has been written."""
        return zero(self.dtype, self.private_lanes or (width if width > 1 else 0))

    def put(self, start: int, width: int, text: str) -> None:
        """Set a piece that no other piece overlaps in part."""
        self.pieces[start] = (width, text)
        for element in range(start, start + width):
            self.owner[element] = start


@dataclass(slots=True)
class RegisterFile:
    """All buffers in SSA values, as they are at the place that is being written.

    Attributes:
        builder: The function.
        places: The buffers by name.
        loops: The loops around, outermost first, each with the names of the buffers that are written in it
            and the phis made for them: buffer, first element, width, name.
    """

    builder: Builder
    places: dict[str, RegisterPlace] = field(default_factory=dict)
    loops: list[tuple[LoopFrame, frozenset[str], list[tuple[str, int, int, str]]]] = field(
        default_factory=list
    )

    def read(self, place: RegisterPlace, start: int, width: int) -> Value:
        """So many consecutive elements."""
        lanes = place.private_lanes or (width if width > 1 else 0)
        exact = place.pieces.get(start)
        if exact is not None and exact[0] == width:
            return Value(exact[1], place.dtype, lanes)
        if width == 1:
            return Value(self._element(place, start), place.dtype, lanes)
        owner = place.owner.get(start)
        if owner is not None and owner == place.owner.get(start + width - 1):
            return Value(self._part(place, owner, start, width), place.dtype, lanes)
        if self._is_untouched(place, start, width):
            place.put(start, width, place.piece_zero(width))
            return Value(place.pieces[start][1], place.dtype, lanes)
        return self.read_each(place, list(range(start, start + width)))

    def _is_untouched(self, place: RegisterPlace, start: int, width: int) -> bool:
        """Whether nothing has been written to elements, nor by earlier iterations."""
        if any(place.name in written for _, written, _ in self.loops[place.depth :]):
            return False
        return not place.private_lanes and all(e not in place.owner for e in range(start, start + width))

    def read_each(self, place: RegisterPlace, elements: list[int]) -> Value:
        """One element for each lane."""
        texts = [self._element(place, element) for element in elements]
        if place.private_lanes:
            values = [Value(text, place.dtype, place.private_lanes) for text in texts]
            texts = [self.builder.lane(value, lane).text for lane, value in enumerate(values)]
        return Value(self.builder.joined(texts, held_type(place.dtype)), place.dtype, len(elements))

    def _element(self, place: RegisterPlace, element: int) -> str:
        owner = place.owner.get(element)
        if owner is None:
            return self._first_seen(place, element)
        width, text = place.pieces[owner]
        if width == 1:
            return text
        return self.builder.pure(
            f"extractelement {held_type(place.dtype, width)} {text}, i64 {element - owner}"
        )

    def _part(self, place: RegisterPlace, owner: int, start: int, width: int) -> str:
        size, text = place.pieces[owner]
        vector = held_type(place.dtype, size)
        mask = shuffle_mask(tuple(range(start - owner, start - owner + width)))
        return self.builder.pure(f"shufflevector {vector} {text}, {vector} poison, {mask}")

    def _first_seen(self, place: RegisterPlace, element: int) -> str:
        """An element that nothing has been written to in the text so far: an earlier iteration may have."""
        text = place.piece_zero(1)
        for frame, written, phis in self.loops[place.depth :]:
            if place.name in written:
                name = self.builder.fresh("r")
                frame.pending.append((name, place.piece_type(1), text, f"{name}.next"))
                phis.append((place.name, element, 1, name))
                text = name
        place.put(element, 1, text)
        return text

    def write(self, place: RegisterPlace, start: int, width: int, text: str) -> None:
        """Set so many consecutive elements; pieces that stick out are taken apart."""
        exact = place.pieces.get(start)
        if exact is None or exact[0] != width:
            for owner in {place.owner[e] for e in range(start, start + width) if e in place.owner}:
                self._take_apart(place, owner)
            for element in range(start, start + width):
                place.pieces.pop(element, None)
        place.put(start, width, text)

    def _take_apart(self, place: RegisterPlace, owner: int) -> None:
        width, _ = place.pieces[owner]
        texts = [self._element(place, element) for element in range(owner, owner + width)]
        del place.pieces[owner]
        for element, text in enumerate(texts, owner):
            place.put(element, 1, text)

    def enter_loop(self, frame: LoopFrame, written: frozenset[str]) -> None:
        """At the head of a loop: what is written in it comes from before or from the last iteration."""
        phis: list[tuple[str, int, int, str]] = []
        for name in sorted(written & self.places.keys()):
            place = self.places[name]
            for start, (width, text) in sorted(place.pieces.items()):
                phi = self.builder.fresh("r")
                frame.pending.append((phi, place.piece_type(width), text, f"{phi}.next"))
                phis.append((name, start, width, phi))
                place.pieces[start] = (width, phi)
        self.loops.append((frame, written, phis))

    def leave_loop(self) -> None:
        """At the end of a loop's body: fill in what the phis get from there."""
        frame, _, phis = self.loops.pop()
        finals = {
            f"{phi}.next": self.read(self.places[name], start, width).text for name, start, width, phi in phis
        }
        frame.pending[:] = [
            (name, kind, first, finals.get(following, following))
            for name, kind, first, following in frame.pending
        ]

    def snapshot(self) -> dict[str, RegisterPlace]:
        """The state here, for `restore` and `merge`."""
        return {
            name: replace(place, pieces=dict(place.pieces), owner=dict(place.owner))
            for name, place in self.places.items()
        }

    def merge(self, then: Branch, otherwise: Branch, written: frozenset[str]) -> None:
        """Where two branches meet, in a new block: phis for all that one of them has written."""
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

    def _at_end(self, place: RegisterPlace, start: int, width: int, branch: Branch) -> str:
        with self.builder.writing_into(branch.tail):
            return self.read(place, start, width).text


@dataclass(slots=True)
class Branch:
    """One way into a merge.

    Attributes:
        places: The registers at its end.
        tail: Where lines at its end are written.
        label: Label of its last block.
    """

    places: dict[str, RegisterPlace]
    tail: list[str | list]  # type: ignore[type-arg]  # Lines, which mypy cannot spell here
    label: str
