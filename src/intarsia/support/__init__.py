"""What every layer may use: errors, registries, digests, files. It imports nothing of Intarsia."""
