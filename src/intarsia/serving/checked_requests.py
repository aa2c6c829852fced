"""KServe's server with a reader that answers binary requests that cannot be read with 400.

KServe reads a request with binary tensors without a check of its parts: a length in the header that is no
number, negative or not that of the JSON part raises an error of Python's, which KServe answers with 500.
"""

from __future__ import annotations

from typing import Any

from kserve import InferRequest, ModelServer
from kserve.constants.constants import INFERENCE_CONTENT_LENGTH_HEADER
from kserve.errors import InferenceError, InvalidInput
from kserve.protocol.dataplane import DataPlane


class CheckedDataPlane(DataPlane):
    """KServe's data plane, which answers every request that cannot be read with 400."""

    def decode_inference_request(self, body: Any, headers: dict[str, str], model_name: str) -> InferRequest:
        """Return a request.

        Raises:
            InvalidInput: It cannot be read.
        """
        try:
            if isinstance(body, bytes):
                _check_length(headers.get(INFERENCE_CONTENT_LENGTH_HEADER), len(body))
            return super().decode_inference_request(body, headers, model_name)
        except InvalidInput:
            raise
        # What KServe's reader raises for values of other types, or for sizes that do not fit.
        except (
            ArithmeticError,
            AttributeError,
            InferenceError,
            LookupError,
            TypeError,
            ValueError,
        ) as error:
            kind = type(error).__name__
            raise InvalidInput(f"the request cannot be read: {kind}: {error}") from error


def checked_server(**options: Any) -> ModelServer:
    """Return KServe's server with a reader that answers unreadable requests with 400.

    Args:
        options: Options of `kserve.ModelServer`.
    """
    server = ModelServer(**options)
    server.dataplane = CheckedDataPlane(model_registry=server.registered_models)
    return server


def _check_length(text: str | None, most: int) -> None:
    if text is None:
        return  # KServe has an error for this
    if not (text.isascii() and text.isdecimal()) or int(text) > most:
        raise InvalidInput(
            f'the header {INFERENCE_CONTENT_LENGTH_HEADER} is "{text[:40]}", '
            f"expected the length of the JSON part, at most {most} bytes"
        )
