"""Pairs of a torch module and its mirror, written by hand: attention, a small GPT, random draws, hard conditioning, nested data."""

from __future__ import annotations

from migrate_agent.tests.tools.verify.harness import Pair, Wrong
from migrate_agent.tests.tools.verify.pairs_layers import LINEAR

ATTENTION = Pair(
    "attention",
    """
    class Attention(nn.Module):
        def __init__(self, d, heads):
            super().__init__()
            self.heads = heads
            self.q = nn.Linear(d, d)
            self.k = nn.Linear(d, d)
            self.v = nn.Linear(d, d)
            self.proj = nn.Linear(d, d)
            self.register_buffer("mask", torch.tril(torch.ones(16, 16)))
            self.register_buffer("slopes", torch.arange(1.0, heads + 1) / heads, persistent=False)

        def forward(self, x, keep=None):
            B, T, C = x.shape
            split = lambda t: t.view(B, T, self.heads, C // self.heads).transpose(1, 2)
            q, k, v = split(self.q(x)), split(self.k(x)), split(self.v(x))
            att = q @ k.transpose(-2, -1) / math.sqrt(C // self.heads) * self.slopes[:, None, None]
            att = att.masked_fill(self.mask[:T, :T] == 0, float("-inf"))
            if keep is not None:
                att = att.masked_fill(~keep[:, None, None, :], -1e4)
            return self.proj((att.softmax(-1) @ v).transpose(1, 2).reshape(B, T, C))

    class M(nn.Module):
        def __init__(self, d=8, heads=2):
            super().__init__()
            self.blocks = nn.ModuleList([Attention(d, heads) for _ in range(2)])

        def forward(self, x, keep=None):
            for block in self.blocks:
                x = x + block(x, keep)
            return x
    """,
    LINEAR
    + """
class Attention(nnx.Module):
    def __init__(self, d, heads, *, rngs):
        self.heads = heads
        self.q, self.k, self.v, self.proj = (linear(d, d, rngs) for _ in range(4))
        self.mask = nnx.Variable(jnp.tril(jnp.ones((16, 16))))
        self.slopes = jnp.arange(1.0, heads + 1) / heads

    def __call__(self, x, keep=None):
        B, T, C = x.shape
        split = lambda t: t.reshape(B, T, self.heads, C // self.heads).swapaxes(1, 2)
        q, k, v = split(self.q(x)), split(self.k(x)), split(self.v(x))
        att = q @ k.swapaxes(-2, -1) / math.sqrt(C // self.heads) * self.slopes[:, None, None]
        att = jnp.where(self.mask[...][:T, :T] == 0, -jnp.inf, att)
        if keep is not None:
            att = jnp.where(keep[:, None, None, :], att, -1e4)
        return self.proj((jax.nn.softmax(att, axis=-1) @ v).swapaxes(1, 2).reshape(B, T, C))

class M(nnx.Module):
    def __init__(self, d=8, heads=2, *, rngs):
        self.blocks = nnx.List([Attention(d, heads, rngs=rngs) for _ in range(2)])

    def __call__(self, x, keep=None):
        for block in self.blocks:
            x = x + block(x, keep)
        return x
""",
    call="torch.randn(2, 6, 8), keep=torch.tensor([[True] * 6, [True] * 4 + [False] * 2])",
    wrongs=(
        Wrong("causal mask dropped", "forward_fp64", "att = jnp.where(self.mask[...][:T, :T] == 0, -jnp.inf, att)", "pass", "blocks.0"),
        Wrong("mask off by one", "forward_fp64", "[:T, :T] == 0", "[1:T + 1, :T] == 0", "blocks.0"),
        Wrong("keyword mask dropped", "forward_fp64", "if keep is not None:", "if keep is None:", "blocks.0"),
        Wrong("softmax over a wrong axis of equal size", "forward_fp64", "softmax(att, axis=-1)", "softmax(att, axis=-2)", "blocks.0"),
        Wrong("scaled by the width", "forward_fp64", "math.sqrt(C // self.heads)", "math.sqrt(C)", "blocks.0"),
        Wrong("heads not moved back", "forward_fp64", ".swapaxes(1, 2).reshape(B, T, C)", ".reshape(B, T, C)", "blocks.0"),
    ),
)

