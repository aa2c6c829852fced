from typing import Any

import numpy as np
import pytest

from intarsia.ir import DimRange
from intarsia.runtime.input_check import InputCheck
from intarsia.runtime.plan import TensorInfo
from intarsia.support.errors import InputError

IMAGE = TensorInfo("data", "float32", (1, 3, 4, 4))
IDS = TensorInfo("ids", "int64", ("batch", 8))
MASK = TensorInfo("mask", "bool", ("batch", -1))


def refusal(infos: list[TensorInfo], *args: object, **named: object) -> str:
    with pytest.raises(InputError) as caught:
        InputCheck(infos).accept(args, named)
    return str(caught.value)


def test_fitting_arrays_pass_as_they_are() -> None:
    data = np.zeros((1, 3, 4, 4), np.float32)
    assert InputCheck([IMAGE]).accept((data,), {})[0] is data
    assert InputCheck([IMAGE]).accept((), {"data": data})[0] is data


def test_scattered_swapped_and_unaligned_arrays_are_copied() -> None:
    wanted = np.arange(48, dtype=np.float32).reshape(1, 3, 4, 4)
    shifted = np.frombuffer(b"\0" + wanted.tobytes(), np.uint8)[1:].view(np.float32).reshape(wanted.shape)
    for given in (np.asfortranarray(wanted), wanted.astype(">f4"), shifted):
        (found,) = InputCheck([IMAGE]).accept((given,), {})
        assert isinstance(found, np.ndarray)
        assert found.flags.c_contiguous
        assert found.flags.aligned
        assert found.dtype is wanted.dtype
        np.testing.assert_array_equal(found, wanted)


def test_dlpack_objects_are_shared() -> None:
    class Foreign:
        def __init__(self, array: np.ndarray[Any, Any]) -> None:
            self.array = array

        def __dlpack__(self, **options: object) -> object:
            return self.array.__dlpack__(**options)  # type: ignore[arg-type]  # passed on as they come

        def __dlpack_device__(self) -> tuple[int, int]:
            return (1, 0)

    data = np.zeros((1, 3, 4, 4), np.float32)
    (found,) = InputCheck([IMAGE]).accept((Foreign(data),), {})
    assert isinstance(found, np.ndarray)
    assert np.shares_memory(found, data)


def test_symbolic_dimensions_may_change_between_calls() -> None:
    check = InputCheck([IDS, MASK])
    for batch in (2, 3, 3, 1):
        check.accept((np.zeros((batch, 8), np.int64), np.zeros((batch, batch), np.bool_)), {})


def test_a_call_that_fits_does_not_let_a_later_wrong_one_pass() -> None:
    check = InputCheck([IDS, MASK])
    check.accept((np.zeros((2, 8), np.int64), np.zeros((2, 5), np.bool_)), {})
    with pytest.raises(InputError):
        check.accept((np.zeros((2, 8), np.int64), np.zeros((3, 5), np.bool_)), {})


def test_unknown_rank_takes_any_shape() -> None:
    check = InputCheck([TensorInfo("x", "float32", None)])
    for shape in ((), (2,), (2, 3)):
        assert check.accept((np.zeros(shape, np.float32),), {})


def test_sequences_and_optionals_pass_unchecked() -> None:
    info = TensorInfo("x", "Sequence[Tensor[?, float32]]", None)
    value = [np.zeros(2)]
    assert InputCheck([info]).accept((value,), {})[0] is value
    assert InputCheck([info]).accept((None,), {})[0] is None


@pytest.mark.parametrize("dtype", ["U3", "S3", object])
def test_texts_become_object_arrays(dtype: str) -> None:
    (found,) = InputCheck([TensorInfo("x", "string", (2,))]).accept((np.array(["a", "b"]).astype(dtype),), {})
    assert isinstance(found, np.ndarray)
    assert found.dtype == object


def test_shape_message() -> None:
    message = refusal([IMAGE], np.zeros((1, 3, 5, 4), np.float32))
    assert message == 'input "data" has shape (1, 3, 5, 4), expected (1, 3, 4, 4)'


