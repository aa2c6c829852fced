"""Generate relocatable object code from LLVM IR text.

Measurements show that the emitter's IR needs no optimisation before code generation: its vectors are explicit
and its accumulators are phis. O2 and O3 make some kernels faster and others slower by half, so they are
options to try; llvmlite loses about 70 KB of memory for each module to which they are applied.

LLVM aborts the process when it cannot generate code. It therefore only gets parsed and verified IR, without
the constructs that verification does not cover: inline assembly and intrinsics of other machines.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from intarsia.native.machine.compiler_library import compiler_library
from intarsia.native.machine.isa import Isa
from intarsia.support.errors import CompileError, UsageError

_INTRINSICS: Final = {"x86_64": "x86", "aarch64": "aarch64"}
_MACHINE_INTRINSIC: Final = re.compile(
    r"@llvm\.(x86|aarch64|arm|amdgcn|nvvm|ppc|riscv|s390|wasm|hexagon|mips|bpf|loongarch|spv|ve|xcore)\."
)
_ASSEMBLY: Final = re.compile(r"\bmodule asm\b|\basm (sideeffect|alignstack|inteldialect|unwind|\")")
_SCALABLE: Final = re.compile(r"<\s*vscale\b")
_LINES_AROUND: Final = 2
"""Lines of the IR that a message shows before and after the faulty one."""

_MOST_COMPLAINTS: Final = 8
_ERROR_PLACE: Final = re.compile(r"<string>:(\d+):\d+: error: (.*)")
_IR_NAME: Final = re.compile(r"[%@][\w.$-]+")


class IrPasses(StrEnum):
    """Optimisation pipeline that runs on the IR before code generation.

    LIGHT promotes arrays on the stack to registers (instcombine, SROA, instcombine, simplifycfg; about 3 ms).
    """

    NONE = "none"
    LIGHT = "light"
    O2 = "O2"
    O3 = "O3"


@dataclass(frozen=True)
class CodegenOptions:
    """Options of code generation.

    Attributes:
        ir_passes: Optimisation pipeline for the IR.
        level: LLVM's code generation level, 0 to 3; 1 gives the same speed as 2 and 3, and 0 slow code.
        prefetch: Whether loops prefetch the weights of the loops after them; the emitter of IR reads this.
    """

    ir_passes: IrPasses = IrPasses.NONE
    level: int = 1
    prefetch: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "ir_passes", IrPasses(self.ir_passes))
        if self.level not in range(4):
            raise UsageError(f"code generation level {self.level}: it is a number from 0 to 3")

    def __str__(self) -> str:
        """E.g. "passes=none level=1"."""
        return f"passes={self.ir_passes.value} level={self.level}{'' if self.prefetch else ' prefetch=no'}"


DEFAULT_OPTIONS: Final = CodegenOptions()


def generate_object_code(text: str, isa: Isa, options: CodegenOptions = DEFAULT_OPTIONS) -> bytes:
    """Generate the object code (ELF, position independent) of a module of LLVM IR.

    Args:
        text: The module, without target triple and data layout, or with those of `isa`.
        isa: Instruction set that the code may use.
        options: Options of code generation.

    Raises:
        CompileError: The text does not parse or verify (the message shows the lines around the fault), or
            contains what cannot be compiled for `isa`; or llvmlite is missing.
    """
    library = compiler_library()
    machine = _target_machine(library, isa, options)
    _refuse_what_aborts(text, isa)
    module = _parse(library, text)
    try:
        _set_target(module, machine, isa)
        _optimise(library, module, machine, options.ir_passes)
        return bytes(machine.emit_object(module))
    except RuntimeError as error:
        raise CompileError(f"LLVM cannot generate code: {error}") from error
    finally:
        module.close()


@functools.lru_cache(maxsize=4)
def _target_machine(library: Any, isa: Isa, options: CodegenOptions) -> Any:
    """Return LLVM's machine, which is kept: what a kernel needs of it takes 0.9 of 2.6 ms of a small one."""
    if not isa.is_of_host:
        library.initialize_all_targets()
        library.initialize_all_asmprinters()
    try:
        target = library.Target.from_triple(isa.triple)
    except RuntimeError as error:
        raise CompileError(f"this LLVM generates no code for {isa.architecture}: {error}") from error
    return target.create_target_machine(
        cpu=isa.cpu, features=isa.feature_string, opt=options.level, reloc="pic", codemodel="small"
    )


