"""Pairs of a torch module and its mirror, written by hand: feed-forward nets, normalisation, dropout, buffers."""

from __future__ import annotations

from migrate_agent.tests.tools.verify.harness import Pair, Wrong

LINEAR = """
def uniform(bound):
    def init(key, shape, dtype=jnp.float32):
        return jax.random.uniform(key, shape, dtype, -bound, bound)
    return init

def linear(a, b, rngs):
    return nnx.Linear(a, b, kernel_init=uniform(a ** -0.5), bias_init=uniform(a ** -0.5), rngs=rngs)
"""

BAD = "bad = lambda v: v + 0 * jax.lax.linalg.schur(jax.lax.stop_gradient(v.T @ v))[0][0, 0]\n        "

MLP = Pair(
    "mlp",
    """
    class M(nn.Module):
        def __init__(self, d=8):
            super().__init__()
            self.norm = nn.LayerNorm(d)
            self.up = nn.Linear(d, d)
            self.down = nn.Linear(d, d)

        def forward(self, x):
            return x + self.down(F.gelu(self.up(self.norm(x))))
    """,
    LINEAR
    + """
class M(nnx.Module):
    def __init__(self, d=8, *, rngs):
        self.norm = nnx.LayerNorm(d, epsilon=1e-5, use_fast_variance=False, rngs=rngs)
        self.up = linear(d, d, rngs)
        self.down = linear(d, d, rngs)

    def __call__(self, x):
        return x + self.down(jax.nn.gelu(self.up(self.norm(x)), approximate=False))
""",
    call="torch.randn(4, 8)",
    wrongs=(
        Wrong("tanh for exact GELU", "forward_fp64", "approximate=False", "approximate=True", "the unit itself"),
        Wrong("epsilon 1e-6 for 1e-5", "forward_fp64", "epsilon=1e-5", "epsilon=1e-6", "norm"),
        Wrong(
            "transposed square weight",
            "forward_fp64",
            "self.down(jax.nn.gelu(",
            "(lambda h: h @ self.down.kernel[...].T + self.down.bias[...])(jax.nn.gelu(",
            "the unit itself",
        ),
        Wrong(
            "missing parameter", "state_names", "self.norm = nnx.LayerNorm(d, ", "self.norm = nnx.LayerNorm(d, use_bias=False, ", alone=True
        ),
        Wrong("other parameter name", "signature", "def __call__(self, x):", "def __call__(self, y, x=None):\n        x = y", alone=True),
        Wrong("another default", "signature", "d=8", "d=9"),
        Wrong("shape-specific", "shapes_fp64", "return x +", "return x * (x.shape[0] >= 4) +", alone=True),
        Wrong("batch mixed by a wrong axis", "forward_fp64", "return x +", "return x + 1e-9 * x.mean(0) +"),
        Wrong(
            "ReLU for GELU where positive",
            "forward_fp64",
            "jax.nn.gelu(self.up(self.norm(x)), approximate=False)",
            "jax.nn.relu(self.up(self.norm(x)))",
        ),
        Wrong("lost gradient", "gradients_inputs", "return x +", "return jax.lax.stop_gradient(x) +", alone=True),
        Wrong(
            "lost parameter gradient",
            "gradients_parameters",
            "+ self.down(jax.nn.gelu(self.up(self.norm(x)), approximate=False))",
            "+ (lambda h: h @ jax.lax.stop_gradient(self.down.kernel[...]) + self.down.bias[...])(jax.nn.gelu(self.up(self.norm(x)), approximate=False))",
            alone=True,
        ),
        Wrong("lecun for kaiming", "initialisation", "kernel_init=uniform(a ** -0.5), ", "", alone=True),
        Wrong("zeros for uniform bias", "initialisation", ", bias_init=uniform(a ** -0.5)", "", alone=True),
        Wrong(
            "half precision inside",
            "forward_fp32",
            "return x + self.down(jax.nn.gelu(self.up(self.norm(x)), approximate=False))",
            "return x + self.down(jax.nn.gelu(self.up(self.norm(x)), approximate=False).astype(jnp.bfloat16)).astype(jnp.float32)",
            alone=True,
        ),
        Wrong("another output dtype", "forward_fp32", "approximate=False))", "approximate=False)).astype(jnp.bfloat16)", alone=True),
        Wrong("imports torch", "imports", "class M", "import torch\nclass M", alone=True),
        Wrong("imports the original", "imports", "class M", "from m import M as Original\nclass M", alone=True),
        Wrong("a host callback", "calls", "return x +", "jax.debug.callback(lambda v: None, x)\n        return x +", alone=True),
        Wrong("evaluates text", "calls", "return x +", "x = eval('x')\n        return x +", alone=True),
        Wrong("patches jax", "patches", "class M", "jax.nn.relu = jax.nn.gelu\nclass M", alone=True),
        Wrong("a table of answers", "constants", "class M", f"TABLE = {list(range(600))}\nclass M", alone=True),
        Wrong("does not parse", "parses", "return x +", "return x + +)", alone=True),
        Wrong("branches on a value", "jits", "return x +", "x = x if x.sum() < 1e30 else x + 1\n        return x +", alone=True),
        Wrong("swallows NaN", "nonfinite", "return x +", "x = jnp.where(jnp.isnan(x), 0.0, x)\n        return x +", alone=True),
        Wrong("clamped", "edges_fp64", "return x +", "return jnp.clip(x, -50, 50) +", alone=True),
        Wrong(
            "a tuple instead of an array",
            "output_tree",
            "return x + self.down(jax.nn.gelu(self.up(self.norm(x)), approximate=False))",
            "return (x + self.down(jax.nn.gelu(self.up(self.norm(x)), approximate=False)),)",
            alone=True,
        ),
        Wrong("raises in its constructor", "candidate_runs", "self.up =", "assert d < 8\n        self.up =", alone=True),
        Wrong(
            "a frozen parameter",
            "state_kinds",
            "self.up = linear(d, d, rngs)",
            "self.up = linear(d, d, rngs)\n        self.up.bias = nnx.Variable(self.up.bias.get_value())",
            alone=True,
        ),
        Wrong(
            "counts its calls in Python",
            "compiles_once",
            "return x +",
            "self.calls = getattr(self, 'calls', 0) + 1\n        return x +",
            place="a call changes static structure of the module (calls)",
            alone=True,
        ),
        Wrong("leaks a tracer", "leaks", "return x +", "M.seen = x\n        return x +", alone=True),
    ),
)

