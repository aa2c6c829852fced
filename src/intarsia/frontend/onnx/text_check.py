"""A check that every text of a model's message is UTF-8; protobuf silently returns other text as bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from intarsia.support.errors import InvalidModelError

if TYPE_CHECKING:
    from onnx import ModelProto

_TYPE_MESSAGE, _TYPE_STRING = 11, 9
"""Field types of protobuf's descriptors."""


def check_texts(model: ModelProto) -> None:
    """Refuse a message with names that are not text.

    Raises:
        InvalidModelError: Some string is not UTF-8.
    """
    pending: list[Any] = [model]
    while pending:
        message = pending.pop()
        for kind, value in _texts_and_messages(message):
            if kind == _TYPE_MESSAGE:
                pending.append(value)
            elif isinstance(value, bytes):
                raise InvalidModelError(
                    f"a {message.DESCRIPTOR.name} of the model holds {value[:20]!r}, which is no UTF-8 text",
                    help="copy or download the file again",
                )


def _texts_and_messages(message: Any) -> Iterator[tuple[int, Any]]:
    if message.DESCRIPTOR.name == "TensorProto":  # a listing of all fields would copy its data
        yield _TYPE_STRING, message.name
        yield from ((_TYPE_MESSAGE, entry) for entry in message.external_data)
        return
    for field, value in message.ListFields():
        if field.type in (_TYPE_MESSAGE, _TYPE_STRING):
            values = (value,) if isinstance(value, (str, bytes)) or hasattr(value, "ListFields") else value
            yield from ((field.type, item) for item in values)