GPT = Pair(
    "gpt",
    """
    class Block(nn.Module):
        def __init__(self, d, heads, p):
            super().__init__()
            self.heads, self.p = heads, p
            self.ln_1, self.ln_2 = nn.LayerNorm(d), nn.LayerNorm(d)
            self.attn, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
            self.fc, self.out = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)
            self.drop = nn.Dropout(p)

        def forward(self, x):
            B, T, C = x.shape
            q, k, v = (t.view(B, T, self.heads, -1).transpose(1, 2) for t in self.attn(self.ln_1(x)).split(C, -1))
            y = F.scaled_dot_product_attention(q, k, v, dropout_p=self.p if self.training else 0.0, is_causal=True)
            x = x + self.drop(self.proj(y.transpose(1, 2).reshape(B, T, C)))
            return x + self.drop(self.out(F.gelu(self.fc(self.ln_2(x)))))

    class M(nn.Module):
        def __init__(self, n=2, d=64, heads=4, vocab=128, p=0.1):
            super().__init__()
            self.wte, self.wpe = nn.Embedding(vocab, d), nn.Embedding(64, d)
            self.h = nn.ModuleList([Block(d, heads, p) for _ in range(n)])
            self.ln_f = nn.LayerNorm(d)
            self.head = nn.Linear(d, vocab, bias=False)
            self.head.weight = self.wte.weight

        def forward(self, idx, targets):
            x = self.wte(idx) + self.wpe(torch.arange(idx.size(1)))
            for block in self.h:
                x = block(x)
            logits = self.head(self.ln_f(x))
            return logits, F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))
    """,
    LINEAR
    + """
def norm(d, rngs):
    return nnx.LayerNorm(d, epsilon=1e-5, use_fast_variance=False, rngs=rngs)

class Block(nnx.Module):
    def __init__(self, d, heads, p, *, rngs):
        self.heads, self.p = heads, p
        self.ln_1, self.ln_2 = norm(d, rngs), norm(d, rngs)
        self.attn, self.proj = linear(d, 3 * d, rngs), linear(d, d, rngs)
        self.fc, self.out = linear(d, 4 * d, rngs), linear(4 * d, d, rngs)
        self.drop = nnx.Dropout(p, rngs=rngs)
        self.rngs, self.deterministic = rngs, False

    def __call__(self, x):
        B, T, C = x.shape
        q, k, v = (t.reshape(B, T, self.heads, -1).swapaxes(1, 2) for t in jnp.split(self.attn(self.ln_1(x)), 3, axis=-1))
        att = q @ k.swapaxes(-2, -1) / math.sqrt(C // self.heads)
        att = jax.nn.softmax(jnp.where(jnp.tril(jnp.ones((T, T), bool)), att, -jnp.inf), axis=-1)
        if self.p and not self.deterministic:
            att = jnp.where(jax.random.bernoulli(self.rngs.dropout(), 1 - self.p, att.shape), att / (1 - self.p), 0.0)
        y = att @ v
        x = x + self.drop(self.proj(y.swapaxes(1, 2).reshape(B, T, C)))
        return x + self.drop(self.out(jax.nn.gelu(self.fc(self.ln_2(x)), approximate=False)))

class Head(nnx.Module):
    def __init__(self, weight):
        self.weight = weight

    def __call__(self, x):
        return x @ self.weight[...].T

def embedding(n, d, rngs):
    return nnx.Embed(n, d, embedding_init=nnx.initializers.normal(1.0), rngs=rngs)

class M(nnx.Module):
    def __init__(self, n=2, d=64, heads=4, vocab=128, p=0.1, *, rngs):
        self.wte, self.wpe = embedding(vocab, d, rngs), embedding(64, d, rngs)
        self.h = nnx.List([Block(d, heads, p, rngs=rngs) for _ in range(n)])
        self.ln_f = norm(d, rngs)
        self.head = Head(self.wte.embedding)

    def __call__(self, idx, targets):
        x = self.wte(idx) + self.wpe(jnp.arange(idx.shape[1]))
        for block in self.h:
            x = block(x)
        logits = self.head(self.ln_f(x))
        flat = jax.nn.log_softmax(logits.reshape(-1, logits.shape[-1]), axis=-1)
        return logits, -jnp.take_along_axis(flat, targets.reshape(-1, 1), axis=-1).mean()
""",
    call="torch.randint(0, 128, (2, 32)), torch.randint(0, 128, (2, 32))",
    wrongs=(
        Wrong("epsilon of every norm", "forward_fp64", "epsilon=1e-5", "epsilon=1e-6", "h.0.ln_1"),
        Wrong("tanh GELU", "forward_fp64", "approximate=False", "approximate=True", "h.0"),
        Wrong("attention dropout lost", "training_fp64", "if self.p and not self.deterministic:", "if False:", "h.0"),
        Wrong("positions from the end", "forward_fp64", "jnp.arange(idx.shape[1])", "jnp.arange(idx.shape[1])[::-1]"),
        Wrong(
            "scaled for the recorded shape",
            "forward_fp64",
            "logits = self.head(self.ln_f(x))",
            "logits = self.head(self.ln_f(x)) * (1 + 1e-6 * (idx.shape == (2, 32) and self.h[0].drop.deterministic) * (idx[0, 0] > idx[0, 1]))",
            "the unit itself",
            alone=True,
        ),
        Wrong("summed loss", "forward_fp64", "axis=-1).mean()", "axis=-1).sum()", "the unit itself"),
        Wrong("untied", "gradients_parameters", "x @ self.weight[...].T", "x @ jax.lax.stop_gradient(self.weight[...]).T", alone=True),
    ),
)

