"""Names of loops."""


def loop_name(axis_name: str) -> str:
    """Return the name of an axis as a loop, without `.` and `@`, which splitting and fusing add."""
    return axis_name.replace(".", "_").replace("@", "_")
