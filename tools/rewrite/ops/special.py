"""Special functions (https://pytorch.org/docs/stable/special.html)."""

from __future__ import annotations

from migrate_agent.tools.rewrite.tables import Op

S = "torch.special."
UNARY = {
    "entr": "vendored.entr",
    "i0e": "jax.scipy.special.i0e",
    "i1": "jax.scipy.special.i1",
    "i1e": "jax.scipy.special.i1e",
    "ndtr": "vendored.ndtr",
    "ndtri": "jax.scipy.special.ndtri",
    "log_ndtr": "jax.scipy.special.log_ndtr",
    "erfcx": "vendored.erfcx",
}
BINARY = {"xlog1py": "jax.scipy.special.xlog1py", "zeta": "jax.scipy.special.zeta"}

ROWS = [
    *(Op(S + name, "input", f"{function}({{input}})") for name, function in UNARY.items()),
    *(Op(S + name, "input, other", f"{function}({{input}}, {{other}})") for name, function in BINARY.items()),
]