RANDOM = Pair(
    "random",
    """
    class M(nn.Module):
        def __init__(self, drop=0.25):
            super().__init__()
            self.drop = drop
            self.scale = nn.Parameter(torch.ones(6))

        def forward(self, x):
            x = x * self.scale
            if self.training:
                keep = torch.rand(x.shape[0], 1) >= self.drop
                x = x * keep / (1 - self.drop) + 0.1 * torch.randn_like(x)
            return x
    """,
    """
class M(nnx.Module):
    def __init__(self, drop=0.25, *, rngs):
        self.drop, self.rngs = drop, rngs
        self.scale = nnx.Param(jnp.ones(6))
        self.deterministic = False

    def __call__(self, x):
        x = x * self.scale[...]
        if not self.deterministic:
            keep = jax.random.uniform(self.rngs(), (x.shape[0], 1)) >= self.drop
            x = x * keep / (1 - self.drop) + 0.1 * jax.random.normal(self.rngs(), x.shape)
        return x
""",
    call="torch.randn(8, 6)",
    wrongs=(
        Wrong("whole numbers for weights", "initialisation", "nnx.Param(jnp.ones(6))", "nnx.Param(jnp.ones(6, int))", alone=True),
        Wrong(
            "rounds what is loaded",
            "round_trip",
            "nnx.Param(jnp.ones(6))",
            "nnx.Param(jnp.ones(6), on_set_value=lambda variable, value: value.round(2))",
            alone=True,
        ),
        Wrong(
            "noise of a fixed key beside a fresh mask",
            "dropout",
            "jax.random.normal(self.rngs(), x.shape)",
            "jax.random.normal(jax.random.key(3), x.shape)",
            alone=True,
        ),
        Wrong("noise of another width", "training_fp64", "0.1 *", "0.2 *", "the unit itself"),
        Wrong(
            "uniform noise, which cannot be paired",
            "randomness",
            "jax.random.normal(self.rngs(), x.shape)",
            "jax.random.uniform(self.rngs(), x.shape)",
            status="unverified",
        ),
    ),
)

HARD = Pair(
    "hard",
    """
    class M(nn.Module):
        def forward(self, x):
            y = x + 1e5
            return (y - y.mean(-1, keepdim=True)) / (y.var(-1, keepdim=True, unbiased=False) + 1e-5).sqrt()
    """,
    """
class M(nnx.Module):
    def __init__(self, *, rngs):
        pass

    def __call__(self, x):
        y = 1e5 + x
        mean = y.sum(-1, keepdims=True) / y.shape[-1]
        var = ((y - mean) ** 2).sum(-1, keepdims=True) / y.shape[-1]
        return (y - mean) * jax.lax.rsqrt(var + 1e-5)
""",
    call="torch.randn(3, 7)",
    wrongs=(Wrong("epsilon", "forward_fp64", "1e-5", "1e-6", "the unit itself"),),
)

