"""The essential sentence of an error of ONNX Runtime."""

from __future__ import annotations

from typing import Final

from intarsia.toolchain.engine_message import replaced, shortened

_POSITION: Final = (
    r"\S+\.(?:cc|cpp|h|hpp):\d+ "  # a source file, the signature of the function, the condition that failed
    r"(?:[\w:<>&*~ ]*::\w+\([^()]*\)(?:::<lambda\([^()]*\)>)?(?: const)?(?: \[with [^\]]*\])? )?"
    r"(?:.*? was false\. )?"
)
_RULES: Final = (
    (r"\[ONNXRuntimeError\] : \d+ : [A-Z_]+ : ", ""),
    (r"Error in execution: |Exception during (?:initialization|loading): |Fatal error: ", ""),
    (r"This is an invalid model\. (?:Error: |In Node, .* , Error )?", ""),
    (_POSITION, ""),
    (r"Non-zero status code returned while running (\w+) node\. Name:'' Status Message: ", r"\1: "),
    (r"Non-zero status code returned while running (\w+) node\. Name:('[^']+') Status Message: ", r"\1 \2: "),
    (r" (?:with name|in node) (?:''|\(\))", ""),
)


def onnxruntime_message(error: BaseException) -> str:
    """Return what an exception of onnxruntime says, in one line without its codes and source positions."""
    return shortened(replaced(" ".join(str(error).split()), _RULES), error)
