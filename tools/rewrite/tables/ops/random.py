"""Random numbers (https://pytorch.org/docs/stable/torch.html#random-sampling). Keys come from the
module's `rngs`.
"""

from __future__ import annotations

from collections.abc import Callable

from migrate_agent.tools.rewrite.tables.ops.calls import Refused, is_kind, is_name, may_be_kind, sequence, spelled
from migrate_agent.tools.rewrite.tables.registry import Call, Op, Template


def _drawn(function: str) -> Template:
    """The template of `rand` and `randn`. JAX has no complex uniform numbers, but the same normal ones."""

    def to(call: Call) -> str:
        # `jax.random.uniform` refuses complex dtypes.
        if function == "uniform" and "complex" in call.text("dtype"):
            return f"vendored.complex_uniform({{rng}}, {sequence(call, 'size')}, {{dtype}})"
        return f"jax.random.{function}({{rng}}, {sequence(call, 'size')}, dtype={{dtype}})"

    return to


def _rand_like(call: Call) -> str:
    fact = call.observed("input")
    dtype = call.text("dtype") if call.given("dtype") else " ".join(fact.dtypes if fact else ())
    plain = _like("jax.random.uniform({rng}, {input}.shape, DTYPE)")(call)
    return plain.replace("jax.random.uniform(", "vendored.complex_uniform(") if "complex" in dtype else plain


def _like(template: str) -> Callable[[Call], str]:
    """The template with `DTYPE` replaced by the dtype of the call, or else of the input."""

    def to(call: Call) -> str:
        explicit = call.given("dtype") and call.literal("dtype") is not None
        return template.replace("DTYPE", "{dtype}" if explicit else "{input}.dtype")

    return to


def _randint(call: Call) -> str:
    """The template of `randint(high, size)` and `randint(low, high, size)`.

    JAX draws integers only; for a float dtype they are cast, as in torch.
    """
    # `randint(high, size)` binds to `low` and `high`: the first positional argument changes its
    # meaning.
    named = call.given("size") and call.given("high")
    size, high = ("{size}", "{high}") if named else ("{size}", "{low}") if call.given("size") else ("{high}", "{low}")
    bounds = f"{'{low}' if named and call.given('low') else '0'}, {high}"
    # `jax.random.randint` raises on a float dtype.
    if "float" in call.text("dtype"):
        return f"jax.random.randint({{rng}}, {size}, {bounds}).astype({{dtype}})"
    return f"jax.random.randint({{rng}}, {size}, {bounds}, dtype={{dtype=int}})"


def _randint_like(call: Call) -> str:
    bounds = "{low}, {high}" if call.given("high") and call.given("low") else "0, {high}" if call.given("high") else "0, {low}"
    dtype = "{dtype}" if call.given("dtype") and call.literal("dtype") is not None else "{input}.dtype"
    return f"vendored.randint_like({{rng}}, {{input}}, {bounds}, dtype={dtype})"


def _normal(call: Call) -> str:
    size = "{size}" if call.given("size") else "None"
    return f"vendored.normal({{rng}}, {{mean=0.0}}, {{std=1.0}}, {size}, dtype={{dtype}})"


def _normal_(call: Call) -> str:
    """The template of `normal_`, without a mean of 0 and a deviation of 1."""
    drawn = "jax.random.normal({rng}, {self}.shape, {self}.dtype)"
    scaled = drawn if not call.given("std") or call.literal("std") == 1 else f"{{std}} * {drawn}"
    return scaled if not call.given("mean") or call.literal("mean") == 0 else f"{{mean}} + {scaled}"


def _uniform_(call: Call) -> str:
    """The template of `uniform_`, without the bounds 0 and 1, which are JAX's defaults."""
    usual = all(not call.given(name) or call.literal(name) == bound for name, bound in (("from_", 0), ("to", 1)))
    return "jax.random.uniform({rng}, {self}.shape, {self}.dtype" + (")" if usual else ", {from_=0}, {to=1})")


def _probability(call: Call) -> str:
    """The placeholder of `p`. JAX takes no integer, as which a rate of 0 or 1 may be written."""
    whole = type(call.literal("p")) is int or (is_kind(call, "p", "int", "float") and may_be_kind(call, "p", "int"))
    return "float({p})" if whole else "{p}"