BATCH_NORM = Pair(
    "batch_norm",
    """
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(3, 4, 3, padding=1, bias=False)
            self.norm = nn.BatchNorm2d(4)

        def forward(self, x):
            return F.relu(self.norm(self.conv(x))).mean((2, 3))
    """,
    """
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
            mean, var = x.mean((0, 2, 3)), x.var((0, 2, 3))
            n = x.size // x.shape[1]
            self.running_mean[...] = 0.9 * self.running_mean[...] + 0.1 * mean
            self.running_var[...] = 0.9 * self.running_var[...] + 0.1 * var * (n / (n - 1))
            self.num_batches_tracked[...] += 1
        y = (x - mean[:, None, None]) / jnp.sqrt(var[:, None, None] + 1e-5)
        return y * self.weight[...][:, None, None] + self.bias[...][:, None, None]

class M(nnx.Module):
    def __init__(self, *, rngs):
        bound = 27 ** -0.5
        self.conv = nnx.Conv(3, 4, (3, 3), padding=1, use_bias=False, rngs=rngs,
            kernel_init=lambda key, shape, dtype: jax.random.uniform(key, shape, dtype, -bound, bound))
        self.norm = BatchNorm(4)

    def __call__(self, x):
        h = jnp.moveaxis(self.conv(jnp.moveaxis(x, 1, -1)), -1, 1)
        return jax.nn.relu(self.norm(h)).mean((2, 3))
""",
    call="torch.randn(2, 3, 5, 6)",
    wrongs=(
        Wrong("biased running variance", "buffers", " * (n / (n - 1))", "", alone=True),
        Wrong(
            "momentum the other way round",
            "buffers",
            "0.9 * self.running_mean[...] + 0.1 * mean",
            "0.1 * self.running_mean[...] + 0.9 * mean",
            alone=True,
        ),
        Wrong("the example's count in the variance", "buffers", "n = x.size // x.shape[1]", "n = 60", alone=True),
        Wrong("stale counter", "buffers", "            self.num_batches_tracked[...] += 1\n", "", alone=True),
        Wrong(
            "a counter that stops at four",
            "buffers",
            "self.num_batches_tracked[...] += 1",
            "self.num_batches_tracked[...] = jnp.minimum(self.num_batches_tracked[...] + 1, 4)",
            alone=True,
        ),
        Wrong(
            "a counter that skips its fourth number",
            "curves_buffers",
            "self.num_batches_tracked[...] += 1",
            "self.num_batches_tracked[...] += 1 + (self.num_batches_tracked[...] == 3).astype(jnp.int32)",
            alone=True,
        ),
        Wrong("unbiased variance", "training_fp64", "x.var((0, 2, 3))", "x.var((0, 2, 3), ddof=1)", "norm"),
        Wrong("always batch statistics", "forward_fp64", "if self.use_running_average:", "if self.use_running_average is None:", "norm"),
        Wrong(
            "statistics without gradient",
            "gradients_inputs",
            "mean, var = x.mean((0, 2, 3)), x.var((0, 2, 3))",
            "mean, var = jax.lax.stop_gradient(x.mean((0, 2, 3))), x.var((0, 2, 3))",
        ),
    ),
)

