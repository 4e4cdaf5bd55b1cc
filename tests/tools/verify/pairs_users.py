"""What users do with a unit beside calling it as the example does: other dtypes, other modes of parts, attributes, second derivatives."""

from __future__ import annotations

from migrate_agent.tests.tools.verify.harness import Pair, Wrong
from migrate_agent.tools.rewrite.tables import helpers

USED = Pair(
    "used",
    torch="""
class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(6))

    def forward(self, x):
        wide = x.float()
        wide = wide - wide.mean(-1, keepdim=True)
        return self.weight * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype)


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = 0.5
        self.norm = Norm()
        self.fc = nn.Linear(6, 6)
        self.drop = nn.Dropout(0.3)
        self.last = nn.Dropout(0.3)

    def bend(self, x):
        return x * torch.tanh(x)

    def forward(self, x):
        x = x + self.drop(self.bend(self.fc(self.norm(x)))) * self.scale
        return self.last(x)
""",
    jax="""
from nnx_layers_jax import Dropout, Linear


class Norm(nnx.Module):
    def __init__(self):
        self.weight = nnx.Param(jnp.ones(6))

    def __call__(self, x):
        wide = x.astype(jnp.float32)
        mean = wide.mean(-1, keepdims=True)
        square = jnp.mean((wide - mean) ** 2, -1, keepdims=True)
        wide = (wide - mean) * jax.lax.rsqrt(square + 1e-6)
        return self.weight[...] * wide.astype(x.dtype)


def bend(x):
    return x * jnp.tanh(x)


class M(nnx.Module):
    def __init__(self, *, rngs):
        self.scale = 0.5
        self.half = 0.5
        self.norm = Norm()
        self.fc = Linear(6, 6, rngs=rngs)
        self.drop = Dropout(0.3, rngs=rngs)
        self.last = Dropout(0.3, rngs=rngs)

    def bend(self, x):
        return bend(x)

    def __call__(self, x):
        x = x + self.drop(self.bend(self.fc(self.norm(x)))) * self.scale
        return self.last(x)
""",
    call="torch.randn(5, 6)",
    extra={"nnx_layers_jax.py": helpers.render({"Dropout", "Linear"})},
    wrongs=(
        Wrong("devices", "surroundings", "* self.scale", "* (self.scale if jax.device_count() == 1 else 1.0)", alone=True),
        Wrong(
            "one pass",
            "edges_fp32",
            "jnp.mean((wide - mean) ** 2, -1, keepdims=True)",
            "jnp.mean(wide**2, -1, keepdims=True) - mean**2",
            alone=True,
        ),
        Wrong("stays wide", "narrow_inputs", "wide.astype(x.dtype)", "wide", alone=True),
        Wrong("narrow root", "narrow_inputs", "x.astype(jnp.float32)", "x", alone=True),
        Wrong(
            "one mode",
            "part_modes",
            "        return self.last(x)",
            "        return self.last(x, deterministic=self.drop.deterministic)",
            alone=True,
        ),
        Wrong("old attribute", "attributes", "* self.scale", "* self.half", alone=True),
        Wrong(
            "constant slope",
            "second_derivatives",
            "    return x * jnp.tanh(x)",
            "    t, f = jax.lax.stop_gradient((jnp.tanh(x), x))\n    return f * t + (t + f * (1 - t**2)) * (x - f)",
            alone=True,
        ),
    ),
)
PADDED = Pair(
    "padded",
    """
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.ones(4))

        def forward(self, x):
            return F.elu(x) * self.scale
    """,
    """
class M(nnx.Module):
    def __init__(self, *, rngs):
        self.scale = nnx.Param(jnp.ones(4))

    def __call__(self, x):
        return jax.nn.elu(x) * self.scale[...]
""",
    # At zero torch's second derivative of `elu` is a convention.
    call="torch.nn.functional.pad(torch.randn(5, 3), (1, 0))",
)
REPARAMETRISED = Pair(
    "reparametrised",
    """
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 6)

        def forward(self, x):
            mu, logvar = self.fc(x).chunk(2, 1)
            std = logvar.mul(0.5).exp_()
            eps = std.data.new(std.size()).normal_()
            return eps.mul(std).add_(mu), mu, logvar
    """,
    """
from nnx_layers_jax import Linear


class M(nnx.Module):
    def __init__(self, *, rngs):
        self.fc = Linear(4, 6, rngs=rngs)
        self.rngs = rngs

    def __call__(self, x):
        mu, logvar = jnp.split(self.fc(x), 2, axis=1)
        std = jnp.exp(0.5 * logvar)
        eps = jax.random.normal(self.rngs(), std.shape, std.dtype)
        return eps * std + mu, mu, logvar
""",
    call="torch.randn(5, 4)",
    extra={"nnx_layers_jax.py": helpers.render({"Linear"})},
)
MERGED = Pair(
    "merged",
    """
class M(nn.Linear):
    def __init__(self):
        nn.Linear.__init__(self, 6, 5)
        self.a = nn.Parameter(torch.randn(2, 6))
        self.b = nn.Parameter(torch.randn(5, 2))
        self.merged = False

    def train(self, mode=True):
        nn.Linear.train(self, mode)
        if mode == self.merged:
            self.weight.data += (-1 if mode else 1) * self.b @ self.a
            self.merged = not mode

    def forward(self, x):
        y = F.linear(x, self.weight, self.bias)
        return y if self.merged else y + x @ self.a.T @ self.b.T
""",
    """
from nnx_layers_jax import Linear, OwnTrain


class M(OwnTrain, Linear):
    def __init__(self, *, rngs):
        super().__init__(6, 5, rngs=rngs)
        self.a = nnx.Param(jax.random.normal(rngs.params(), (2, 6)))
        self.b = nnx.Param(jax.random.normal(rngs.params(), (5, 2)))
        self.merged = False

    def train(self, mode=True):
        super().train(mode)
        if mode == self.merged:
            self.weight = self.weight + (-1 if mode else 1) * self.b[...] @ self.a[...]
            self.merged = not mode

    def __call__(self, x):
        y = x @ self.weight.T + self.bias[...]
        return y if self.merged else y + x @ self.a[...].T @ self.b[...].T
""",
    call="torch.randn(3, 6)",
    extra={"nnx_layers_jax.py": helpers.render({"Linear", "OwnTrain"})},
    wrongs=(
        Wrong("merges nothing", "forward_fp64", "self.weight = self.weight + (-1 if mode else 1) * self.b[...] @ self.a[...]", "pass"),
        Wrong("merges twice as much", "forward_fp64", "(-1 if mode else 1) *", "(-1 if mode else 2) *"),
    ),
)
STANDING = Pair(
    "standing",
    """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 5)
        self.norm = nn.BatchNorm1d(5)

    def train(self, mode=True):
        super().train(mode)
        self.norm.eval()
        return self

    def forward(self, x):
        return self.norm(self.fc(x))
""",
    """
from nnx_layers_jax import BatchNorm1d, Linear, OwnTrain


class M(OwnTrain):
    def __init__(self, *, rngs):
        self.fc = Linear(6, 5, rngs=rngs)
        self.norm = BatchNorm1d(5, rngs=rngs)

    def train(self, mode=True):
        super().train(mode)
        self.norm.eval()
        return self

    def __call__(self, x):
        return self.norm(self.fc(x))
""",
    call="torch.randn(7, 6)",
    extra={"nnx_layers_jax.py": helpers.render({"BatchNorm1d", "Linear", "OwnTrain"})},
    wrongs=(Wrong("trains with the rest", "training_fp64", "self.norm.eval()", "pass"),),
)
"""A norm that stands still while the rest trains: it is in the other mode than the rest already."""
DETACHED = Pair(
    "detached",
    """
class Nearest(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, rows):
        indices = torch.cdist(x, rows).argmin(-1)
        ctx.save_for_backward(indices, rows)
        return rows[indices]

    @staticmethod
    def backward(ctx, grad):
        of_rows = None
        if ctx.needs_input_grad[1]:
            indices, rows = ctx.saved_tensors
            of_rows = torch.zeros_like(rows).index_add_(0, indices, grad)
        return grad.clone(), of_rows


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.rows = nn.Parameter(torch.randn(5, 6))

    def forward(self, x):
        return Nearest.apply(x, self.rows.detach()) + self.rows.sum(0)
""",
    """
from nnx_layers_jax import AutogradFunction


class Nearest(AutogradFunction):
    @staticmethod
    def forward(ctx, x, rows):
        indices = jnp.argmin(((x[:, None] - rows) ** 2).sum(-1), axis=-1)
        ctx.save_for_backward(indices, rows)
        return rows[indices]

    @staticmethod
    def backward(ctx, grad):
        of_rows = None
        if ctx.needs_input_grad[1]:
            indices, rows = ctx.saved_tensors
            of_rows = jnp.zeros_like(rows).at[indices].add(grad)
        return grad, of_rows


class M(nnx.Module):
    def __init__(self, *, rngs):
        self.rows = nnx.Param(jax.random.normal(rngs.params(), (5, 6)))

    def __call__(self, x):
        return Nearest.apply(x, jax.lax.stop_gradient(self.rows[...])) + self.rows.sum(0)
""",
    call="torch.randn(7, 6)",
    extra={"nnx_layers_jax.py": helpers.render({"AutogradFunction"})},
    applied=("Nearest", "torch.randn(7, 6), torch.randn(5, 6)"),
    wrongs=(Wrong("twice the gradient at the detached input", "gradients_inputs", ".add(grad)", ".add(2 * grad)"),),
)
"""A function with a gradient of its own that the unit hands its table without one: what it computes for that is compared in a call of its own."""
BEGUN = Pair(
    "begun",
    """
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("initialised", torch.zeros(1))
            self.shift = nn.Parameter(torch.zeros(1, 3))

        def forward(self, x):
            if not self.initialised and self.training:
                with torch.no_grad():
                    self.shift.data.copy_(-x.mean(0, keepdim=True))
                    self.initialised += 1.0
            return torch.tanh(x + self.shift)
    """,
    """
import jax
import jax.numpy as jnp
from flax import nnx


class M(nnx.Module):
    def __init__(self, *, rngs):
        self.initialised = nnx.Variable(jnp.zeros(1))
        self.shift = nnx.Param(jnp.zeros((1, 3)))
        self.deterministic = False

    def __call__(self, x):
        if not self.deterministic:
            begins = (self.initialised[...] == 0).reshape(())
            new = jax.lax.stop_gradient(-x.mean(0, keepdims=True)).astype(self.shift.dtype)
            old = self.shift[...]
            self.shift[...] = jnp.where(begins, new + (old - jax.lax.stop_gradient(old)), old)
            self.initialised[...] += begins
        return jnp.tanh(x + self.shift[...])
""",
    call="torch.randn(5, 3)",
    wrongs=(
        Wrong("never begins", "training_fp64", "(self.initialised[...] == 0)", "(self.initialised[...] < 0)"),
        Wrong("begins with the other sign", "training_fp64", "(-x.mean(0", "(x.mean(0"),
    ),
)
"""A first batch that sets parameters: sampled flags are never those of a module that has not begun."""
PAIRS = (BEGUN, DETACHED, MERGED, PADDED, REPARAMETRISED, STANDING, USED)