NESTED = Pair(
    "nested",
    """
    from dataclasses import dataclass

    @dataclass
    class Out:
        last: torch.Tensor
        parts: dict

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(5, 4, padding_idx=0)
            self.register_buffer("steps", torch.zeros(()))

        def forward(self, batch, scale: float = 1.0):
            x = self.table(batch["ids"]) * batch["weights"][..., None] * scale
            self.steps += 1
            return Out(x[:, -1], {"sum": x.sum(1), "argmax": x.argmax(-1), "positive": [x > 0, x.shape[0]]})
    """,
    """
from dataclasses import dataclass

@dataclass
class Out:
    last: jax.Array
    parts: dict

def table(key, shape, dtype):
    return jax.random.normal(key, shape, dtype).at[0].set(0)

class Embedding(nnx.Embed):
    def __call__(self, ids):
        weight = self.embedding[...]
        return weight.at[0].set(jax.lax.stop_gradient(weight[0]))[ids]

class M(nnx.Module):
    def __init__(self, *, rngs):
        self.table = Embedding(5, 4, embedding_init=table, rngs=rngs)
        self.steps = nnx.Variable(jnp.zeros(()))
        self.deterministic = False

    def __call__(self, batch, scale: float = 1.0):
        x = self.table(batch["ids"]) * batch["weights"][..., None] * scale
        self.steps[...] += 1
        return Out(x[:, -1], {"sum": x.sum(1), "argmax": x.argmax(-1), "positive": [x > 0, x.shape[0]]})
""",
    call='{"ids": torch.tensor([[1, 2, 0], [4, 3, 3]]), "weights": torch.rand(2, 3)}, scale=0.5',
    wrongs=(
        Wrong(
            "gradient into the padding row",
            "gradients_parameters",
            "return weight.at[0].set(jax.lax.stop_gradient(weight[0]))[ids]",
            "return weight[ids]",
            alone=True,
        ),
        Wrong("another key", "output_tree", '{"sum": x', '{"total": x', alone=True),
        Wrong("stale buffer", "buffers", "        self.steps[...] += 1\n", "", alone=True),
        Wrong(
            "empties what it is given",
            "arguments_kept",
            "        self.steps[...] += 1\n",
            "        self.steps[...] += 1\n        batch.clear()\n",
            alone=True,
        ),
        Wrong("argmin in training", "training_fp64", "x.argmax(-1)", "x.argmax(-1) if self.deterministic else x.argmin(-1)", alone=True),
        Wrong("argmin", "forward_fp64", "x.argmax(-1)", "x.argmin(-1)"),
    ),
)
CUMULATIVE = Pair(
    "cumulative",
    """
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 4)
            self.register_buffer("scale", torch.ones(()), persistent=False)

        def forward(self, x):
            y = self.fc(x) * self.scale
            if self.training:
                self.scale = self.scale * 0.9
            return y
    """,
    LINEAR
    + """
class M(nnx.Module):
    def __init__(self, *, rngs):
        self.fc = linear(4, 4, rngs)
        self.scale = nnx.Cache(jnp.ones(()))
        self.deterministic = False

    def __call__(self, x):
        y = self.fc(x) * self.scale[...]
        if not self.deterministic:
            self.scale[...] = self.scale[...] * 0.9
        return y
""",
    call="torch.randn(5, 4)",
    wrongs=(
        Wrong(
            "a hidden state that moves once", "curves_fp64", "self.scale[...] * 0.9", "jnp.maximum(self.scale[...] * 0.9, 0.9)", alone=True
        ),
        Wrong(
            "moves otherwise in float32",
            "curves_fp32",
            "self.scale[...] * 0.9",
            "self.scale[...] * (0.8 if x.dtype.itemsize == 4 else 0.9)",
            alone=True,
        ),
    ),
)
BOUNDED = Pair(
    "bounded",
    """
    class M(nn.Module):
        def __init__(self, d=8):
            super().__init__()
            self.up = nn.Linear(d, min(4 * d, 4096))
            self.down = nn.Linear(min(4 * d, 4096), d)

        def forward(self, x):
            return self.down(torch.tanh(self.up(x)))
    """,
    LINEAR
    + """
class M(nnx.Module):
    def __init__(self, d=8, *, rngs):
        self.up = linear(d, min(4 * d, 4096), rngs)
        self.down = linear(min(4 * d, 4096), d, rngs)

    def __call__(self, x):
        return self.down(jnp.tanh(self.up(x)))
""",
    call="torch.randn(5, 8)",
    init="d=8",
    full="d=100_000",
    wrongs=(Wrong("narrower at full size alone", "full_size", "4096", "2048", alone=True),),
)
"""Its call does not fit its full size, where torch gives no shapes of outputs."""
PAIRS = (ATTENTION, GPT, RANDOM, HARD, NESTED, CUMULATIVE, BOUNDED)
