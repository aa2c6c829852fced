"""Loading object code with LLVM's own linker, for relocations that ours does not know."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from intarsia.native.object_code.elf_file import read_object_file
from intarsia.support.errors import ArtifactError, CompileError

_NUMBERS = itertools.count()  # LLVM never takes the name of a library twice


@dataclass(frozen=True, eq=False)
class CodeOfLlvm:
    """Code that LLVM has linked."""

    addresses: Mapping[str, int]
    keeps: tuple[Any, ...] = field(repr=False)

    def unload(self) -> None:
        """Give the memory back; nothing of the code may run any more, or be called again."""
        for owned in self.keeps:
            owned.close()


def load_with_llvm(data: bytes, address_of: Callable[[str], int], refusal: ArtifactError) -> CodeOfLlvm:
    """Load object code for this machine that was read and checked before.

    Args:
        data: The relocatable ELF file.
        address_of: Returns the address of a function that it may call; ArtifactError for all others.
        refusal: Why our own linker does not load it; raised if there is no LLVM either.

    Raises:
        ArtifactError: There is no LLVM here, a symbol is not known, or LLVM refuses it too.
    """
    from intarsia.native.machine.compiler_library import compiler_library

    try:
        library = compiler_library()
    except CompileError as error:
        raise refusal from error
    file = read_object_file(data)
    outside = {symbol.name for symbol in file.symbols if not symbol.is_defined and symbol.name}
    own = tuple(symbol.name for symbol in file.symbols if symbol.is_global and symbol.is_defined)
    machine = library.Target.from_default_triple().create_target_machine(jit=True)
    linker = library.create_lljit_compiler(machine)
    builder = library.JITLibraryBuilder().add_object_img(data)
    for name in sorted(outside - {"_GLOBAL_OFFSET_TABLE_"}):
        builder.import_symbol(name, address_of(name))
    for name in own:
        builder.export_symbol(name)
    try:
        tracker = builder.link(linker, f"intarsia{next(_NUMBERS)}")
    except RuntimeError as error:
        linker.close()
        raise ArtifactError(f"LLVM cannot load this object code either: {error}") from refusal
    return CodeOfLlvm({name: tracker[name] for name in own}, (tracker, linker))
