"""Machine code for loop functions: what emits, compiles, keeps, loads and runs it."""
