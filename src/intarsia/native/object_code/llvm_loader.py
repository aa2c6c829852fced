"""Load object code with LLVM's linker, for relocations that Intarsia's linker does not support."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from intarsia.native.object_code.elf_file import read_object_file
from intarsia.support.errors import ArtifactError, CompileError

_NUMBERS = itertools.count()  # LLVM refuses a library name that was used before


@dataclass(frozen=True, eq=False)
class LlvmLinkedCode:
    """Code that LLVM linked."""

    addresses: Mapping[str, int]
    keeps: tuple[Any, ...] = field(repr=False)

    def unload(self) -> None:
        """Free the memory; no thread may run or call the code any more."""
        for resource in self.keeps:
            resource.close()


def load_with_llvm(data: bytes, address_of: Callable[[str], int], refusal: ArtifactError) -> LlvmLinkedCode:
    """Load object code for this machine that was read and checked before.

    Args:
        data: The relocatable ELF file.
        address_of: Returns the address of a function that the code may call; raises ArtifactError for others.
        refusal: Error of Intarsia's linker; raised if LLVM is missing.

    Raises:
        ArtifactError: LLVM is missing, a symbol is unknown, or LLVM refuses the code too.
    """
    from intarsia.native.machine.compiler_library import compiler_library

    try:
        library = compiler_library()
    except CompileError as error:
        raise refusal from error
    file = read_object_file(data)
    outside = {symbol.name for symbol in file.symbols if not symbol.is_defined and symbol.name}
    exported = tuple(symbol.name for symbol in file.symbols if symbol.is_global and symbol.is_defined)
    machine = library.Target.from_default_triple().create_target_machine(jit=True)
    linker = library.create_lljit_compiler(machine)
    builder = library.JITLibraryBuilder().add_object_img(data)
    for name in sorted(outside - {"_GLOBAL_OFFSET_TABLE_"}):
        builder.import_symbol(name, address_of(name))
    for name in exported:
        builder.export_symbol(name)
    try:
        tracker = builder.link(linker, f"intarsia{next(_NUMBERS)}")
    except RuntimeError as error:
        linker.close()
        raise ArtifactError(f"LLVM cannot load this object code either: {error}") from refusal
    return LlvmLinkedCode({name: tracker[name] for name in exported}, (tracker, linker))
