"""Axes as loops."""


def loop_name(axis_name: str) -> str:
    """The name of an axis as a loop of a stage: splitting and fusing add `.` and `@`."""
    return axis_name.replace(".", "_").replace("@", "_")
