"""Programs that compute each item of a batch by itself.

independent_items  whether a program does: then a batch of any size is run as several smaller ones
item_axes          the axis in which a value carries the batch
item_rules         the rule for each operator: computing_items, moving_items
provided_items     operators among the tokens of texts, which may read other items
"""

from intarsia.passes.batches.independent_items import independence_obstacle

__all__ = ["independence_obstacle"]
