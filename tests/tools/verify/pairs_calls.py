"""Pairs of a torch module and its mirror, written by hand: gradients at edges and in native dtypes, and what a call leaves for the next one."""

from __future__ import annotations

from migrate_agent.tests.tools.verify.harness import Pair, Wrong
from migrate_agent.tests.tools.verify.pairs_layers import LINEAR
from migrate_agent.tools.rewrite.tables import helpers

NORM = Pair(
    "norm",
    """
    class M(nn.Module):
        def forward(self, x):
            return x.norm(dim=-1), F.elu(x)
    """,
    """
class M(nnx.Module):
    def __init__(self, *, rngs):
        pass

    def __call__(self, x):
        total = (x * x).sum(-1)
        return jnp.where(total == 0, 0.0, jnp.sqrt(jnp.where(total == 0, 1.0, total))), jax.nn.elu(x)
""",
    call="torch.randn(3, 4)",
    wrongs=(
        Wrong("no gradient at zero", "gradients_edges", "jnp.sqrt(jnp.where(total == 0, 1.0, total))", "jnp.sqrt(total)", alone=True),
        Wrong("overflows in the other branch", "gradients_edges", "jax.nn.elu(x)", "jnp.where(x > 0, x, jnp.expm1(x))", alone=True),
    ),
)

STREAM = Pair(
    "stream",
    """
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("last", torch.zeros(4), persistent=False)

        def forward(self, x):
            y = x + self.last
            self.last = y[-1].detach()
            return y
    """,
    """
class M(nnx.Module):
    def __init__(self, *, rngs):
        self.last = nnx.Cache(jnp.zeros(4))

    def __call__(self, x):
        y = x + self.last[...]
        self.last[...] = jax.lax.stop_gradient(y[-1])
        return y
""",
    call="torch.randn(3, 4)",
    wrongs=(
        Wrong("keeps the first row", "second_call", "y[-1]", "y[0]"),
        Wrong("keeps nothing", "second_call", "jax.lax.stop_gradient(y[-1])", "0 * y[-1]"),
    ),
)

ON_HOST = Pair(
    "an array that stays NumPy's",
    """
    import numpy as np

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.randn(4, 3))

        def forward(self, x, t):
            powers = torch.tensor(np.array([t ** i for i in range(3)])).float()
            return torch.tanh(x @ self.w) @ powers
    """,
    """
import numpy as np


class M(nnx.Module):
    def __init__(self, *, rngs):
        self.w = nnx.Param(jax.random.normal(rngs.params(), (4, 3)))

    def __call__(self, x, t):
        powers = jnp.array(np.array([t**i for i in range(3)])).astype(jnp.float32)
        return jnp.tanh(x @ self.w[...]) @ powers
""",
    call="torch.randn(5, 4), (torch.arange(6) / 6).numpy()",
    wrongs=(
        Wrong("another power", "forward_fp64", "t**i for", "t ** (i + 1) for"),
        Wrong("keeps the first array", "forward_fp64", "t**i for", "(np.arange(t.size) / t.size) ** i for"),
        Wrong("takes the other one to the host", "jits", "jnp.tanh(x @", "jnp.tanh(jnp.asarray(np.asarray(x)) @"),
    ),
)

DAMPED = Pair(
    "damped",
    """
    class M(nn.Module):
        def forward(self, x):
            return torch.tanh(x).sum(-1)
    """,
    """
class M(nnx.Module):
    def __init__(self, *, rngs):
        pass

    def __call__(self, x):
        y = jnp.tanh(x)
        return y.sum(-1)
""",
    call="torch.randn(3, 4)",
    wrongs=(
        Wrong(
            "loses gradients in float32 only",
            "gradients_native",
            "y = jnp.tanh(x)",
            "y = jnp.tanh(x)\n        y = jax.lax.stop_gradient(0.1 * y) + 0.9 * y if y.dtype.itemsize == 4 else y",
            alone=True,
        ),
    ),
)

