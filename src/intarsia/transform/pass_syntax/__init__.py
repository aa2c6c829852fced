"""Passes as text: `TunePlacement{eval_passes=[TuneLayout, TuneSchedule]}`.

source_text      a text, and errors that point into it
token            its words, numbers and marks
syntax_tree      its parts
parser           the grammar
option_hint      options of passes, with their types
reader           passes and options of the parts, checked against these types
read_passes      passes of a text
suggestion       what may follow an unfinished text

`transform.pass_text` prints what is read here.
"""