def _refuse_what_aborts(text: str, isa: Isa) -> None:
    native_prefix = _INTRINSICS[isa.architecture]
    foreign = next((match for match in _MACHINE_INTRINSIC.finditer(text) if match[1] != native_prefix), None)
    for match, construct in (
        (foreign, f"an intrinsic of another machine than {isa.architecture}"),
        (_ASSEMBLY.search(text) if "asm" in text else None, "inline assembly"),
        (_SCALABLE.search(text) if "vscale" in text else None, "vectors of unknown length"),
    ):
        if match is not None:
            line = text.count("\n", 0, match.start()) + 1
            raise CompileError(_describe_fault(text, line, f"{construct} is not compiled"))


def _parse(library: Any, text: str) -> Any:
    if "\0" in text:
        raise CompileError("LLVM IR with a null character in it")
    try:
        module = library.parse_assembly(text, library.create_context())
    except RuntimeError as error:
        raise CompileError(_describe_fault(text, None, str(error))) from error
    try:
        module.verify()
    except RuntimeError as error:
        module.close()
        raise CompileError(_describe_fault(text, None, str(error))) from error
    return module


def _set_target(module: Any, machine: Any, isa: Isa) -> None:
    """Set triple and data layout, and refuse a text with those of another machine."""
    layout = str(machine.target_data)
    for present, expected in ((module.triple, isa.triple), (module.data_layout, layout)):
        if present not in {"", "unknown-unknown-unknown", expected}:
            raise CompileError(f"LLVM IR for {present!r} cannot be compiled for {expected!r}")
    module.triple, module.data_layout = isa.triple, layout


def _optimise(library: Any, module: Any, machine: Any, passes: IrPasses) -> None:
    if passes is IrPasses.NONE:
        return
    options = library.create_pipeline_tuning_options(speed_level=3 if passes is IrPasses.O3 else 2)
    options.loop_vectorization = options.slp_vectorization = True
    builder = library.create_pass_builder(machine, options)
    if passes is IrPasses.LIGHT:
        pipeline = library.create_new_module_pass_manager()
        pipeline.add_instruction_combine_pass()
        pipeline.add_sroa_pass()
        pipeline.add_instruction_combine_pass()
        pipeline.add_simplify_cfg_pass()
    else:
        pipeline = builder.getModulePassManager()
    pipeline.run(module, builder)  # only once: LLVM aborts when a pipeline runs again


def _describe_fault(text: str, line: int | None, complaint: str) -> str:
    """Describe a fault in a few lines: the complaint, and the numbered lines of the text around it.

    Args:
        text: The IR.
        line: Number of the faulty line, from 1; None to look for it in the complaint.
        complaint: Error text, from LLVM or from this module.
    """
    lines = text.splitlines()
    complaints = [part.strip() for part in complaint.splitlines() if part.strip()]
    placed = next((match for part in complaints if (match := _ERROR_PLACE.match(part))), None)
    if placed:
        line, complaints = int(placed[1]), [placed[2]]
    elif line is None:
        line = _quoted_line(lines, complaints)
    head = "faulty LLVM IR: " + "; ".join(complaints[:_MOST_COMPLAINTS])
    if line is None or not lines:
        return head
    first, last = max(1, line - _LINES_AROUND), min(len(lines), line + _LINES_AROUND)
    shown = [
        f"  {'->' if number == line else '  '} {number:5}  {lines[number - 1][:200]}"
        for number in range(first, last + 1)
    ]
    return "\n".join((head, *shown))


def _quoted_line(lines: list[str], complaints: list[str]) -> int | None:
    """Number of the first line that the complaint repeats, else of the first that contains a name in it."""
    stripped = {content.strip(): number for number, content in reversed(list(enumerate(lines, 1)))}
    for part in complaints:
        if part in stripped:
            return stripped[part]
    # The verifier prints an instruction whole where it can; otherwise only the names in it help to find the
    # line.
    names = [name for part in complaints for name in _IR_NAME.findall(part)]
    for name in names:
        for number, content in enumerate(lines, 1):
            if name in _IR_NAME.findall(content):
                return number
    return None