FORCED = Pair(
    "a weight that a call normalises",
    """
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.randn(3, 4))

        def forward(self, x):
            if self.training:
                with torch.no_grad():
                    self.w.copy_(self.w / self.w.norm(dim=1, keepdim=True))
            return torch.tanh(x @ self.w.T)
    """,
    """
class M(nnx.Module):
    def __init__(self, *, rngs):
        self.w = nnx.Param(jax.random.normal(rngs.params(), (3, 4)))
        self.deterministic = False

    def __call__(self, x):
        old = self.w[...]
        if not self.deterministic:
            new = old / jnp.linalg.norm(old, axis=1, keepdims=True)
            self.w[...] = jax.lax.stop_gradient(new) + (old - jax.lax.stop_gradient(old))
        return jnp.tanh(x @ self.w[...].T)
""",
    call="torch.randn(5, 4)",
    wrongs=(
        Wrong(
            "not kept",
            "buffers",
            "        return jnp.tanh(x @ self.w[...].T)",
            "        new, self.w[...] = self.w[...], old\n        return jnp.tanh(x @ new.T)",
        ),
        Wrong("without its gradient", "gradients_parameters", " + (old - jax.lax.stop_gradient(old))", ""),
    ),
)

ARGUMENTS = Pair(
    "arguments",
    """
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(6, 6)

        def forward(self, x, temperature=1.0, *, power=2, bound=50.0, causal=True):
            y = (torch.tanh(self.fc(x) / temperature) ** power).clamp(max=bound)
            return y.cumsum(0) if causal else y
    """,
    LINEAR
    + """
class M(nnx.Module):
    def __init__(self, *, rngs):
        self.fc = linear(6, 6, rngs)

    def __call__(self, x, temperature=1.0, *, power=2, bound=50.0, causal=True):
        y = (jnp.tanh(self.fc(x) / temperature) ** power).clip(max=bound)
        return jnp.cumsum(y, 0) if causal else y
""",
    call="torch.randn(4, 6), 0.7",
    wrongs=(
        Wrong("the example's temperature", "configurations_fp64", "/ temperature", "/ 0.7", alone=True),
        Wrong("the default power", "configurations_fp64", "** power", "** 2", alone=True),
        Wrong("a bound that nothing reaches", "configurations_fp64", ".clip(max=bound)", "", alone=True),
        Wrong("always causal", "configurations_fp64", "jnp.cumsum(y, 0) if causal else y", "jnp.cumsum(y, 0)", alone=True),
    ),
)

UNTRAINED = Pair(
    "untrained",
    """
    class M(nn.Module):
        def __init__(self, bound=50.0):
            super().__init__()
            self.fc = nn.Linear(6, 6)
            self.bound = bound

        def forward(self, x):
            if self.training:
                raise RuntimeError("for inference alone")
            return torch.tanh(self.fc(x)).clamp(max=self.bound)
    """,
    LINEAR
    + """
class M(nnx.Module):
    def __init__(self, bound=50.0, *, rngs):
        self.fc = linear(6, 6, rngs)
        self.bound = bound

    def __call__(self, x):
        return jnp.tanh(self.fc(x)).clip(max=self.bound)
""",
    call="torch.randn(4, 6)",
    wrongs=(Wrong("a bound that nothing reaches", "configurations_fp64", ".clip(max=self.bound)", "", alone=True),),
)

ALWAYS = Pair(
    "always",
    """
    class M(nn.Module):
        def forward(self, x):
            return F.dropout(x, 0.3) * x
    """,
    """
class M(nnx.Module):
    def __init__(self, *, rngs):
        self.rngs = rngs

    def __call__(self, x):
        return jnp.where(jax.random.bernoulli(self.rngs(), 0.7, x.shape), x / 0.7, 0.0) * x
""",
    call="torch.randn(4, 7)",
    wrongs=(Wrong("never", "dropped_fp64", "jax.random.bernoulli(self.rngs(), 0.7, x.shape)", "x == x"),),
)
"""Drops in evaluation mode too, where torch draws nothing for an empty batch."""

