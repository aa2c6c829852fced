"""The language: immutable expression DAGs with types, devices and spans (DESIGN section 2).

types, dtype, span, attributes    what expressions carry; dim_range: which sizes a symbolic dimension may have
variant                           functions that are run in place of @main at some sizes
expr, prim_func, module           expressions, loop functions and programs
traversal, scope, loop_walk       walking, rewriting, and where a shared expression is evaluated
scalar_types                      what the scalars of loop functions compute with
canonical, loop_canonical         structural equality and the stable digest
printer, loop_printer, parser     the text form, complete in both directions (listing, literal, loop_literal;
                                  grammar.lark, loop_grammar.lark, value_builder, loop_builder,
                                  program_builder, text_error)
pattern                           patterns of expressions, as values
verify, loop_verify               the rules of the language, complaints in place (verify_scopes, complaint)
"""

from intarsia.ir.attributes import NO_ATTRS, Attrs, AttrValue
from intarsia.ir.canonical import structural_digest, structural_equal
from intarsia.ir.dim_range import DimRange, dim_ranges, with_dim_ranges
from intarsia.ir.dtype import DType
from intarsia.ir.expr import (
    Call,
    Constant,
    Expr,
    Function,
    GlobalVar,
    If,
    Let,
    Op,
    Tuple,
    TupleGetItem,
    Var,
    with_fields,
)
from intarsia.ir.module import IRModule, with_module_fields
from intarsia.ir.prim_func import PrimFunc, with_prim_func_fields
from intarsia.ir.span import Span
from intarsia.ir.traversal import children, free_vars, post_order, rewrite, substitute, with_children
from intarsia.ir.types import (
    ABSENT,
    ANY,
    Dim,
    FuncType,
    OptionalType,
    SequenceType,
    SymbolicDim,
    TensorType,
    TupleType,
    Type,
    is_compatible,
    join_types,
)

__all__ = [
    "ABSENT",
    "ANY",
    "NO_ATTRS",
    "AttrValue",
    "Attrs",
    "Call",
    "Constant",
    "DType",
    "Dim",
    "DimRange",
    "Expr",
    "FuncType",
    "Function",
    "GlobalVar",
    "IRModule",
    "If",
    "Let",
    "Op",
    "OptionalType",
    "PrimFunc",
    "SequenceType",
    "Span",
    "SymbolicDim",
    "TensorType",
    "Tuple",
    "TupleGetItem",
    "TupleType",
    "Type",
    "Var",
    "children",
    "dim_ranges",
    "free_vars",
    "is_compatible",
    "join_types",
    "post_order",
    "rewrite",
    "structural_digest",
    "structural_equal",
    "substitute",
    "with_children",
    "with_dim_ranges",
    "with_fields",
    "with_module_fields",
    "with_prim_func_fields",
]
