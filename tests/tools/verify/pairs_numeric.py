"""Pairs of a torch module and its mirror, written by hand: narrow dtypes, differences that only a search finds, edges of integers."""

from __future__ import annotations

from migrate_agent.tests.tools.verify.harness import Pair, Wrong
from migrate_agent.tests.tools.verify.pairs_layers import LINEAR

NARROW = Pair(
    "narrow",
    """
    class M(nn.Module):
        def __init__(self, d=256):
            super().__init__()
            self.fc = nn.Linear(d, d).to(torch.bfloat16)

        def forward(self, x):
            h = self.fc(x.to(torch.bfloat16)).float()
            return torch.softmax(h, -1), h.exp().cumsum(-1).to(torch.bfloat16)
    """,
    """
class Linear(nnx.Module):
    def __init__(self, d, rngs):
        bound = 1 / math.sqrt(d)
        draw = lambda shape: jax.random.uniform(rngs.params(), shape, minval=-bound, maxval=bound).astype(jnp.bfloat16)
        self.weight, self.bias = nnx.Param(draw((d, d))), nnx.Param(draw((d,)))

    def __call__(self, x):
        return x @ self.weight[...].T + self.bias[...]

class M(nnx.Module):
    def __init__(self, d=256, *, rngs):
        self.fc = Linear(d, rngs)

    def __call__(self, x):
        h = self.fc(x.astype(jnp.bfloat16)).astype(jnp.float32)
        return jax.nn.softmax(h, axis=-1), jnp.cumsum(jnp.exp(h), axis=-1).astype(jnp.bfloat16)
""",
    call="torch.randn(8, 256)",
    train=False,
    wrongs=(
        Wrong(
            "sums in bfloat16",
            "forward_bf16",
            "jnp.cumsum(jnp.exp(h), axis=-1)",
            "jax.lax.scan(lambda c, v: ((c + v).astype(jnp.bfloat16),) * 2, jnp.zeros(h.shape[:1], jnp.bfloat16), jnp.exp(h).T)[1].T",
        ),
        Wrong("another dtype", "forward_bf16", "axis=-1).astype(jnp.bfloat16)", "axis=-1)", alone=True),
    ),
)

ADAPTING = Pair(
    "adapting",
    """
    class M(nn.Module):
        def __init__(self, wide=True):
            super().__init__()
            self.fc = nn.Linear(6, 4)
            # A tensor without axes widens nothing that has some.
            self.scale = torch.tensor(1.5) if wide else torch.ones(4).float()

        def forward(self, x):
            return torch.tanh(self.fc(x)) * self.scale
    """,
    LINEAR
    + """
class M(nnx.Module):
    def __init__(self, wide=True, *, rngs):
        self.fc = linear(6, 4, rngs)
        self.scale = jnp.array(1.5) if wide else jnp.ones(4)

    def __call__(self, x):
        return jnp.tanh(self.fc(x)) * self.scale
""",
    call="torch.randn(5, 6)",
    wrongs=(Wrong("widens", "narrow_inputs", "jnp.array(1.5)", "jnp.array(1.5, dtype=jnp.float32)", alone=True),),
)
"""A number kept as a tensor, in a file that casts: an array of JAX without a dtype adapts to what it is computed with, as torch's does."""

SELECTED = Pair(
    "selected",
    """
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.centers = nn.Parameter(torch.randn(7, 3))

        def forward(self, x, labels):
            distances = x.pow(2).sum(1, keepdim=True) + self.centers.pow(2).sum(1) - 2 * x @ self.centers.t()
            return (distances * (labels[:, None] == torch.arange(7)).float()).clamp(1e-12, 1e12).sum() / len(x)
    """,
    """
class M(nnx.Module):
    def __init__(self, *, rngs):
        self.centers = nnx.Param(jax.random.normal(rngs.params(), (7, 3)))

    def __call__(self, x, labels):
        distances = (x**2).sum(1, keepdims=True) + (self.centers[...] ** 2).sum(1) - 2 * x @ self.centers[...].T
        chosen = labels[:, None] == jnp.arange(7)
        return jnp.clip(distances * chosen.astype(jnp.float32), 1e-12, 1e12).sum() / len(x)
""",
    call="torch.randn(2, 3), torch.tensor([1, 4])",
    wrongs=(
        Wrong(
            "hides what is not chosen",
            "nonfinite",
            "distances * chosen.astype(jnp.float32)",
            "jnp.where(chosen, distances.astype(jnp.float32), 0.0)",
            alone=True,
        ),
    ),
)
"""Zero times NaN: XLA makes a choice of a product with a mask, so that a right rewrite gives numbers once it is compiled."""