LABELS = Pair(
    "labels",
    """
    class M(nn.Module):
        def forward(self, x, y):
            return F.cross_entropy(x, y, ignore_index=-1)
    """,
    """
class M(nnx.Module):
    def __init__(self, *, rngs):
        pass

    def __call__(self, x, y):
        kept = y != -1
        picked = jnp.take_along_axis(jax.nn.log_softmax(x), jnp.where(kept, y, 0)[:, None], 1)[:, 0]
        return -jnp.where(kept, picked, 0).sum() / kept.sum()
""",
    call="torch.randn(6, 4), torch.tensor([0, 1, 2, 3, 2, 1])",
    wrongs=(Wrong("another label is ignored", "edges_fp64", "y != -1", "y != -100", "the unit itself"),),
)
"""No example has the label that is ignored; the original's code names it."""

AVERAGE = Pair(
    "average",
    """
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.BatchNorm1d(3)

        def forward(self, x):
            return torch.tanh(self.norm(x)).mean(0)
    """,
    """
@jax.custom_vjp
def average(x):
    return x.mean(0)

average.defvjp(lambda x: (x.mean(0), x), lambda x, g: (jnp.broadcast_to(g / x.shape[0], x.shape),))

class BatchNorm(nnx.Module):
    def __init__(self, d):
        self.weight, self.bias = nnx.Param(jnp.ones(d)), nnx.Param(jnp.zeros(d))
        self.running_mean, self.running_var = nnx.BatchStat(jnp.zeros(d)), nnx.BatchStat(jnp.ones(d))
        self.num_batches_tracked = nnx.BatchStat(jnp.zeros((), int))
        self.use_running_average = False

    def __call__(self, x):
        if self.use_running_average:
            mean, var = self.running_mean[...], self.running_var[...]
        else:
            seen = x[:, :]
            mean, var = seen.mean((0, 2)), seen.var((0, 2))
            n = x.shape[0] * x.shape[2]
            self.running_mean[...] = 0.9 * self.running_mean[...] + 0.1 * mean
            self.running_var[...] = 0.9 * self.running_var[...] + 0.1 * var * (n / (n - 1))
            self.num_batches_tracked[...] += 1
        y = (x - mean[:, None]) / jnp.sqrt(var[:, None] + 1e-5)
        return y * self.weight[...][:, None] + self.bias[...][:, None]

class M(nnx.Module):
    def __init__(self, *, rngs):
        self.norm = BatchNorm(3)

    def __call__(self, x):
        return average(jnp.tanh(self.norm(x)))
""",
    call="torch.randn(4, 3, 6)",
    wrongs=(
        Wrong("the example's count in the gradient", "gradients_inputs", "g / x.shape[0]", "g / 4"),
        Wrong("statistics of the example's batch", "shapes_fp64", "seen = x[:, :]", "seen = x[:4]"),
        Wrong("statistics of the example's length", "shapes_fp64", "seen = x[:, :]", "seen = x[:, :, :6]"),
        Wrong("the example's length in the count", "buffers", "x.shape[0] * x.shape[2]", "x.shape[0] * 6", alone=True),
    ),
)
TRAINED = Pair(
    "trained",
    """
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(6, 6)
            self.register_buffer("level", torch.zeros(6), persistent=False)

        def forward(self, x, shift=None):
            y = self.fc(x)
            if self.training:
                self.level = self.level * 0.9 + 0.1 * y.detach().mean(0)
            return y - self.level
    """,
    LINEAR
    + """
class M(nnx.Module):
    def __init__(self, *, rngs):
        self.fc = linear(6, 6, rngs)
        self.level = nnx.Cache(jnp.zeros(6))
        self.deterministic = False

    def __call__(self, x, shift=None):
        y = self.fc(x)
        if not self.deterministic:
            self.level[...] = self.level[...] * 0.9 + 0.1 * jax.lax.stop_gradient(y).mean(0)
        return y - self.level[...]
""",
    call="torch.randn(4, 6)",
    wrongs=(
        Wrong(
            "zero in evaluation mode",
            "second_call",
            "y - self.level[...]",
            "y - (0 if self.deterministic else self.level[...])",
            alone=True,
        ),
    ),
)
MASKED = Pair(
    "masked",
    """
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens = nn.Embedding(12, 6, padding_idx=0)

        def forward(self, ids, mask, labels):
            x = self.tokens(ids)
            scores = x @ x.transpose(1, 2)
            x = scores.masked_fill(~mask[:, None, :], -1e9).softmax(-1) @ x
            return F.cross_entropy(x.flatten(0, 1), labels.flatten(), ignore_index=-100)
    """,
    """
class Tokens(nnx.Module):
    def __init__(self, rngs):
        self.weight = nnx.Param(jax.random.normal(rngs.params(), (12, 6)).at[0].set(0.0))

class M(nnx.Module):
    def __init__(self, *, rngs):
        self.tokens = Tokens(rngs)

    def __call__(self, ids, mask, labels):
        weight = self.tokens.weight[...]
        weight = weight.at[0].set(jax.lax.stop_gradient(weight[0]))
        x = weight[ids]
        scores = x @ jnp.swapaxes(x, 1, 2)
        x = jax.nn.softmax(jnp.where(mask[:, None, :], scores, -1e9), -1) @ x
        logs = jax.nn.log_softmax(x.reshape(-1, 6))
        counts = labels.reshape(-1) != -100
        picked = jnp.take_along_axis(logs, jnp.where(counts, labels.reshape(-1), 0)[:, None], 1)[:, 0]
        return -jnp.where(counts, picked, 0).sum() / counts.sum()
""",
    call="torch.randint(1, 12, (2, 5)), torch.ones(2, 5, dtype=torch.bool), torch.randint(0, 6, (2, 5))",
    wrongs=(
        Wrong("queries left out", "edges_fp64", "mask[:, None, :]", "mask[:, :, None]"),
        Wrong("the row of padding learns", "gradients_edges", "weight.at[0].set(jax.lax.stop_gradient(weight[0]))", "weight", alone=True),
        Wrong("no label is ignored", "edges_fp64", "!= -100", "!= -99"),
        Wrong("ignored labels count", "edges_fp64", "/ counts.sum()", "/ counts.size"),
    ),
)

