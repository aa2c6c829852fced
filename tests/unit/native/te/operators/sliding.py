"""Random windows that slide over spatial dimensions, for tests of convolutions and pools."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st
from tests.unit.native.te.operators.checked_call import Array

from intarsia.ir import AttrValue

FLOATS = st.sampled_from(["float32", "float64", "float16"])


def seeded(shape: tuple[int, ...], dtype: str = "float32", seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


@dataclass(frozen=True)
class Slide:
    """What slides along one dimension.

    Attributes:
        extent: Extent of the dimension.
        taps: Number of taps of the window.
        stride: Distance from a window to the next.
        dilation: Distance from a tap to the next.
        pads: Padding before and behind the data.
    """

    extent: int
    taps: int
    stride: int
    dilation: int
    pads: tuple[int, int]

    @property
    def reach(self) -> int:
        return (self.taps - 1) * self.dilation + 1

    def count(self, ceil_mode: bool = False) -> int:
        room = self.extent + sum(self.pads) - self.reach
        if not ceil_mode:
            return room // self.stride + 1
        found = -(-room // self.stride) + 1
        return found - 1 if (found - 1) * self.stride >= self.extent + self.pads[0] else found


@st.composite
def slides(draw: st.DrawFn, pads: bool = True) -> list[Slide]:
    found = []
    for _ in range(draw(st.integers(1, 3))):
        taps, dilation = draw(st.integers(1, 3)), draw(st.integers(1, 3))
        most = taps - 1 if pads else 0
        slide = Slide(
            draw(st.integers(1, 7)),
            taps,
            draw(st.integers(1, 4)),
            dilation,
            (draw(st.integers(0, most)), draw(st.integers(0, most))),
        )
        assume(slide.extent + sum(slide.pads) >= slide.reach)
        found.append(slide)
    return found


def attributes(found: list[Slide]) -> dict[str, AttrValue]:
    return {
        "strides": tuple(slide.stride for slide in found),
        "dilations": tuple(slide.dilation for slide in found),
        "pads": (*(slide.pads[0] for slide in found), *(slide.pads[1] for slide in found)),
    }