BINNED = Pair(
    "binned",
    """
    class M(nn.Module):
        def forward(self, x):
            return x * 2, (x * 4).long()
    """,
    """
class M(nnx.Module):
    def __init__(self, *, rngs):
        pass

    def __call__(self, x):
        return x * 2, (x * 4).astype(int)
""",
    call="torch.randn(2, 3)",
    wrongs=(Wrong("hides NaN beside an integer", "nonfinite", "return x * 2", "return jnp.where(jnp.isnan(x), 0.0, x) * 2", alone=True),),
)
"""NaN as an integer is up to the machine: what is made of it is not compared, and what stands beside it is."""

BUMP = Pair(
    "bump",
    """
    class M(nn.Module):
        def forward(self, x):
            return F.softplus(x.mean(-1))
    """,
    """
class M(nnx.Module):
    def __init__(self, *, rngs):
        pass

    def __call__(self, x):
        m = x.mean(-1)
        return jnp.logaddexp(m, 0.0)
""",
    call="torch.randn(3, 40)",
    wrongs=(
        Wrong(
            "differs where the inputs' mean is about three",
            "worst_input",
            "return jnp.logaddexp(m, 0.0)",
            "return jnp.logaddexp(m, 0.0) + 1e-8 * jnp.exp(-((m - 3) ** 2) / 0.6)",
            alone=True,
        ),
    ),
)

TIES = Pair(
    "ties",
    """
    class M(nn.Module):
        def forward(self, x, index, keep):
            return x.argmax(0), torch.atan2(x, torch.ones_like(x) * -1), F.one_hot(index, 12).sum(1), x[0][keep.cumsum(0).clamp(max=3)]
    """,
    """
class M(nnx.Module):
    def __init__(self, *, rngs):
        pass

    def __call__(self, x, index, keep):
        return x.argmax(0), jnp.arctan2(x, -1.0), jax.nn.one_hot(index, 12, dtype=int).sum(1), x[0][jnp.clip(keep.astype(int).cumsum(0), max=3)]
""",
    call="torch.randn(4, 5), torch.randint(0, 12, (2, 7)), torch.tensor([True, False, True, True, False])",
    wrongs=(
        Wrong("the last of equal ones", "edges_fp64", "x.argmax(0)", "x.shape[0] - 1 - x[::-1].argmax(0)", alone=True),
        Wrong("the sign of zero", "edges_fp64", "jnp.arctan2(x, -1.0)", "jnp.arctan2(jnp.where(x == 0, 0.0, x), -1.0)", alone=True),
        Wrong("counts no more than three", "edges_fp64", "int).sum(1)", "int).sum(1).clip(max=5)"),
    ),
)

EMPTY = Pair(
    "empty",
    """
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 3)

        def forward(self, x):
            return self.fc(x).sum(0), x.shape[0]
    """,
    LINEAR
    + """
class M(nnx.Module):
    def __init__(self, *, rngs):
        self.fc = linear(4, 3, rngs)

    def __call__(self, x):
        return self.fc(x).sum(0), x.shape[0]
""",
    call="torch.randn(3, 4)",
    wrongs=(
        Wrong("takes no empty batch", "shapes_fp64", "self.fc(x).sum(0)", "self.fc(x[: max(len(x), 1)]).sum(0) + 0 * x[-1].sum()"),
        Wrong("one for nothing", "shapes_fp64", "x.shape[0]", "max(x.shape[0], 1)"),
    ),
)

SUBNORMAL = Pair(
    "subnormal",
    """
    class M(nn.Module):
        def forward(self, x):
            p = (800 * x).softmax(-1)
            return p, (p > 0).to(x.dtype).mean(-1)
    """,
    """
class M(nnx.Module):
    def __init__(self, *, rngs):
        pass

    def __call__(self, x):
        p = jax.nn.softmax(800 * x, axis=-1)
        return p, (p > 0).astype(x.dtype).mean(-1)
""",
    call="torch.linspace(-1, 0, 600).reshape(3, 200) * torch.tensor([[1.0], [1.5], [2.0]])",
    wrongs=(Wrong("counts zeros", "forward_fp64", "(p > 0)", "(p >= 0)"),),
)

