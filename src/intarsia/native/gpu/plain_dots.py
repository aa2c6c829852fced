"""Sums of the products of bytes for what has no instruction of NVIDIA's GPUs for them."""

from __future__ import annotations

import re
from typing import Final

from intarsia.native.emission.dot_products import DOT_OF_GPU

_NAME: Final = "intarsia_dot_of_bytes"
_DECLARED: Final = re.compile(rf"^declare .*@{re.escape(DOT_OF_GPU)}\(.*\n", re.MULTILINE)


def with_plain_dots(text: str) -> str:
    """Return a module of LLVM IR with a function of its own in place of the intrinsic."""
    if f"@{DOT_OF_GPU}(" not in text:
        return text
    text = _DECLARED.sub("", text).replace(f"@{DOT_OF_GPU}(", f"@{_NAME}(")
    return f"{text}\n{_function()}\n"


def _function() -> str:
    lines, total = [], "%sum"
    for number in range(4):
        moved = f"  %u{number} = lshr i32 %unsigned, {8 * number}\n  %l{number} = and i32 %u{number}, 255"
        signed = f"  %s{number} = shl i32 %signed, {24 - 8 * number}\n  %r{number} = ashr i32 %s{number}, 24"
        added = f"  %p{number} = mul i32 %l{number}, %r{number}\n  %t{number} = add i32 {total}, %p{number}"
        lines += [moved, signed, added]
        total = f"%t{number}"
    head = f"define internal i32 @{_NAME}(i32 %unsigned, i32 %signed, i32 %sum) {{"
    return "\n".join((head, *lines, f"  ret i32 {total}", "}"))
