"""What rewrite rules are written with."""
