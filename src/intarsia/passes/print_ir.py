"""Showing the program in the middle of a sequence of passes."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from intarsia.ir import IRModule
from intarsia.ir.printer import print_module
from intarsia.transform import ModulePass, PassContext, register_pass


@register_pass
@dataclass(frozen=True)
class PrintIR(ModulePass):
    """Writes the program's text to standard output, and returns the module as it is.

    The text goes to what `sys.stdout` is when the pass runs, so that `contextlib.redirect_stdout` takes it.
    To show the program around every pass, use the instruments `PrintBefore` and `PrintAfter`.

    Before:
        def @main(%x: Tensor[(2,), float32]) { Relu(%x) }
    After:
        def @main(%x: Tensor[(2,), float32]) { Relu(%x) }

    Attributes:
        header: A line written before the program, as a comment; none if empty.
        show_types: Whether types of expressions are written.
        show_devices: Whether virtual devices are.
        show_spans: Whether spans are.
    """

    header: str = ""
    show_types: bool = True
    show_devices: bool = True
    show_spans: bool = True

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        """The module itself."""
        text = print_module(
            mod, show_types=self.show_types, show_devices=self.show_devices, show_spans=self.show_spans
        ).text
        head = "".join(f"# {line}\n" for line in self.header.splitlines())
        sys.stdout.write(f"{head}{text}")
        return mod