SHUT = Pair(
    "shut",
    """
    class M(nn.Module):
        def forward(self, x):
            return torch.sigmoid(-x)
    """,
    """
class M(nnx.Module):
    def __init__(self, *, rngs):
        pass

    def __call__(self, x):
        return 0.5 * (1 + jnp.tanh(-x / 2))
""",
    call="torch.linspace(0.05, 0.3, 12)",
    wrongs=(
        Wrong("a gate that is never all shut", "edges_fp64", "0.5 * (1 + jnp.tanh(-x / 2))", "jnp.maximum(jax.nn.sigmoid(-x), 1e-12)"),
    ),
)

CUT = Pair(
    "cut",
    """
    class M(nn.Module):
        def forward(self, x):
            return F.softplus(x), F.softplus(x / 3, beta=3)
    """,
    """
class M(nnx.Module):
    def __init__(self, *, rngs):
        pass

    def __call__(self, x):
        return jax.nn.softplus(x), jax.nn.softplus(x) / 3
""",
    call="torch.linspace(15, 30, 40)",
    wrongs=(Wrong("cut at 17", "forward_fp64", "return jax.nn.softplus(x),", "return jnp.where(x > 17, x, jax.nn.softplus(x)),"),),
)

STARTS = Pair(
    "starts",
    """
    class M(nn.Module):
        def __init__(self, d=6, still=False, gain=None):
            super().__init__()
            self.fc = nn.Linear(d, d)
            if still:
                nn.init.zeros_(self.fc.weight)
            if gain is not None:
                nn.init.normal_(self.fc.weight, std=gain)

        def forward(self, x):
            return x + self.fc(x)
    """,
    LINEAR
    + """
class M(nnx.Module):
    def __init__(self, d=6, still=False, gain=None, *, rngs):
        self.fc = linear(d, d, rngs)
        if still:
            self.fc.kernel[...] = jnp.zeros((d, d))
        if gain is not None:
            self.fc.kernel[...] = gain * jax.random.normal(rngs.params(), (d, d))

    def __call__(self, x):
        return x + self.fc(x)
""",
    call="torch.randn(5, 6)",
    others=("6, still=True", "6, gain=0.1"),
    wrongs=(
        Wrong("starts still in no example", "initialisation", "if still:", "if False:", place="example 2: fc.weight", alone=True),
        Wrong("other spread in the third", "initialisation", "= gain *", "= 2 * gain *", place="example 3: fc.weight", alone=True),
        Wrong(
            "uniform in the third",
            "initialisation",
            "= gain * jax.random.normal(rngs.params(), (d, d))",
            "= gain * uniform(3**0.5)(rngs.params(), (d, d))",
            place="example 3: fc.weight",
            alone=True,
        ),
    ),
)

SLOW = Pair(
    "slow",
    """
    class M(nn.Module):
        def forward(self, x):
            return 2 * x
    """,
    """
class M(nnx.Module):
    def __init__(self, *, rngs):
        pass

    def __call__(self, x):
        return 2 * x
""",
    call="torch.randn(3, 4)",
    # The wrong step takes about 1,000 times as long as torch's, where both cores are busy 150 times; the right one about as long.
    max_slowdown=20.0,
    wrongs=(
        Wrong(
            "a long loop for nothing",
            "step_time",
            "return 2 * x",
            "seen = jax.lax.fori_loop(0, 20_000_000, lambda i, c: jnp.sin(c), jax.lax.stop_gradient(x.sum()))\n"
            "        return 2 * x + jnp.nan_to_num(jnp.maximum(seen - 2, 0), posinf=0.0)",
            alone=True,
        ),
    ),
)

LARGE = Pair(
    "large",
    """
    class M(nn.Module):
        def forward(self, x):
            return 2 * x
    """,
    """
from jax.experimental import pallas as pl


def double(source, target):
    target[...] = 2 * source[...]


def doubled(x, size):
    rows, columns = x.shape
    wide = jnp.zeros((size, size), x.dtype).at[:rows, :columns].set(x)
    return pl.pallas_call(double, out_shape=jax.ShapeDtypeStruct(wide.shape, wide.dtype))(wide)[:rows, :columns]


@jax.custom_jvp
def kernel(x):
    return jax.lax.platform_dependent(x, tpu=lambda x: doubled(x, 128), default=lambda x: 2 * x)


@kernel.defjvp
def _(primals, tangents):
    return kernel(*primals), 2 * tangents[0]


class M(nnx.Module):
    def __init__(self, *, rngs):
        pass

    def __call__(self, x):
        return kernel(x)
""",
    call="torch.randn(3, 4)",
    topology="v5e:1x1",
    wrongs=(
        Wrong("more than a kernel's memory", "compiles_for_tpu", "(x, 128)", "(x, 8192)", place="refused (vmem) at m_jax.py:", alone=True),
        Wrong(
            "otherwise on a TPU",
            "kernels",
            "= 2 * source[...]",
            "= 2.01 * source[...]",
            place="on a TPU output 0: error 5.0e-03",
            alone=True,
        ),
        Wrong(
            "a kernel that nothing depends on",
            "kernels",
            "return kernel(x)",
            "kernel(x)\n        return 2 * x",
            place="kernels are dead code",
            alone=True,
        ),
    ),
)

