import pytest

from intarsia.cli.arguments.target import parse_target, target_text
from intarsia.support.errors import IntarsiaError
from intarsia.target import Target


@pytest.mark.parametrize(
    ("text", "threads", "expected"),
    [
        ("reference", None, "cpu -toolchain=reference"),
        ("cpu -toolchain=reference", None, "cpu -toolchain=reference"),
        ("reference", 2, "cpu -toolchain=reference -threads=2"),
        ("cpu -toolchain=reference -threads=3", 2, "cpu -toolchain=reference -threads=3"),
    ],
)
def test_names_and_whole_targets(text: str, threads: int | None, expected: str) -> None:
    assert parse_target(text, threads) == Target(expected)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("referense", "unknown toolchain 'referense'\nhelp: did you mean reference?"),
        (
            "cpu",
            'the target "cpu" names no toolchain\nhelp: write for example "cpu -toolchain=openvino"',
        ),
        (
            "cpu toolchain=reference",
            """target option 'toolchain=reference' is malformed; expected -name=value
  in target "cpu toolchain=reference\"""",
        ),
    ],
)
def test_wrong_ones(text: str, message: str) -> None:
    with pytest.raises(IntarsiaError) as caught:
        parse_target(text)
    assert (str(caught.value), caught.value.exit_code) == (message, 2)


def test_text_in_tables() -> None:
    assert target_text(Target("cpu -toolchain=reference")) == "reference"
    assert target_text(Target("cpu -toolchain=reference -threads=2")) == "reference threads=2"
