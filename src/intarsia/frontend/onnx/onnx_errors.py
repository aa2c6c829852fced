"""Errors of the C++ parts of the onnx package."""

from __future__ import annotations


def onnx_errors() -> tuple[type[Exception], ...]:
    """Return the error types of onnx's checker, inference, inliner and version converter: no common base."""
    from onnx import checker, shape_inference, version_converter

    return (
        checker.ValidationError,
        shape_inference.InferenceError,
        version_converter.ConvertError,
        RuntimeError,
        ValueError,
        IndexError,
    )


def error_essence(error: Exception) -> str:
    """Return the message of an assertion in onnx on one line, without the location in its C++ source."""
    return " ".join(str(error).rsplit("failed: ", 1)[-1].split())
