"""Checkpoints: reads torch's and safetensors files as data, matches them with a port's state, and writes the port's names and axis order.

`files` reads and writes safetensors. `torch_side` reads torch's pickles and `jax_side` lists a port's
entries, both in the sandbox. `matching` assigns tensors to entries, and `convert` transposes them.
"""
