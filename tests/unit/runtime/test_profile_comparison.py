"""Two profiles side by side: segments where one toolchain fuses what the other one does not."""

from __future__ import annotations

from intarsia.runtime.kernel_profiler import ProfiledKernel, SourceNode
from intarsia.runtime.profile import Profile, ProfileRow
from intarsia.runtime.profile_comparison import compare_profiles

A, B, C, D = (SourceNode(name, "Relu") for name in "abcd")


def row(seconds: float, *nodes: SourceNode, name: str = "kernel", is_conversion: bool = False) -> ProfileRow:
    kernel = ProfiledKernel(name, nodes, nodes[0] if nodes else None, None, is_conversion)
    return ProfileRow("native", "main", kernel, 1, seconds)


def profile(*rows: ProfileRow) -> Profile:
    return Profile(rows, 1.0, 0.0, 1.0, 1)


def test_segments() -> None:
    first = profile(row(1.0, A, B, name="ab"), row(2.0, C, name="c"), row(0.5, name="to", is_conversion=True))
    second = profile(row(0.25, A, name="a"), row(0.5, B, name="b"), row(4.0, C, D, name="cd"))
    segments = compare_profiles(first, second)
    assert [(item.name, item.seconds, item.kernels) for item in segments] == [
        ("a (+1)", (1.0, 0.75), (("ab",), ("a", "b"))),
        ("c (+1)", (2.0, 4.0), (("c",), ("cd",))),
        ("(layout conversion)", (0.5, 0), (("to",), ())),
    ]
    assert segments[0].nodes == (A, B)


def test_chains_of_overlaps_are_one_segment() -> None:
    first = profile(row(1.0, A, B), row(1.0, C, D))
    second = profile(row(1.0, A), row(1.0, B, C), row(1.0, D))
    (only,) = compare_profiles(first, second)
    assert set(only.nodes) == {A, B, C, D}
    assert only.seconds == (2.0, 3.0)
    assert only.to_json()["seconds"] == [2.0, 3.0]
