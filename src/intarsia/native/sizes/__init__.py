"""Kernels for any number of items, which is an argument of the kernel at run time.

row_dag          the same computation for another number of rows, if it computes each row by itself
item_loops       a loop function for any number of items, from loop functions for one item or for a few rows
row_tiles        the loop functions of a product for a few rows, which read one packed matrix
token_attention  the loop function of attention among items, the tokens of a text
"""

from intarsia.native.sizes.item_loops import ITEMS, repeat_items, repeat_rows
from intarsia.native.sizes.row_dag import with_rows, without_unit_axes
from intarsia.native.sizes.row_tiles import RowTiles, row_tiles
from intarsia.native.sizes.token_attention import TokenAttention, attention_function, token_attention_of

__all__ = [
    "ITEMS",
    "RowTiles",
    "TokenAttention",
    "attention_function",
    "repeat_items",
    "repeat_rows",
    "row_tiles",
    "token_attention_of",
    "with_rows",
    "without_unit_axes",
]
