import pytest

from intarsia.ir import ANY, Attrs, Dim, DType, FuncType, SequenceType, TensorType, TupleType, Type
from intarsia.op.control_flow import body_result_types, control_flow_types
from intarsia.support.errors import InvalidModelError


def f32(*shape: int) -> TensorType:
    return TensorType(shape, DType.FLOAT32)


BOOL = TensorType((), DType.BOOL)
INT = TensorType((), DType.INT64)
ROW = f32(4)


def body(params: tuple[Type, ...], *results: Type) -> FuncType:
    return FuncType(params, TupleType(results))


def test_results_of_a_body() -> None:
    assert body_result_types(body((), BOOL, ROW)) == (BOOL, ROW)
    assert body_result_types(FuncType((), ROW)) == (ROW,)


def test_loop_stacks_rows_and_keeps_states() -> None:
    types = (INT, BOOL, f32(2), body((INT, BOOL, f32(2)), BOOL, f32(2), ROW))
    assert control_flow_types("Loop", types, Attrs()) == (f32(2), TensorType((ANY, 4), ROW.dtype))


def test_loop_state_that_changes_its_shape_is_widened() -> None:
    types = (INT, BOOL, f32(2), body((INT, BOOL, f32(2)), BOOL, f32(3)))
    assert control_flow_types("Loop", types, Attrs()) == (TensorType((ANY,), ROW.dtype),)


def test_scan_stacks_along_its_axes() -> None:
    types = (f32(2), f32(5, 7), body((f32(2), f32(5)), f32(2), f32(3, 6)))
    attrs = Attrs({"num_scan_inputs": 1, "scan_input_axes": (1,), "scan_output_axes": (-1,)})
    assert control_flow_types("Scan", types, attrs) == (f32(2), f32(3, 6, 7))


@pytest.mark.parametrize("lengths", [(5, ANY), (ANY, 5)])
def test_scan_takes_its_length_from_any_argument_that_says_it(lengths: tuple[Dim, Dim]) -> None:
    scanned = [TensorType((length, 2), ROW.dtype) for length in lengths]
    types: tuple[Type, ...] = (*scanned, body((f32(2), f32(2)), f32(3)))
    assert control_flow_types("Scan", types, Attrs({"num_scan_inputs": 2})) == (f32(5, 3),)


def test_sequence_map_returns_sequences() -> None:
    types = (SequenceType(ROW), body((ROW,), f32(2)))
    assert control_flow_types("SequenceMap", types, Attrs()) == (SequenceType(f32(2)),)


@pytest.mark.parametrize(
    ("name", "types", "attrs", "message"),
    [
        ("Loop", (), {}, "operator 'Loop' needs a body: a function as its last argument"),
        ("Loop", (INT, BOOL), {}, "operator 'Loop' needs a body: a function as its last argument"),
        (
            "Loop",
            (INT, body((INT,), BOOL)),
            {},
            "operator 'Loop' has 1 arguments, expected 2 or more and a body",
        ),
        (
            "Loop",
            (INT, BOOL, ROW, body((INT, BOOL), BOOL, ROW)),
            {},
            "operator 'Loop' has 3 arguments, but its body takes 2",
        ),
        (
            "Loop",
            (INT, BOOL, ROW, body((INT, BOOL, ROW), BOOL)),
            {},
            "operator 'Loop' needs a body that returns 2 values or more, found 1",
        ),
        (
            "Loop",
            (INT, BOOL, ROW, body((INT, BOOL, ROW), BOOL, INT)),
            {},
            "a loop state starts as Tensor[(4,), float32], but its body returns Tensor[(), int64]",
        ),
        (
            "Scan",
            (ROW, body((ROW,), ROW)),
            {},
            "operator 'Scan' has num_scan_inputs=None, expected a number from 1 to 1",
        ),
        (
            "Scan",
            (ROW, body((ROW,), ROW)),
            {"num_scan_inputs": 2},
            "operator 'Scan' has num_scan_inputs=2, expected a number from 1 to 1",
        ),
        (
            "Scan",
            (ROW, body((ROW,), ROW)),
            {"num_scan_inputs": 1, "scan_input_axes": (0, 1)},
            "operator 'Scan' has scan_input_axes=(0, 1), expected 1 axes",
        ),
        (
            "Scan",
            (ROW, body((ROW,), ROW)),
            {"num_scan_inputs": 1, "scan_output_axes": (2,)},
            "operator 'Scan' names the axis 2 of a tensor of rank 2",
        ),
        (
            "SequenceMap",
            (SequenceType(ROW), body((), ROW)),
            {},
            "operator 'SequenceMap' has 1 arguments, but its body takes 0",
        ),
    ],
)
def test_bodies_that_do_not_fit(
    name: str, types: tuple[Type, ...], attrs: dict[str, int], message: str
) -> None:
    with pytest.raises(InvalidModelError) as caught:
        control_flow_types(name, types, Attrs(attrs))
    assert caught.value.problem == message
