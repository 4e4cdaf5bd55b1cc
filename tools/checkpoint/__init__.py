"""Checkpoints: torch's and safetensors files read as data, matched with what a port holds, and written in its names and axis order.

`files` reads and writes safetensors, `torch_side` reads torch's pickles (in the sandbox), `jax_side` says what a port holds (in the sandbox),
`matching` finds which array belongs where, `convert` moves them.
"""
