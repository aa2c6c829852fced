"""Arrays in files, and the digests of constants, so that large weights are written once."""
