import math

from intarsia.cli.reports.report import error_document, plain_data
from intarsia.support.errors import InvalidModelError


def test_numbers_that_json_cannot_write_become_null() -> None:
    value = {"a": (1.5, math.inf, [math.nan]), "b": {"c": -math.inf, 3: "x"}, "d": None, "e": True}
    assert plain_data(value) == {
        "a": [1.5, None, [None]],
        "b": {"c": None, "3": "x"},
        "d": None,
        "e": True,
    }


def test_errors() -> None:
    error = InvalidModelError("it is cut off", help="copy it again")
    error.add_note("in m.onnx")
    assert error_document(error) == {
        "error": "it is cut off",
        "notes": ["in m.onnx"],
        "help": "copy it again",
        "exit_code": 3,
    }
