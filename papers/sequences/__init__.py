"""Which rule helps which layer, on real sequences? See protocol.md."""
