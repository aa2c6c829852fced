import pytest
from tests.each_case import each_case

from intarsia.ir import DType
from intarsia.ir.loop_literal import buffer_of, loop_name_text, number_of, number_text
from intarsia.ir.prim_func import Buffer, Literal, MemoryScope


@each_case(
    ("value", "dtype", "text"),
    [
        (3, "int64", "3"),
        (-3, "int32", "-3i32"),
        (255, "uint8", "255u8"),
        (True, "bool", "true"),
        (2, "float32", "2.0f32"),
        (0.1, "float32", "0.1f32"),
        (0.1, "float64", "0.1f64"),
        (1 / 3, "float64", "0.3333333333333333f64"),
        (1 / 3, "float16", "0.3333f16"),
        (1e30, "bfloat16", "1e+30bf16"),
        (-0.0, "float32", "-0.0f32"),
        (float("-inf"), "float32", "-inf_f32"),
        (float("nan"), "bfloat16", "nan_bf16"),
        (5e-324, "float64", "5e-324f64"),
    ],
)
def test_numbers_are_as_short_as_can_be(value: float, dtype: str, text: str) -> None:
    literal = Literal(value, DType(dtype))
    assert number_text(literal) == text
    assert number_of(text) == literal


@pytest.mark.parametrize("text", ["1f32", "1_f32", "1.f32", "1e0f32", "1.0_f32"])
def test_other_ways_to_write_one(text: str) -> None:
    assert number_of(text) == Literal(1.0, DType.FLOAT32)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("0.5", "a number that is not whole needs a type, such as 0.5f32"),
        ("300u8", "uint8 has no such number"),
        ("0.5i32", "int32 has no such number"),
        ("1f7", "unknown element type float7"),
        ("one", "expected a number such as 3, 0.5f32 or 7u8"),
    ],
)
def test_what_is_no_number(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=f"^{problem}$"):
        number_of(text)


@pytest.mark.parametrize(
    "name", ["for", "true", "parallel", "float32", "bool", "inf_f32", "nan", "a b", "7", ""]
)
def test_names_that_mean_something_else_are_quoted(name: str) -> None:
    assert loop_name_text(name) == f'"{name}"'


@pytest.mark.parametrize("name", ["x", "min", "exp", "_1", "forx", "infinity", "float32x", "prim"])
def test_plain_names(name: str) -> None:
    assert loop_name_text(name) == name


@pytest.mark.parametrize("shape", [(), (4,), (4, 8), (0, 1, 2)])
def test_buffers(shape: tuple[int, ...]) -> None:
    buffer = Buffer("x", shape, DType.FLOAT16)
    assert buffer_of("x", str(buffer)) == buffer


@pytest.mark.parametrize(
    ("scope", "text"),
    [
        (MemoryScope.GLOBAL, "Buffer[(4,), float32]"),
        (MemoryScope.THREAD, "Buffer[(4,), float32, thread]"),
        (MemoryScope.REGISTER, "Buffer[(4,), float32, register]"),
    ],
)
def test_scopes_of_buffers(scope: MemoryScope, text: str) -> None:
    buffer = Buffer("x", (4,), DType.FLOAT32, scope)
    assert str(buffer) == text
    assert buffer_of("x", text) == buffer


def test_the_scope_global_can_be_written() -> None:
    assert buffer_of("x", "Buffer[(4,), int8 , global ]") == Buffer("x", (4,), DType.INT8)


def test_an_unknown_scope() -> None:
    with pytest.raises(
        ValueError, match=r"^unknown scope local; the scopes are global, thread, shared, register$"
    ):
        buffer_of("x", "Buffer[(4,), float32, local]")


def test_spaces_in_a_buffer_do_not_matter() -> None:
    assert buffer_of("x", "Buffer [ ( 4 ,8, ) , int8 ]") == Buffer("x", (4, 8), DType.INT8)


@pytest.mark.parametrize(
    "text", ["Buffer[(4 8), int8]", "Buffer[(,), int8]", "Buffer[(n,), int8]", "Buffer[int8]"]
)
def test_what_is_no_buffer(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected Buffer\[\(4, 8\), float32\]"):
        buffer_of("x", text)
