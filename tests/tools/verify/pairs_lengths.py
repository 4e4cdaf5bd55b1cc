"""Pairs of a torch module and its mirror, written by hand: what only longer inputs show than the example's."""

from __future__ import annotations

from migrate_agent.tests.tools.verify.harness import Pair, Wrong
from migrate_agent.tests.tools.verify.pairs_layers import LINEAR

FAR = Pair(
    "far",
    """
    class M(nn.Module):
        def __init__(self, window=300):
            super().__init__()
            self.window = window

        def forward(self, x):
            places = torch.arange(x.shape[1])
            apart = places[:, None] - places[None]
            scores = torch.einsum("bid,bjd->bij", x, x).masked_fill((apart < 0) | (apart > self.window), -1e9)
            return scores.softmax(-1) @ x / torch.clamp(places, max=200)[:, None].add(1)
    """,
    """
class M(nnx.Module):
    def __init__(self, window=300, *, rngs):
        self.window = window

    def __call__(self, x):
        places = jnp.arange(x.shape[1])
        apart = places[:, None] - places[None]
        scores = jnp.where((apart < 0) | (apart > self.window), -1e9, jnp.einsum("bid,bjd->bij", x, x))
        return jax.nn.softmax(scores, -1) @ x / (jnp.minimum(places, 200) + 1)[:, None]
""",
    call="torch.randn(2, 5, 3)",
    wrongs=(
        Wrong("the default window", "configurations_fp64", "> self.window", "> 300", alone=True),
        Wrong("a bound that the example does not reach", "shapes_fp64", "jnp.minimum(places, 200)", "places", alone=True),
    ),
)

HASHED = Pair(
    "hashed",
    """
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.letters = nn.Embedding(120, 6)

        def forward(self, ids):
            key = torch.zeros_like(ids[:, 0])
            for letter in ids.unbind(1):
                key = (key * 65537 + letter) % 1000003
            return self.letters(ids).sum(1), key
    """,
    """
class M(nnx.Module):
    def __init__(self, *, rngs):
        self.letters = nnx.Embed(120, 6, embedding_init=jax.nn.initializers.normal(1.0), rngs=rngs)

    def __call__(self, ids):
        key = jnp.zeros_like(ids[:, 0])
        for place in range(ids.shape[1]):
            key = (key * 256 % 1000003 * 256 + key + ids[:, place]) % 1000003
        return self.letters(ids).sum(1), key
""",
    call="torch.randint(0, 40, (3, 2))",
    wrongs=(
        Wrong("more than 32 bits hold", "forward_fp32", "key * 256 % 1000003 * 256 + key", "key * 65537", alone=True),
        Wrong("letters beyond those of the example are one", "edges_fp64", "self.letters(ids)", "self.letters(jnp.minimum(ids, 63))"),
    ),
)

SEGMENTS = Pair(
    "segments",
    """
    class M(nn.Module):
        def __init__(self, d=5):
            super().__init__()
            self.step = nn.Linear(d, d)

        def forward(self, x):
            state = torch.zeros_like(x[:, 0])
            for place in range(x.shape[1]):
                if place % 12 == 11:
                    state = state.detach()
                state = torch.tanh(self.step(state) + x[:, place])
            return state
    """,
    LINEAR
    + """
class M(nnx.Module):
    def __init__(self, d=5, *, rngs):
        self.step = linear(d, d, rngs)

    def __call__(self, x):
        state = jnp.zeros_like(x[:, 0])
        for place in range(x.shape[1]):
            if place % 12 == 11:
                state = jax.lax.stop_gradient(state)
            state = jnp.tanh(self.step(state) + x[:, place])
        return state
""",
    call="torch.randn(2, 4, 5)",
    wrongs=(Wrong("never cut", "gradients_parameters", "place % 12 == 11", "place < 0"),),
)

PICKED = Pair(
    "picked",
    """
    class M(nn.Module):
        def __init__(self, d=6):
            super().__init__()
            self.fc = nn.Linear(d, 7)

        def forward(self, x, labels):
            scores = torch.log_softmax(self.fc(x), -1)
            return scores.gather(-1, labels[:, None])[:, 0] * scores.gather(0, labels[None] % 2)[0, 0]
    """,
    LINEAR
    + """
class M(nnx.Module):
    def __init__(self, d=6, *, rngs):
        self.fc = linear(d, 7, rngs)

    def __call__(self, x, labels):
        scores = jax.nn.log_softmax(self.fc(x), axis=-1)
        first = jnp.take(scores[:, 0], labels[0] % 2)
        return jnp.take_along_axis(scores, labels[:, None], axis=-1)[:, 0] * first
""",
    call="torch.randn(5, 6), torch.randint(0, 5, (5,))",
    wrongs=(
        Wrong("the label before", "forward_fp64", "labels[:, None], axis", "labels[:, None] - 1, axis"),
        Wrong(
            "refuses more labels than rows everywhere",
            "shapes_fp64",
            "        scores = jax",
            "        assert len(x) == len(labels)\n        scores = jax",
        ),
        Wrong(
            "refuses them in JAX's own words",
            "shapes_fp64",
            "        scores = jax",
            "        if len(x) != len(labels):\n"
            "            raise ValueError('Incompatible shapes for broadcasting: (4,) and (5,) at jnp.take_along_axis(x, labels)')\n"
            "        scores = jax",
        ),
    ),
)

PAIRS = (FAR, HASHED, SEGMENTS, PICKED)