def _bernoulli_(call: Call) -> str:
    """The template of `bernoulli_`."""
    return f"jax.random.bernoulli({{rng}}, {_probability(call) if call.given('p') else '0.5'}, {{self}}.shape).astype({{self}}.dtype)"


def _bernoulli(call: Call) -> str:
    """The template of `bernoulli`. Only a plain name may stand in it twice."""
    # The template would evaluate an expression twice, and a draw in it would give two results.
    if not is_name(call, "input"):
        return f"vendored.bernoulli({{rng}}, {{input}}, {_probability(call)})" if call.given("p") else "vendored.bernoulli({rng}, {input})"
    return (
        f"jax.random.bernoulli({{rng}}, {_probability(call)}, {{input}}.shape).astype({{input}}.dtype)"
        if call.given("p")
        else "jax.random.bernoulli({rng}, {input}).astype({input}.dtype)"
    )


DRAW = [
    Op("torch.rand", "*size, dtype=None", _drawn("uniform"), draws=True),
    Op("torch.randn", "*size, dtype=None", _drawn("normal"), draws=True),
    Op("torch.rand_like", "input, *, dtype=None", _rand_like, draws=True),
    Op("torch.randn_like", "input, *, dtype=None", _like("jax.random.normal({rng}, {input}.shape, DTYPE)"), draws=True),
    Op("torch.randint", "low=0, high=None, size=None, *, dtype=None", _randint, draws=True),
    Op("torch.randint_like", "input, low=0, high=None, *, dtype=None", _randint_like, draws=True),
    # `permutation` of a number permutes the range below it; the dtype is int, as torch's default.
    Op("torch.randperm", "n, *, dtype=None", "jax.random.permutation({rng}, {n})", draws=True),
    Op("torch.normal", "mean=0.0, std=1.0, size=None, *, dtype=None", _normal, draws=True),
    Op("torch.poisson", "input", "jax.random.poisson({rng}, {input}).astype({input}.dtype)", draws=True),
    *spelled("bernoulli", "input, p=None", _bernoulli, draws=True),
    *spelled(
        "multinomial",
        "input, num_samples, replacement=False",
        "vendored.multinomial({rng}, {input}, {num_samples}, {replacement})",
        draws=True,
    ),
]

IN_PLACE = [
    Op(
        "torch.Tensor.normal_",
        "self, mean=0, std=1",
        _normal_,
        inplace=True,
        draws=True,
    ),
    Op(
        "torch.Tensor.uniform_",
        "self, from_=0, to=1",
        _uniform_,
        spread="jax.random.uniform({rng}, {self}.shape, {self}.dtype, {from_}, {to})",
        inplace=True,
        draws=True,
    ),
    Op(
        "torch.Tensor.exponential_",
        "self, lambd=1",
        # JAX draws at rate 1; a rate is the inverse of the scale.
        "jax.random.exponential({rng}, {self}.shape, {self}.dtype) / {lambd=1}",
        inplace=True,
        draws=True,
    ),
    Op(
        "torch.Tensor.log_normal_",
        "self, mean=1, std=2",
        "jnp.exp({mean=1} + {std=2} * jax.random.normal({rng}, {self}.shape, {self}.dtype))",
        inplace=True,
        draws=True,
    ),
    Op(
        "torch.Tensor.cauchy_",
        "self, median=0, sigma=1",
        "{median=0} + {sigma=1} * jax.random.cauchy({rng}, {self}.shape, {self}.dtype)",
        inplace=True,
        draws=True,
    ),
    Op(
        "torch.Tensor.geometric_",
        "self, p",
        # Drawn as integers: both count the trials, first success included.
        "jax.random.geometric({rng}, {p}, {self}.shape).astype({self}.dtype)",
        inplace=True,
        draws=True,
    ),
    Op(
        "torch.Tensor.bernoulli_",
        "self, p=0.5",
        _bernoulli_,
        inplace=True,
        draws=True,
    ),
    Op("torch.Tensor.random_", "self, from_=0, to=None", Refused("`random_` without bounds depends on the dtype: use `torch.randint`")),
]