def test_rank_message_with_symbols() -> None:
    message = refusal([MASK], np.zeros(7, np.bool_))
    assert message == 'input "mask" has shape (7,), expected (batch, ?)'


def test_symbol_message() -> None:
    message = refusal([IDS, MASK], np.zeros((2, 8), np.int64), np.zeros((3, 1), np.bool_))
    assert message == 'dimension "batch" is 2 in input "ids" and 3 in input "mask", expected one size'


def test_element_type_message() -> None:
    message = refusal([IMAGE], np.zeros((1, 3, 4, 4)))
    assert message == (
        'input "data" has element type float64, expected float32\nhelp: convert it: value.astype("float32")'
    )


def test_unknown_element_type_message() -> None:
    assert refusal([IMAGE], np.zeros(1, "datetime64[s]")).startswith(
        'input "data" has element type datetime64[s], expected float32'
    )


@pytest.mark.parametrize(("value", "kind"), [(1.0, "float"), ([1.0], "list"), ("x", "str")])
def test_plain_python_values_are_refused(value: object, kind: str) -> None:
    assert refusal([IMAGE], value) == (
        f'input "data" is of type {kind}, expected a NumPy array or an object with __dlpack__\n'
        'help: convert it: numpy.asarray(value, dtype="float32")'
    )


def test_a_tensor_that_cannot_be_shared() -> None:
    class OnGpu:
        def __dlpack__(self, **options: object) -> object:
            raise BufferError("it is on a GPU")

        def __dlpack_device__(self) -> tuple[int, int]:
            return (2, 0)

    assert refusal([IMAGE], OnGpu()).startswith(
        'input "data" is of type OnGpu, which cannot be shared with NumPy: '
    )


def test_count_and_name_messages() -> None:
    data = np.zeros((1, 3, 4, 4), np.float32)
    listed = "the inputs are data: float32 (1, 3, 4, 4)"
    assert refusal([IMAGE], data, data) == f"2 inputs were given, expected 1\nhelp: {listed}"
    assert refusal([IMAGE]) == f'input "data" is missing\nhelp: {listed}'
    assert refusal([IMAGE], dat=data) == 'there is no input "dat"\nhelp: did you mean "data"?'
    assert refusal([IMAGE], xyz=data) == f'there is no input "xyz"\nhelp: {listed}'
    assert refusal([IMAGE], data, data=data) == 'input "data" is given twice: by position and by name'
    assert refusal([], data) == "1 inputs were given, expected 0\nhelp: the program has no inputs"


def test_sizes_outside_of_the_declared_range_are_refused() -> None:
    check = InputCheck([IDS, MASK], {"batch": DimRange(1, 4)})
    ids, mask = np.zeros((4, 8), np.int64), np.zeros((4, 3), np.bool_)
    assert check.accept((ids, mask), {})[0] is ids
    with pytest.raises(InputError) as caught:
        check.accept((np.zeros((5, 8), np.int64), np.zeros((5, 3), np.bool_)), {})
    assert str(caught.value) == (
        'dimension "batch" is 5 in input "ids", expected 1 to 4: the program was checked for these sizes\n'
        "help: tune the model for more: intarsia tune --shape batch=1..5"
    )
    assert check.accept((ids, mask), {})[0] is ids, "a refused call changes nothing"


def test_a_mapping_gives_all_inputs_by_name() -> None:
    ids, mask = np.zeros((2, 8), np.int64), np.zeros((2, 2), np.bool_)
    found = InputCheck([IDS, MASK]).accept(({"mask": mask, "ids": ids},), {})
    assert found[0] is ids
    assert found[1] is mask
    data = np.zeros((1, 3, 4, 4), np.float32)
    assert InputCheck([IMAGE]).accept(({"data": data},), {})[0] is data
    assert refusal([IMAGE], {"date": data}).startswith('there is no input "date"')
    assert refusal([IDS, MASK], {"ids": ids}).startswith('input "mask" is missing')
    assert "is of type dict" in refusal([IDS, MASK], {"ids": ids}, mask)
