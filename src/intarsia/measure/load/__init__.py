"""Load on a pool of streams: calls at the rate at which clients send them, and as many as it takes."""
