"""Transforms of functions (https://docs.pytorch.org/docs/stable/func.api.html), which JAX has too."""

from __future__ import annotations

from migrate_agent.tools.rewrite.tables.registry import Op

ROWS = (
    Op(
        "torch.func.vmap",
        "func, in_dims=0, out_dims=0, randomness='error', *, chunk_size=None",
        # `randomness` and `chunk_size` fall away: keys are arguments in JAX, and XLA schedules the
        # batch.
        "jax.vmap({func}, in_axes={in_dims}, out_axes={out_dims})",
        aliases=("torch.vmap",),
        returns="",
        samples=("torch.vmap(torch.dot, in_dims=(0, None))(torch.ones(2, 3), torch.ones(3))",),
    ),
    Op(
        "torch.func.grad",
        "func, argnums=0, has_aux=False",
        "jax.grad({func}, argnums={argnums}, has_aux={has_aux})",
        returns="",
        samples=("torch.func.grad(torch.dot, argnums=1)(torch.ones(3), torch.ones(3))",),
    ),
    *(
        Op(
            f"torch.func.{name}",
            "func, argnums=0",
            f"jax.{name}({{func}}, argnums={{argnums}})",
            returns="",
            samples=(f"torch.func.{name}(torch.sin)(torch.ones(2))",),
        )
        for name in ("jacrev", "jacfwd", "hessian")
    ),
)
