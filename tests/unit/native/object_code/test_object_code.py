"""Loading object code: what is linked runs, what is damaged is refused and never crashes."""

from __future__ import annotations

import ctypes
import math
import random
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.native_ir import ADD, EVERY_REFERENCE, kernel, object_code

from intarsia.native.machine.compiler_library import compiler_library
from intarsia.native.machine.isa import Isa, host_architecture
from intarsia.native.object_code.codegen import generate_object_code
from intarsia.native.object_code.elf_file import read_object_file
from intarsia.native.object_code.llvm_loader import LlvmLinkedCode
from intarsia.native.object_code.object_code import LinkedCode, load_object_code
from intarsia.support.errors import ArtifactError

RETURNS = ctypes.CFUNCTYPE(ctypes.c_int64)


def other_isa() -> Isa:
    if host_architecture() == "x86_64":
        return Isa("aarch64", "generic", ("neon",))
    return Isa("x86_64", "x86-64", ())


def test_all_kinds_of_references() -> None:
    refer = kernel("refer")
    out = np.zeros(3)
    for entry in (1.0, 2.0, 3.0):
        refer(out)
        np.testing.assert_array_equal(out, [entry * 24, math.exp(entry), 5.0])


def test_each_loading_has_its_own_data() -> None:
    first, second = kernel("refer"), kernel("refer")
    out = np.zeros(3)
    first(out)
    first(out)
    second(out)
    assert out[0] == 24


def test_addresses_of_all_global_symbols() -> None:
    code = load_object_code(object_code("refer"))
    assert set(code.addresses) == {"scale", "calls", "start", "refer"}
    assert ctypes.c_double.from_address(code.addresses["scale"]).value == 8


def test_given_symbols_come_before_those_of_libraries() -> None:
    answer = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(lambda _: 42.0)
    address = ctypes.cast(answer, ctypes.c_void_p).value
    assert address is not None
    refer = kernel("refer")
    code = load_object_code(object_code("refer"), {"exp": address})
    out = np.zeros(3)
    type(refer).of_code(code, "refer", refer.parameters)(out)
    assert out[1] == 42


def test_unknown_function_is_named() -> None:
    text = (
        "declare void @nobody_has_this()\ndefine void @f() {\n  call void @nobody_has_this()\n  ret void\n}"
    )
    with pytest.raises(ArtifactError, match="it calls 'nobody_has_this'"):
        load_object_code(generate_object_code(text, Isa.host()))


def test_weak_function_that_nobody_has_is_null() -> None:
    text = """
    declare extern_weak void @nobody_has_this()
    define i64 @f() {
      %address = ptrtoint ptr @nobody_has_this to i64
      ret i64 %address
    }"""
    code = load_object_code(generate_object_code(text, Isa.host()))
    assert RETURNS(code.addresses["f"])() == 0


def test_memory_is_never_written_and_executed() -> None:
    code = load_object_code(object_code("refer"))
    assert isinstance(code, LinkedCode)
    start, end = code.memory.address, code.memory.address + code.memory.size
    found = []
    for line in Path("/proc/self/maps").read_text().splitlines():
        first, last, rights = re.match(r"(\w+)-(\w+) (\S+)", line).groups()  # type: ignore[union-attr]  # it does
        if int(first, 16) < end and int(last, 16) > start:
            found.append(rights)
    assert sorted(right[:3] for right in found) == ["r--", "r-x", "rw-"]


def test_unloading_gives_the_memory_back() -> None:
    before = Path("/proc/self/maps").read_text().count("\n")
    codes = [load_object_code(object_code("add")) for _ in range(50)]
    for code in codes:
        code.unload()
        code.unload()
    assert Path("/proc/self/maps").read_text().count("\n") <= before + 10


def test_code_goes_with_the_last_reference() -> None:
    before = len(Path("/proc/self/maps").read_text().splitlines())
    for _ in range(50):
        load_object_code(object_code("refer"))
    assert len(Path("/proc/self/maps").read_text().splitlines()) <= before + 10


