"""Kernels for any number of items, which is an argument of the kernel at run time.

row_dag          the same computation for another number of rows, if it computes each row by itself
item_loops       a loop function for any number of items, from loop functions for one item or for a few rows
row_tiles        the loop functions of a product for a few rows, which read one packed matrix
sum_steps        several steps of a sum in one iteration, where a tile has few rows
attention_form   what a kernel of attention among items, the tokens of texts, computes
token_attention  its loop function
image_loops      a loop function for images of any size, from those for tiles of a row
image_grids      a loop function for images of any size, from those for tiles of rows and columns
image_moves      loop functions that move images: into blocks, borders, global pools, resizing (image_writer)
text_loops       loop functions between texts and their tokens: pooling, and copies for each token
token_filter     weighted sums of the neighbours of each token
pooled           what becomes of the tokens of a text
"""

from intarsia.native.sizes.attention_form import TokenAttention, token_attention_of
from intarsia.native.sizes.item_loops import repeat_items, repeat_rows
from intarsia.native.sizes.row_dag import with_rows, without_unit_axes
from intarsia.native.sizes.row_tiles import RowTiles, row_tiles
from intarsia.native.sizes.sum_steps import with_steps
from intarsia.native.sizes.text_loops import TextLoops, spread_dag, text_function, text_loops_of
from intarsia.native.sizes.token_attention import attention_function
from intarsia.native.sizes.token_filter import TokenFilter, filter_function, token_filter_of

__all__ = [
    "RowTiles",
    "TextLoops",
    "TokenAttention",
    "TokenFilter",
    "attention_function",
    "filter_function",
    "repeat_items",
    "repeat_rows",
    "row_tiles",
    "spread_dag",
    "text_function",
    "text_loops_of",
    "token_attention_of",
    "token_filter_of",
    "with_rows",
    "with_steps",
    "without_unit_axes",
]
