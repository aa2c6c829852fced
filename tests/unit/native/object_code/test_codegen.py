"""LLVM IR to object code: options give the same results, faults are errors and never abort."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from tests.each_case import each_case
from tests.native_ir import ADD, TEXTS, kernel

from intarsia.native.machine.isa import Isa
from intarsia.native.object_code.codegen import CodegenOptions, IrPasses, generate_object_code
from intarsia.native.object_code.elf_file import read_object_file
from intarsia.support.errors import CompileError, UsageError

ALL_OPTIONS = [CodegenOptions(passes, level) for passes in IrPasses for level in range(4)]


@each_case("options", ALL_OPTIONS)
def test_every_option_gives_code_that_runs(options: CodegenOptions) -> None:
    a, b, out = np.arange(4, dtype="f4"), np.full(4, 0.5, "f4"), np.zeros(4, "f4")
    kernel("add", options)(a, b, out)
    np.testing.assert_array_equal(out, a + b)


def test_default_does_nothing_to_the_ir() -> None:
    assert CodegenOptions() == CodegenOptions(IrPasses.NONE, 1)
    assert str(CodegenOptions()) == "passes=none level=1"


def test_passes_change_the_code() -> None:
    text = """
    define i64 @f(i64 %x) {
      %place = alloca i64
      store i64 %x, ptr %place
      %y = load i64, ptr %place
      ret i64 %y
    }"""
    sizes = {}
    for passes in IrPasses:
        file = read_object_file(generate_object_code(text, Isa.host(), CodegenOptions(passes)))
        sizes[passes] = len(next(section.content for section in file.sections if section.is_code))
    assert sizes[IrPasses.LIGHT] == sizes[IrPasses.O3] < sizes[IrPasses.NONE]


@pytest.mark.parametrize("level", [-1, 4])
def test_unknown_level_is_refused(level: int) -> None:
    with pytest.raises(UsageError, match="a number from 0 to 3"):
        CodegenOptions(level=level)


def test_many_modules_one_after_another() -> None:
    isa = Isa.host()
    first = generate_object_code(ADD, isa, CodegenOptions(IrPasses.O2))
    for _ in range(20):
        assert generate_object_code(ADD, isa, CodegenOptions(IrPasses.O2)) == first


def test_from_several_threads() -> None:
    isa = Isa.host()
    expected = [generate_object_code(text, isa) for text in TEXTS.values()]
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda text: generate_object_code(text, isa), list(TEXTS.values()) * 5))
    assert found == expected * 5


@pytest.mark.parametrize(
    "isa",
    [
        Isa("x86_64", "x86-64", ()),
        Isa("x86_64", "sapphirerapids", ("avx512f", "avx512vl", "avx2", "fma")),
        Isa("x86_64", "i386", ()),
        Isa("x86_64", "x86-64", (), ("sse", "sse2", "64bit")),
        Isa("aarch64", "neoverse-n1", ("neon",)),
        Isa("aarch64", "generic", (), ("neon",)),
    ],
    ids=str,
)
def test_code_for_other_machines(isa: Isa) -> None:
    assert read_object_file(generate_object_code(ADD, isa)).architecture == isa.architecture


def test_syntax_error_shows_its_line() -> None:
    text = "define void @f() {\n  %a = add i32 1, 2.0\n  ret void\n}\n"
    with pytest.raises(CompileError) as caught:
        generate_object_code(text, Isa.host())
    assert str(caught.value) == (
        "faulty LLVM IR: floating point constant invalid for type\n"
        "         1  define void @f() {\n"
        "  ->     2    %a = add i32 1, 2.0\n"
        "         3    ret void\n"
        "         4  }"
    )


def test_verifier_complaint_shows_its_line() -> None:
    text = "define i32 @f() {\n  %b = add i32 %a, 1\n  %a = add i32 1, 1\n  ret i32 %b\n}\n"
    with pytest.raises(CompileError, match="does not dominate all uses") as caught:
        generate_object_code(text, Isa.host())
    assert "->     3    %a = add i32 1, 1" in str(caught.value)


MODULES = {
    "an intrinsic of another machine": (
        "declare void @llvm.wasm.throw(i32, ptr)\n"
        "define void @f() {\n  call void @llvm.wasm.throw(i32 0, ptr null)\n  ret void\n}"
    ),
    "inline assembly": 'define void @f() {\n  call void asm sideeffect "nonsense", ""()\n  ret void\n}',
    "inline assembly ": 'module asm "nonsense"\n',
    "vectors of unknown length": "define <vscale x 4 x float> @f(<vscale x 4 x float> %x) {\n"
    "  ret <vscale x 4 x float> %x\n}",
    "cannot be compiled for": 'target triple = "armv7-unknown-linux-gnu"\n',
    "null character": "define void @f() {\n  ret void\n}\0",
}


@pytest.mark.parametrize("complaint", MODULES)
def test_what_would_abort_is_refused(complaint: str) -> None:
    with pytest.raises(CompileError, match=complaint.strip()):
        generate_object_code(MODULES[complaint], Isa.host())


def test_import_does_not_load_llvm() -> None:
    compiling = ("machine.isa", "object_code.codegen", "object_code.object_code", "object_code.kernel_cache")
    running = ("driver", "thread_pool", "call_table", "native_function")
    modules = (*compiling, *(f"execution.{name}" for name in running))
    lines = [f"import intarsia.native.{name}" for name in modules]
    lines += ["import sys", "assert not any(name.startswith('llvmlite') for name in sys.modules)"]
    subprocess.run([sys.executable, "-c", "\n".join(lines)], check=True)


def test_without_llvmlite_the_error_says_what_to_install() -> None:
    script = """
import sys
sys.modules["llvmlite"] = None
from intarsia.native.machine.isa import Isa
from intarsia.support.errors import CompileError
try:
    Isa.host()
except CompileError as error:
    assert 'pip install "intarsia[native]"' in str(error), error
else:
    raise SystemExit("no error")
"""
    subprocess.run([sys.executable, "-c", script], check=True)
