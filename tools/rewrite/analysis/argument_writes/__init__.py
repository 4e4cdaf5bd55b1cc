"""Which functions change what they are handed: parameters and buffers of modules, and plain tensors."""
