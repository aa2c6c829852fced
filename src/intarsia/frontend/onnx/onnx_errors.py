"""What the C++ parts of the onnx package raise."""

from __future__ import annotations


def onnx_errors() -> tuple[type[Exception], ...]:
    """What to catch around onnx's checker, inference, inliner and version converter; they share no base."""
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
    """What onnx's assertions say, without the place in its C++ source, on one line."""
    return " ".join(str(error).rsplit("failed: ", 1)[-1].split())