FUSED = Pair(
    "fused",
    """
    from torch.nn.attention import SDPBackend, sdpa_kernel

    class M(nn.Module):
        def forward(self, q, k, v):
            with sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.MATH]):
                return F.scaled_dot_product_attention(q, k, v)
    """,
    """
class M(nnx.Module):
    def __init__(self, *, rngs):
        pass

    def __call__(self, q, k, v):
        scores = q @ jnp.swapaxes(k, -1, -2) / q.shape[-1] ** 0.5
        return jax.nn.softmax(scores, -1) @ v
""",
    call="torch.randn(2, 3, 5, 6), torch.randn(2, 3, 5, 6), torch.randn(2, 3, 5, 6)",
    wrongs=(Wrong("scaled by the number of keys", "forward_fp64", "q.shape[-1] ** 0.5", "k.shape[-2] ** 0.5"),),
)
"""torch's fused attention reads past the end of values that are fewer than the keys."""

UNREACHED = Pair(
    "unreached",
    """
    class M(nn.Module):
        version = 3

        def forward(self, x):
            return torch.softmax(x, -1)

        def refuse(self, x, k):
            p = self(x)
            p[p < p.topk(k).values[:, -1:]] = 0
            raise ValueError(f"likely are {p}")
    """,
    """
class M(nnx.Module):
    version = 3

    def __init__(self, *, rngs):
        pass

    def __call__(self, x):
        return jax.nn.softmax(x, -1)

    def refuse(self, x, k):
        raise ValueError(f"likely are {jnp.where(self(x) < jax.lax.top_k(self(x), k)[0][:, -1:], 0, self(x))}")
""",
    call="torch.randn(3, 4)",
    wrongs=(
        Wrong(
            "writes into an array where no call comes",
            "leftovers",
            'raise ValueError(f"likely are {jnp.where(self(x) < jax.lax.top_k(self(x), k)[0][:, -1:], 0, self(x))}")',
            'p = self(x)\n        p[p < jax.lax.top_k(p, k)[0][:, -1:]] = 0\n        raise ValueError(f"likely are {p}")',
        ),
        Wrong("a method that arrays lack where no call comes", "leftovers", "0, self(x))", "0, self(x).unsqueeze(0))", alone=True),
        Wrong(
            "a method that no call compares",
            "methods",
            'raise ValueError(f"likely are {jnp.where(self(x) < jax.lax.top_k(self(x), k)[0][:, -1:], 0, self(x))}")',
            'p = self(x)\n        raise ValueError(f"likely are {p}")',
            alone=True,
            status="unverified",
        ),
        Wrong("another value of the class", "class_values", "version = 3", "version = 4", alone=True),
    ),
)