MOMENTUM = Pair(
    "momentum",
    """
    import copy

    class M(nn.Module):
        def __init__(self, d=6):
            super().__init__()
            self.online = nn.Linear(d, d)
            self.target = copy.deepcopy(self.online)

        def forward(self, x):
            with torch.no_grad():
                aim = self.target(x)
            return (self.online(x) - aim).pow(2).sum(-1)
    """,
    LINEAR
    + """
class M(nnx.Module):
    def __init__(self, d=6, *, rngs):
        self.online = linear(d, d, rngs)
        self.target = linear(d, d, rngs)
        self.target.kernel[...] = self.online.kernel[...]
        self.target.bias[...] = self.online.bias[...]

    def __call__(self, x):
        aim = jax.lax.stop_gradient(self.target(x))
        return ((self.online(x) - aim) ** 2).sum(-1)
""",
    call="torch.randn(5, 6)",
    wrongs=(
        Wrong(
            "the copy starts elsewhere",
            "initialisation",
            "        self.target.kernel[...] = self.online.kernel[...]\n        self.target.bias[...] = self.online.bias[...]\n",
            "",
            place="start with the same numbers in torch",
            alone=True,
        ),
    ),
)
DOUBLED = Pair(
    "doubled",
    """
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(6, 5)

        def forward(self, x):
            y = self.fc(x)
            return 2 * y if self.training else y
    """,
    LINEAR
    + """
class M(nnx.Module):
    def __init__(self, *, rngs):
        self.fc = linear(6, 5, rngs)
        self.deterministic = False

    def __call__(self, x):
        y = self.fc(x)
        return y if self.deterministic else 2 * y
""",
    call="torch.randn(8, 6)",
    wrongs=(
        Wrong("rounded to float16 in training", "gradients_native", "2 * y", "2 * y.astype(jnp.float16).astype(y.dtype)"),
        Wrong("ten bits of a number of training", "training_native", "2 * y", "y * (2 if y.dtype.itemsize == 8 else 2.0005)", alone=True),
    ),
)

FILE_CONSTANTS = Pair(
    "file-constants",
    """
    EPS = torch.finfo(torch.float).eps
    MEANS = {"first": [torch.tensor([0.485, 0.456])]}

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(6, 2)

        def forward(self, x):
            return torch.log(torch.sigmoid(self.fc(x)) * 1e-6 + EPS) - MEANS["first"][0]
    """,
    LINEAR
    + """
EPS = float(jnp.finfo(jnp.float32).eps)
MEANS = {"first": [jnp.array([0.485, 0.456])]}

class M(nnx.Module):
    def __init__(self, *, rngs):
        self.fc = linear(6, 2, rngs)

    def __call__(self, x):
        return jnp.log(jax.nn.sigmoid(self.fc(x)) * 1e-6 + EPS) - MEANS["first"][0]
""",
    call="torch.randn(5, 6)",
    wrongs=(
        Wrong("eps of a wider dtype", "forward_fp64", "jnp.finfo(jnp.float32)", "jnp.finfo(jnp.float64)"),
        Wrong("another last digit", "forward_fp64", "0.456]", "0.4560001]"),
    ),
)

OVERFLOWING = Pair(
    "overflowing",
    """
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(6, 4)

        def forward(self, x):
            return self.fc(x) * 1e25
    """,
    LINEAR
    + """
class M(nnx.Module):
    def __init__(self, *, rngs):
        self.fc = linear(6, 4, rngs)

    def __call__(self, x):
        return self.fc(x) * 1e25
""",
    call="torch.randn(5, 6)",
    wrongs=(Wrong("rounded to float16 on its way", "forward_fp32", "self.fc(x) *", "self.fc(x).astype(jnp.float16).astype(x.dtype) *"),),
)

PAIRS = (
    OVERFLOWING,
    FILE_CONSTANTS,
    DOUBLED,
    NARROW,
    ADAPTING,
    SELECTED,
    BINNED,
    BUMP,
    TIES,
    EMPTY,
    SUBNORMAL,
    SHUT,
    CUT,
    STARTS,
    SLOW,
    LARGE,
    MOMENTUM,
)
