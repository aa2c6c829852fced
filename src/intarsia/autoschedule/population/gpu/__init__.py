"""Random programs of sketches for GPUs: numbers of threads, tiles of a thread, and widths of copies."""

from intarsia.autoschedule.population.gpu.every_program import every_history, every_program
from intarsia.autoschedule.population.gpu.fill_thread_sizes import FillThreadSizes
from intarsia.autoschedule.population.gpu.legality import is_launchable
from intarsia.autoschedule.population.gpu.thread_sizes import ThreadSizes

__all__ = ["FillThreadSizes", "ThreadSizes", "every_history", "every_program", "is_launchable"]