REACH = Pair(
    "reach",
    """
    class M(nn.Module):
        def forward(self, x, table=None):
            if table is not None:
                x = x + table["bias"]
            return torch.tanh(x)
    """,
    """
class M(nnx.Module):
    def __init__(self, *, rngs):
        pass

    def __call__(self, x, table=None):
        if table is not None:
            raise NotImplementedError("this part of M.__call__ was not exercised: add an [[example]] for which `table is not None` holds")
        return jnp.tanh(x)
""",
    call="torch.randn(3, 4)",
    wrongs=(
        Wrong(
            "takes away what no example adds",
            "reach",
            'raise NotImplementedError("this part of M.__call__ was not exercised: add an [[example]] for which `table is not None` holds")',
            'x = x - table["bias"]',
            alone=True,
            status="unverified",
        ),
        Wrong(
            "leaves out what no example adds",
            "reach",
            """        if table is not None:
            raise NotImplementedError("this part of M.__call__ was not exercised: add an [[example]] for which `table is not None` holds")
""",
            "",
            alone=True,
            status="unverified",
        ),
    ),
)

REFUSING = Pair(
    "refusing",
    """
    class M(nn.Module):
        def __init__(self, most=8, kind="sum"):
            super().__init__()
            if kind not in ("sum", "max"):
                raise ValueError(f"unknown kind {kind}")
            self.most, self.kind = most, kind
            self.table = nn.Parameter(torch.randn(most, 3))

        def forward(self, x):
            assert x.shape[1] <= self.most
            x = x + self.table[torch.arange(x.shape[1])]
            return x.sum(1) if self.kind == "sum" else x.amax(1)
    """,
    """
class M(nnx.Module):
    def __init__(self, most=8, kind="sum", *, rngs):
        if kind not in ("sum", "max"):
            raise ValueError(f"unknown kind {kind}")
        self.most, self.kind = most, kind
        self.table = nnx.Param(jax.random.normal(rngs.params(), (most, 3)))

    def __call__(self, x):
        assert x.shape[1] <= self.most
        x = x + self.table[jnp.arange(x.shape[1])]
        return x.sum(1) if self.kind == "sum" else x.max(1)
""",
    call="torch.randn(2, 5, 3)",
    wrongs=(
        Wrong("a length without limit", "refusals", "assert x.shape[1] <= self.most", "pass", alone=True),
        Wrong("an unknown kind taken", "refusals", 'if kind not in ("sum", "max"):', 'if kind == "":', alone=True),
    ),
)

NO_ROWS = Pair(
    "no rows",
    """
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(6, 2)

        def forward(self, x):
            return self.fc(x.flatten(1))
    """,
    """
from nnx_layers_jax import Linear

class M(nnx.Module):
    def __init__(self, *, rngs):
        self.fc = Linear(6, 2, rngs=rngs)

    def __call__(self, x):
        return self.fc(x.reshape(len(x), -1))  # raises where there are none, which a note says
""",
    call="torch.randn(4, 2, 3)",
    extra={"nnx_layers_jax.py": helpers.render({"Linear"})},
    wrongs=(Wrong("an offset", "forward_fp64", "-1))", "-1)) + 1"),),
)