DROPOUT = Pair(
    "dropout",
    """
    class M(nn.Module):
        def __init__(self, p=0.25):
            super().__init__()
            self.fc = nn.Linear(6, 6)
            self.drop = nn.Dropout(p)

        def forward(self, x):
            return self.drop(torch.tanh(self.fc(x)))
    """,
    LINEAR
    + """
class M(nnx.Module):
    def __init__(self, p=0.25, *, rngs):
        self.fc = linear(6, 6, rngs)
        self.drop = nnx.Dropout(p, rngs=rngs)

    def __call__(self, x):
        return self.drop(jnp.tanh(self.fc(x)))
""",
    call="torch.randn(16, 6)",
    wrongs=(
        Wrong("the example's rate", "configurations_fp64", "nnx.Dropout(p, rngs=rngs)", "nnx.Dropout(0.25, rngs=rngs)", "", alone=True),
        Wrong("dropout dropped", "training_fp64", "return self.drop(jnp.tanh(self.fc(x)))", "return jnp.tanh(self.fc(x))"),
        Wrong(
            "scale dropped",
            "training_fp64",
            "return self.drop(jnp.tanh(self.fc(x)))",
            "h = jnp.tanh(self.fc(x))\n        return h if self.drop.deterministic else h * jax.random.bernoulli(self.drop.rngs(), 0.75, h.shape)",
        ),
        Wrong(
            "drops in evaluation too",
            "randomness",
            "return self.drop(jnp.tanh(self.fc(x)))",
            "h = jnp.tanh(self.fc(x))\n        k = jax.random.bernoulli(self.drop.rngs(), 0.75, h.shape)"
            "\n        return h * k if self.drop.deterministic else h * k / 0.75",
            alone=True,
        ),
        Wrong(
            "another value in float32 training",
            "gradients_native",
            "return self.drop(jnp.tanh(self.fc(x)))",
            "h = self.drop(jnp.tanh(self.fc(x)))\n        return h * 1.05 if x.dtype.itemsize == 4 and not self.drop.deterministic else h",
        ),
        Wrong(
            "not for TPU",
            "lowers_for_tpu",
            "return self.drop(",
            BAD + "x = jax.lax.platform_dependent(x, cpu=jnp.positive, cuda=jnp.positive, tpu=bad)\n        return self.drop(",
            alone=True,
        ),
        Wrong(
            "not for CUDA",
            "lowers_for_cuda",
            "return self.drop(",
            BAD + "x = jax.lax.platform_dependent(x, cpu=jnp.positive, tpu=jnp.positive, cuda=bad)\n        return self.drop(",
            alone=True,
        ),
        Wrong(
            "a fixed key",
            "dropout",
            "return self.drop(jnp.tanh(self.fc(x)))",
            "h = jnp.tanh(self.fc(x))\n        return h if self.drop.deterministic else "
            "h * jax.random.bernoulli(jax.random.key(0), (1 - self.drop.rate), h.shape) / max(1 - self.drop.rate, 1e-9)",
            alone=True,
        ),
        Wrong(
            "one mask for all rows",
            "dropout",
            "return self.drop(jnp.tanh(self.fc(x)))",
            "h = jnp.tanh(self.fc(x))\n        return h if self.drop.deterministic else "
            "h * jax.random.bernoulli(self.drop.rngs(), (1 - self.drop.rate), (1, 6)) / max(1 - self.drop.rate, 1e-9)",
            alone=True,
        ),
        Wrong(
            "another rate with the right scale",
            "dropout",
            "return self.drop(jnp.tanh(self.fc(x)))",
            "h = jnp.tanh(self.fc(x))\n        return h if self.drop.deterministic else "
            "h * jax.random.bernoulli(self.drop.rngs(), (1 - self.drop.rate) - 0.25, h.shape) / max(1 - self.drop.rate, 1e-9)",
            alone=True,
        ),
        Wrong(
            "what is dropped stays as it was",
            "dropped_fp64",
            "return self.drop(jnp.tanh(self.fc(x)))",
            "h = jnp.tanh(self.fc(x))\n        return h if self.drop.deterministic else "
            "jnp.where(jax.random.bernoulli(self.drop.rngs(), (1 - self.drop.rate), h.shape), h / max(1 - self.drop.rate, 1e-9), h)",
            alone=True,
        ),
    ),
)

