"""Usual sizes by name and axis of a dimension."""

from __future__ import annotations

from intarsia.ir.parser import parse_module
from intarsia.measure.sizes import default_sizes
from intarsia.measure.sizes.default_sizes import BATCH, IMAGE, LENGTH


def test_usual_sizes() -> None:
    main = parse_module(
        "def @main(%x: Tensor[(n, 3, rows, w), float32], %ids: Tensor[(batch, tokens), int64], "
        "%mask: Tensor[(tokens, batch_size), int64], %flag: Tensor[(), bool]) { Relu(%x) }"
    )["main"]
    assert default_sizes(main) == {
        "n": BATCH,
        "rows": IMAGE,
        "w": IMAGE,
        "batch": BATCH,
        "tokens": LENGTH,
        "batch_size": BATCH,
    }


def test_static_programs_have_none() -> None:
    main = parse_module("def @main(%x: Tensor[(2, 3), float32]) { Relu(%x) }")["main"]
    assert default_sizes(main) == {}
