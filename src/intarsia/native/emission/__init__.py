"""LLVM IR emitted for loop functions."""
