"""The rules, a family a file; importing them registers them."""