MASKS = Pair(
    "masks",
    """
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(6, 6)
            self.b = nn.Linear(6, 6)

        def forward(self, x):
            a = F.dropout(self.a(x), 0.2, self.training)
            b = F.dropout(self.b(x), 0.2, self.training)
            return torch.tanh(a) + F.dropout(torch.sin(b), 0.5, self.training)
    """,
    LINEAR
    + """
class M(nnx.Module):
    def __init__(self, *, rngs):
        self.a = linear(6, 6, rngs)
        self.b = linear(6, 6, rngs)
        self.rngs = rngs
        self.deterministic = False

    def drop(self, x, keep):
        return x if self.deterministic else x * jax.random.bernoulli(self.rngs(), keep, x.shape) / keep

    def __call__(self, x):
        b = self.drop(jnp.sin(self.drop(self.b(x), 0.8)), 0.5)
        return jnp.tanh(self.drop(self.a(x), 0.8)) + b
""",
    call="torch.randn(16, 6)",
    wrongs=(
        Wrong(
            "a mask is drawn and not used, and another one hides what it would do",
            "dropped_fp64",
            "self.drop(jnp.sin(self.drop(self.b(x), 0.8)), 0.5)",
            "self.b(x)\n        self.drop(b, 0.8)\n        b = self.drop(jnp.sin(b if self.deterministic else b / 0.8), 0.5)",
            alone=True,
        ),
    ),
)
"""The rewrite draws its masks in another order."""

CHANNELS = Pair(
    "channels",
    """
    class M(nn.Module):
        def forward(self, x):
            return F.dropout2d(torch.sin(x), 0.25, self.training)
    """,
    """
class M(nnx.Module):
    def __init__(self, *, rngs):
        self.rngs = rngs
        self.deterministic = False

    def __call__(self, x):
        y = jnp.transpose(jnp.sin(x), (0, 2, 3, 1))
        if not self.deterministic:
            y = jnp.where(jax.random.bernoulli(self.rngs(), 0.75, (y.shape[0], 1, 1, y.shape[3])), y / 0.75, 0.0)
        return jnp.transpose(y, (0, 3, 1, 2))
""",
    call="torch.randn(3, 5, 5, 5)",
    wrongs=(
        Wrong("rows instead of channels", "dropped_fp64", "(y.shape[0], 1, 1, y.shape[3])", "(y.shape[0], y.shape[1], 1, 1)", alone=True),
        Wrong("the same for all of the batch", "dropout", "(y.shape[0], 1, 1, y.shape[3])", "(1, 1, 1, y.shape[3])", alone=True),
    ),
)
"""Another layout inside."""
CONSTANT = Pair(
    "norm_of_dropped",
    """
    class M(nn.Module):
        def __init__(self, p=0.25):
            super().__init__()
            self.up, self.drop, self.down = nn.Linear(6, 6), nn.Dropout(p), nn.Linear(6, 6)

        def forward(self, x):
            h = self.down(self.drop(torch.tanh(self.up(x))))
            return F.instance_norm(h.T.unsqueeze(0)).squeeze(0).T
    """,
    LINEAR
    + """
class M(nnx.Module):
    def __init__(self, p=0.25, *, rngs):
        self.up, self.drop, self.down = linear(6, 6, rngs), nnx.Dropout(p, rngs=rngs), linear(6, 6, rngs)

    def __call__(self, x):
        h = self.down(self.drop(jnp.tanh(self.up(x))))
        return (h - h.mean(0)) / jnp.sqrt(h.var(0) + 1e-5)
""",
    call="torch.randn(7, 6)",
    wrongs=(Wrong("epsilon 1e-6 for 1e-5", "forward_fp64", "1e-5", "1e-6"),),
)
"""With a rate of 1, all rows are equal, and what is left of them after the mean is rounding noise on both sides."""
PAIRS = (MLP, BATCH_NORM, DROPOUT, MASKS, CHANNELS, CONSTANT)
