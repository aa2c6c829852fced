"""Emission of LLVM IR for loop functions."""
