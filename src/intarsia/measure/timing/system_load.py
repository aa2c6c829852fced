"""What the operating system says about its load: stolen time, load average, frequency governor.

Every function takes the root of the file system, so that tests can lay out a machine in a folder. What cannot
be read is None or "".
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from intarsia.target.cpu import usable_cores

_STEAL_COLUMN = 7  # of "cpu" in /proc/stat: user nice system idle iowait irq softirq steal guest guest_nice
_COUNTED_COLUMNS = 8  # the guests' time is part of the user's


@dataclass(frozen=True, slots=True)
class CpuTimes:
    """Time of all cores since the start of the machine, in ticks.

    Attributes:
        total: All of it.
        stolen: Time in which a core had work, but the hypervisor gave it to another machine.
    """

    total: int
    stolen: int


@dataclass(frozen=True, slots=True)
class SystemLoad:
    """The load of the machine.

    Attributes:
        cores: Cores that the process may use.
        steal: Share of the time of all cores that another virtual machine got during the watch.
        load_average: Number of processes that ran or waited to run, averaged over the minute before the
            watch.
        governor: Frequency governor of the first core ("performance", "powersave", ...).
    """

    cores: int
    steal: float | None
    load_average: float | None
    governor: str


@dataclass(frozen=True, slots=True)
class LoadWatch:
    """Watches the machine from `begin` to `end`."""

    root: Path
    times: CpuTimes | None
    load_average: float | None

    @classmethod
    def begin(cls, root: Path) -> LoadWatch:
        """Read what the end is compared with, and the load average before the own work adds to it."""
        return cls(root, read_cpu_times(root), read_load_average(root))

    def end(self) -> SystemLoad:
        """The load since the beginning."""
        now = read_cpu_times(self.root)
        steal = None
        if self.times is not None and now is not None:
            steal = max(0, now.stolen - self.times.stolen) / max(1, now.total - self.times.total)
        return SystemLoad(usable_cores(self.root), steal, self.load_average, read_governor(self.root))


def read_cpu_times(root: Path) -> CpuTimes | None:
    """The first line of /proc/stat."""
    words = _first_line(root / "proc/stat").split()
    columns = words[1 : 1 + _COUNTED_COLUMNS]
    if words[:1] != ["cpu"] or len(columns) < _COUNTED_COLUMNS or not all(map(str.isdigit, columns)):
        return None
    numbers = [int(column) for column in columns]
    return CpuTimes(sum(numbers), numbers[_STEAL_COLUMN])


def read_load_average(root: Path) -> float | None:
    """The first number of /proc/loadavg."""
    try:
        return float(_first_line(root / "proc/loadavg").split()[0])
    except (IndexError, ValueError):
        return None


def read_governor(root: Path) -> str:
    """The scaling governor of the first core; virtual machines have none, as a rule."""
    return _first_line(root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")


def _first_line(path: Path) -> str:
    try:
        with path.open(encoding="utf-8", errors="replace") as lines:
            return lines.readline().strip()
    except OSError:
        return ""
