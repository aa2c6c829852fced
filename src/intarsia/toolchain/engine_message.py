"""The essential sentence of an engine's error: theirs are long and full of C++ positions."""

from __future__ import annotations

import re
from typing import Final

_LONGEST: Final = 300
_POSITION: Final = (
    r"\S+\.(?:cc|cpp|h|hpp):\d+ "  # a source file, the signature of the function, the condition that failed
    r"(?:[\w:<>&*~ ]*::\w+\([^()]*\)(?:::<lambda\([^()]*\)>)?(?: const)?(?: \[with [^\]]*\])? )?"
    r"(?:.*? was false\. )?"
)
_ONNXRUNTIME: Final = (
    (r"\[ONNXRuntimeError\] : \d+ : [A-Z_]+ : ", ""),
    (r"Error in execution: |Exception during (?:initialization|loading): |Fatal error: ", ""),
    (r"This is an invalid model\. (?:Error: |In Node, .* , Error )?", ""),
    (_POSITION, ""),
    (r"Non-zero status code returned while running (\w+) node\. Name:'' Status Message: ", r"\1: "),
    (r"Non-zero status code returned while running (\w+) node\. Name:('[^']+') Status Message: ", r"\1 \2: "),
    (r" (?:with name|in node) (?:''|\(\))", ""),
)
_OPENVINO_NOISE: Final = re.compile(
    r"Exception from |Check '.*' failed at|While validating (?:ONNX )?node|Summary:|To facilitate |"
    r"FrontEnd API failed|Model wasn't fully converted|-- Conversion is failed for|Encountered unconverted|"
    r"Install OpenVINO Tokenizers"
)
_OPENVINO: Final = (
    (r"^(?:-- )?(?:\[\w+\] )?", ""),
    (r"^(\w+)-\d+ with a message:", r"\1:"),
    (r" expected: [A-Z0-9]+(?:, [A-Z0-9]+)*$", ""),
    (r" ?Check '[^']*' failed at \S+:\d+: ?$", ":"),
)


def onnxruntime_message(error: BaseException) -> str:
    """What an exception of onnxruntime says, in one line without its codes and source positions."""
    return _finished(_replaced(" ".join(str(error).split()), _ONNXRUNTIME), error)


def openvino_message(error: BaseException) -> str:
    """What an exception of OpenVINO says, in one line without source positions and reports."""
    lines = [line.strip() for line in str(error).splitlines()]
    kept = [_replaced(line, _OPENVINO) for line in lines if line and not _OPENVINO_NOISE.match(line.lstrip())]
    if not kept:  # the condition that failed is all that there is
        kept = [found[1] for line in lines if (found := re.match(r"Check '(.*)' failed at", line))][-1:]
    return _finished(" ".join(kept), error)


def _replaced(text: str, rules: tuple[tuple[str, str], ...]) -> str:
    for pattern, replacement in rules:
        text = re.sub(pattern, replacement, text)
    return text


def _finished(text: str, error: BaseException) -> str:
    text = " ".join(text.split()).rstrip(" .:")
    if len(text) > _LONGEST:
        text = text[: _LONGEST - 3].rstrip() + "..."
    return text or type(error).__name__
