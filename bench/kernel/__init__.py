"""What the engine costs: time, bytes and memory, beside its peers and beside a hand-written minimum."""