def test_loads_where_there_is_no_llvm(tmp_path: Path) -> None:
    (tmp_path / "refer.o").write_bytes(object_code("refer"))
    script = f"""
import sys
sys.modules["llvmlite"] = None
import pathlib, numpy
from intarsia.native.object_code.object_code import load_object_code
import ctypes
code = load_object_code(pathlib.Path({str(tmp_path / "refer.o")!r}).read_bytes())
out = numpy.zeros(3)
args = (ctypes.c_void_p * 1)(out.ctypes.data)
ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(code.addresses["refer"])(ctypes.addressof(args), 0)
assert out[0] == 24, out
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def large_model_code() -> bytes:
    """Position independent code that does not know how far away its data are: relocations unknown to us."""
    library = compiler_library()
    machine = library.Target.from_default_triple().create_target_machine(codemodel="large", reloc="pic")
    module = library.parse_assembly(EVERY_REFERENCE, library.create_context())
    return bytes(machine.emit_object(module))


@pytest.mark.skipif(host_architecture() != "x86_64", reason="the model exists on x86-64 only")
def test_unknown_relocations_are_left_to_llvm() -> None:
    code = load_object_code(large_model_code())
    assert isinstance(code, LlvmLinkedCode)
    refer = kernel("refer")
    out = np.zeros(3)
    type(refer).of_code(code, "refer", refer.parameters)(out)
    np.testing.assert_array_equal(out, [24, math.e, 5])
    code.unload()


@pytest.mark.skipif(host_architecture() != "x86_64", reason="the model exists on x86-64 only")
def test_unknown_relocations_without_llvm_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "large.o").write_bytes(large_model_code())
    script = f"""
import sys
sys.modules["llvmlite"] = None
import pathlib
from intarsia.native.object_code.object_code import load_object_code
from intarsia.support.errors import ArtifactError
try:
    load_object_code(pathlib.Path({str(tmp_path / "large.o")!r}).read_bytes())
except ArtifactError as error:
    assert "unknown relocation" in str(error), error
else:
    raise SystemExit("no error")
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_code_for_another_architecture_is_refused() -> None:
    with pytest.raises(ArtifactError, match=f"and not for {host_architecture()}"):
        load_object_code(generate_object_code(ADD, other_isa()))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("@x = thread_local global i64 1", "thread-local"),
        ("@x = common global i64 0", "common"),
        (
            "@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] "
            "[{ i32, ptr, ptr } { i32 1, ptr @f, ptr null }]\ndefine void @f() {\n  ret void\n}",
            "initialisers",
        ),
        (
            "@x = ifunc void (), ptr @choose\ndefine ptr @choose() {\n  ret ptr null\n}",
            "chosen by code that is not run",
        ),
        ("@x = global i64 1, align 8192", "aligned to 8192"),
        ("@x = global [80000000 x i8] zeroinitializer", "larger than the file"),
    ],
)
def test_what_cannot_be_loaded_is_named(text: str, complaint: str) -> None:
    with pytest.raises(ArtifactError, match=complaint):
        load_object_code(generate_object_code(text, Isa.host()))


@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"!<arch>\n", b"\0" * 1000, b"MZ" + b"\0" * 200])
def test_other_files_are_refused(data: bytes) -> None:
    with pytest.raises(ArtifactError, match="this object code cannot be loaded"):
        load_object_code(data)


def test_executables_are_refused() -> None:
    with pytest.raises(ArtifactError, match="not a relocatable file"):
        load_object_code(Path(sys.executable).resolve().read_bytes())


def test_truncated_files_never_load() -> None:
    data = object_code("refer")
    for size in range(len(data)):
        with pytest.raises(ArtifactError):
            load_object_code(data[:size])


def loads_or_refuses(data: bytes) -> bool:
    try:
        code = load_object_code(data)
    except ArtifactError:
        return False
    code.unload()
    return True


@pytest.mark.slow
def test_flipped_bits_never_crash_the_loader(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(data: bytes, symbols: object, refusal: ArtifactError) -> None:
        raise refusal

    monkeypatch.setattr("intarsia.native.object_code.llvm_loader.load_with_llvm", refuse)
    data, choose = object_code("refer"), random.Random(5)
    outcomes = set()
    for _ in range(4000):
        damaged = bytearray(data)
        for _ in range(choose.choice((1, 1, 1, 4, 40))):
            damaged[choose.randrange(len(damaged))] ^= 1 << choose.randrange(8)
        outcomes.add(loads_or_refuses(bytes(damaged)))
    assert outcomes == {True, False}  # bits of the instructions themselves are for digests to guard


@pytest.mark.slow
def test_every_byte_of_the_tables_may_be_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(data: bytes, symbols: object, refusal: ArtifactError) -> None:
        raise refusal

    monkeypatch.setattr("intarsia.native.object_code.llvm_loader.load_with_llvm", refuse)
    data = object_code("refer")
    code = next(section.content for section in read_object_file(data).sections if section.is_code)
    after_code = data.index(code) + len(code)
    for position in (*range(64), *range(after_code, len(data))):
        for value in (0, 0x7F, 0xFF):
            loads_or_refuses(data[:position] + bytes([value]) + data[position + 1 :])
