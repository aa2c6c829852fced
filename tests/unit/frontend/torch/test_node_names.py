"""Names of modules and parameters from what dynamo and torch.export store."""

from __future__ import annotations

import pytest

from intarsia.frontend.torch.node_names import attribute_path, module_path


@pytest.mark.parametrize(
    ("source", "path"),
    [
        (
            "L['self']._modules['layers']._modules['3']._modules['attn']._parameters['w']",
            "layers.3.attn.w",
        ),
        ("L['s']._modules['norm']._buffers['running_mean']", "norm.running_mean"),
        ("L['self'].scale", "scale"),
        ("L['x']", ""),
    ],
)
def test_path_of_a_parameter(source: str, path: str) -> None:
    assert attribute_path(source) == path


@pytest.mark.parametrize(
    ("stored", "path"),
    [
        ("L['self'].layers.0.attn", "layers.0.attn"),
        ("L['self']", ""),
        ("layers.0", "layers.0"),
        ("", ""),
        ("_empty_nn_module_stack_from_metadata_hook", ""),
    ],
)
def test_path_of_a_module(stored: str, path: str) -> None:
    assert module_path(stored) == path
