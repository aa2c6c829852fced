"""The essential sentence of an error of OpenVINO."""

from __future__ import annotations

import re
from typing import Final

from intarsia.toolchain.engine_message import replaced, shortened

_NOISE: Final = re.compile(
    r"Exception from |Check '.*' failed at|While validating (?:ONNX )?node|Summary:|To facilitate |"
    r"FrontEnd API failed|Model wasn't fully converted|-- Conversion is failed for|Encountered unconverted|"
    r"Install OpenVINO Tokenizers"
)
_RULES: Final = (
    (r"^(?:-- )?(?:\[\w+\] )?", ""),
    (r"^(\w+)-\d+ with a message:", r"\1:"),
    (r" expected: [A-Z0-9]+(?:, [A-Z0-9]+)*$", ""),
    (r" ?Check '[^']*' failed at \S+:\d+: ?$", ":"),
)


def openvino_message(error: BaseException) -> str:
    """Return what an exception of OpenVINO says, in one line without source positions and reports."""
    lines = [line.strip() for line in str(error).splitlines()]
    kept = [replaced(line, _RULES) for line in lines if line and not _NOISE.match(line.lstrip())]
    if not kept:  # the condition that failed is all that there is
        kept = [found[1] for line in lines if (found := re.match(r"Check '(.*)' failed at", line))][-1:]
    return shortened(" ".join(kept), error)
