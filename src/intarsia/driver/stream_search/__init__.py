"""Choose streams, threads and batch of a pool by measuring them under load."""
