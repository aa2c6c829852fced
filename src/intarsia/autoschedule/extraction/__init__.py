"""The kernels of a program as search tasks."""

from intarsia.autoschedule.extraction.extract_tasks import extract_tasks
from intarsia.autoschedule.extraction.extracted_task import ExtractedTask, structural_workload_key

__all__ = ["ExtractedTask", "extract_tasks", "structural_workload_key"]
