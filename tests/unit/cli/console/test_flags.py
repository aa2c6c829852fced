import pytest

from intarsia.cli.console.flags import Flags


@pytest.mark.parametrize(
    ("arguments", "flags", "others"),
    [
        (["run", "m.onnx"], Flags(), ["run", "m.onnx"]),
        (["run", "--json", "m.onnx"], Flags(json=True), ["run", "m.onnx"]),
        (["--json", "run", "m.onnx", "-q", "--debug"], Flags(True, True, True), ["run", "m.onnx"]),
        (["run", "--quiet", "m.onnx"], Flags(quiet=True), ["run", "m.onnx"]),
        (["-q", "run", "--", "--json"], Flags(quiet=True), ["run", "--", "--json"]),
        ([], Flags(), []),
    ],
)
def test_splitting(arguments: list[str], flags: Flags, others: list[str]) -> None:
    assert Flags.split(arguments) == (flags, others)
