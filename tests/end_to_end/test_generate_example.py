"""The example that generates text: all engines write the same tokens."""

from __future__ import annotations

import pytest
from examples.generate import main


@pytest.mark.parametrize("size", ["gpt2_tiny", "llama_tiny"])
@pytest.mark.slow
def test_all_engines_write_the_same(size: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--size", size, "--tokens", "70", "--rounds", "1", "--toolchains", "native", "onnxruntime"]
    assert main([*words, "openvino"]) == 0
    shown = capsys.readouterr().out
    assert shown.count("as onnxruntime's") == 5
    assert "intarsia native" in shown


def test_tokens_that_differ_are_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def generated(engine: object, prompt: object, count: int) -> list[int]:
        return [3, 4, 5 if engine == "wrong" else 7][:count]

    monkeypatch.setattr("examples.generate.generate", generated)
    monkeypatch.setattr(
        "examples.generate.open_engine", lambda name, *_: "wrong" if "native" in name else name
    )
    assert main(["--rounds", "1", "--tokens", "3"]) == 1
    assert "differ at 2" in capsys.readouterr().out