DIVIDED = Pair(
    "divided",
    """
    class M(nn.Module):
        def __init__(self, d, heads):
            super().__init__()
            assert d % heads == 0
            self.heads, self.width = heads, d // heads
            self.scale = nn.Parameter(torch.randn(d))

        def forward(self, x):
            x = (x * self.scale).view(x.size(0), -1, self.heads, self.width)
            return x.softmax(-1).mean(1)
    """,
    """
class M(nnx.Module):
    def __init__(self, d, heads, *, rngs):
        if d % heads:
            raise ValueError("another error")
        self.heads, self.width = heads, d // heads
        self.scale = nnx.Param(jax.random.normal(rngs.params(), (d,)))

    def __call__(self, x):
        x = (x * self.scale[...]).reshape(x.shape[0], -1, self.heads, self.width)
        return jax.nn.softmax(x, -1).mean(1)
""",
    init="8, 2",
    call="torch.randn(2, 5, 8)",
    wrongs=(Wrong("an answer of heads that do not divide, at some lengths", "refusals", "if d % heads:", "if d < heads:", alone=True),),
)

TIED = Pair(
    "tied",
    """
    class M(nn.Module):
        def forward(self, x, weights):
            return x.unflatten(1, weights.shape[1:]).mul(weights[..., None]).mean(2)
    """,
    """
class M(nnx.Module):
    def __init__(self, *, rngs):
        pass

    def __call__(self, x, weights):
        rows, columns = weights.shape[1:]
        return (x.reshape(len(x), rows, columns, x.shape[-1]) * weights[..., None]).mean(2)
""",
    call="torch.randn(2, 12, 5), torch.rand(2, 3, 4)",
    wrongs=(Wrong("four columns", "shapes_fp64", "weights.shape[1:]", "weights.shape[1], 4", alone=True),),
)

HANDED_CACHE = Pair(
    "handed cache",
    """
    class Cache:
        def __init__(self, parts=None):
            self.parts = [] if parts is None else parts
            self.count = 0

        def append(self, part):
            self.parts.append(part)
            self.count += 1

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = nn.Linear(4, 4)

        def forward(self, x, cache):
            y = self.lin(x)
            cache.append(torch.tanh(y))
            return y
    """,
    """
class Cache:
    def __init__(self, parts=None):
        self.parts = [] if parts is None else parts
        self.count = 0

    def append(self, part):
        self.parts.append(part)
        self.count += 1

class M(nnx.Module):
    def __init__(self, *, rngs):
        self.lin = nnx.Linear(4, 4, rngs=rngs, kernel_init=nnx.initializers.uniform(1.0), bias_init=nnx.initializers.uniform(0.5))
        self.lin.kernel[...] = self.lin.kernel[...] - 0.5
        self.lin.bias[...] = 2 * self.lin.bias[...] - 0.5

    def __call__(self, x, cache):
        y = self.lin(x)
        cache.append(jnp.tanh(y))
        return y
""",
    call="torch.randn(3, 4), Cache()",
    wrongs=(
        Wrong("leaves another value in the object", "forward_fp64", "cache.append(jnp.tanh(y))", "cache.append(jnp.tanh(x))"),
        Wrong("leaves nothing in the object", "output_tree", "cache.append(jnp.tanh(y))", "pass"),
        Wrong("counts twice in the object", "forward_fp64", "self.count += 1", "self.count += 2"),
    ),
)

PAIRS = (
    ON_HOST,
    DIVIDED,
    HANDED_CACHE,
    TIED,
    NO_ROWS,
    REACH,
    NORM,
    STREAM,
    DAMPED,
    FORCED,
    ARGUMENTS,
    UNTRAINED,
    ALWAYS,
    LABELS,
    AVERAGE,
    TRAINED,
    MASKED,
    FUSED,
    UNREACHED,
    REFUSING,
)
