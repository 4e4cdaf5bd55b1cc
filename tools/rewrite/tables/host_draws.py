"""Random numbers of Python (https://docs.python.org/3/library/random.html) and NumPy (https://numpy.org/doc/stable/reference/random/legacy.html)
in code that runs while a module is called: rows as for torch's own, which apply there only.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from migrate_agent.tools.rewrite.tables.ops.calls import is_kind, written_elements
from migrate_agent.tools.rewrite.tables.registry import UNKNOWN, Call, Op, Refuse, Template

NUMBERS = ("int", "float", "bool")


def _size(call: Call) -> str:
    """The shape that the argument `size` asks for, as a tuple; "()" where there is none."""
    if not call.given("size") or call.literal("size") is None:
        return "()"
    if isinstance(value := call.literal("size"), int) or (value is UNKNOWN and is_kind(call, "size", "int")):
        return "({size},)"
    if written_elements(call, "size") is not None or is_kind(call, "size", "tuple", "list", "size"):
        return "{size}"
    raise Refuse("whether `size` is a number or a tuple is unknown: write the tuple", "randomness")


def _parameters(call: Call, *names: str) -> None:
    """Raises `Refuse` where a parameter of the distribution may be an array, with whose shape the numbers would be drawn."""
    for name in names:
        number = isinstance(call.literal(name), (int, float)) or is_kind(call, name, *NUMBERS)
        scalar = (fact := call.observed(name)) is not None and bool(fact.shapes) and not any(fact.shapes)
        if call.given(name) and not (number or scalar):
            raise Refuse(f"`{name}` may be an array, and one number would be drawn for each of its elements", "randomness")


def _standard(function: str) -> Template:
    def to(call: Call) -> str:
        size = _size(call)
        return f"jax.random.{function}({{rng}})" if size == "()" else f"jax.random.{function}({{rng}}, {size})"

    return to


def _spread(function: str) -> Template:
    def to(call: Call) -> str:
        return f"jax.random.{function}({{rng}}, {{size}})" if call.count("size") else f"jax.random.{function}({{rng}})"

    return to


def _bounded(low: str, high: str) -> Template:
    """The template of `uniform`, without the bounds 0 and 1, which are JAX's defaults."""

    def to(call: Call) -> str:
        _parameters(call, low, high)
        size = _size(call) if call.given("size") else "()"
        shape = "" if size == "()" else f", {size}"
        if all(not call.given(name) or call.literal(name) == bound for name, bound in ((low, 0), (high, 1))):
            return f"jax.random.uniform({{rng}}{shape})"
        return f"jax.random.uniform({{rng}}{shape}, minval={{{low}=0.0}}, maxval={{{high}=1.0}})"

    return to


def _normal(mean: str, deviation: str) -> Template:
    """The template of `normal` and `gauss`, without a mean of 0 and a deviation of 1."""

    def to(call: Call) -> str:
        _parameters(call, mean, deviation)
        size = _size(call) if call.given("size") else "()"
        drawn = "jax.random.normal({rng})" if size == "()" else f"jax.random.normal({{rng}}, {size})"
        if call.given(deviation) and call.literal(deviation) != 1:
            drawn = f"{{{deviation}}} * {drawn}"
        return f"{{{mean}}} + {drawn}" if call.given(mean) and call.literal(mean) != 0 else drawn

    return to


def _integers(call: Call) -> str:
    """NumPy's `randint(high)` and `randint(low, high)`, the upper bound left out."""
    _parameters(call, "low", "high")
    two = call.given("high") and call.literal("high") is not None
    return f"jax.random.randint({{rng}}, {_size(call)}, {'{low}, {high}' if two else '0, {low}'})"


def _randint(call: Call) -> str:
    """Python's `randint(a, b)`, the upper bound taken in."""
    try:
        bound = ast.parse(call.text("b"), mode="eval").body
    except SyntaxError:
        bound = None
    match bound:
        case ast.Constant(value=int() as most):
            end = str(most + 1)
        case ast.BinOp(left=left, op=ast.Sub(), right=ast.Constant(value=int() as less)) if less > 0:
            end = f"{ast.unparse(left)} - {less - 1}" if less > 1 else ast.unparse(left)
        case ast.BinOp(op=ast.Add() | ast.Sub()):
            end = f"{ast.unparse(bound)} + 1"
        case _:
            end = "{b} + 1"
    return f"jax.random.randint({{rng}}, (), {{a}}, {end})"


def _randrange(call: Call) -> str:
    if call.given("step"):
        raise Refuse("`randrange` with a step: draw the number of the step, and scale it", "randomness")
    two = call.given("stop") and call.literal("stop") is not None
    return f"jax.random.randint({{rng}}, (), {'{start}, {stop}' if two else '0, {start}'})"


def _binomial(call: Call) -> str:
    if call.literal("n") != 1:
        raise Refuse("`binomial` of more than one trial: the numbers of both sides cannot be paired", "randomness")
    _parameters(call, "p")
    return f"jax.random.bernoulli({{rng}}, {{p}}, {_size(call)}).astype(int)"


def _permutation(call: Call) -> str:
    if is_kind(call, "x", "list", "tuple"):
        return "jax.random.permutation({rng}, jnp.array({x}))"
    return "jax.random.permutation({rng}, {x})"


def _are_numbers(call: Call, name: str) -> bool:
    values = call.literal(name)
    if isinstance(values, (list, tuple)):
        return bool(values) and all(isinstance(value, (int, float)) for value in values)
    each = call.each(name)
    return bool(each) and all(fact is not None and fact.kinds and set(fact.kinds) <= {"int", "float"} for fact in each)


UNCHOSEN = "a choice among values that are no numbers: an array cannot hold them, so branch on a drawn index with `jax.lax.switch`"


def _choice(call: Call) -> str:
    """Python's `choice(seq)` of numbers that are written out."""
    if not _are_numbers(call, "seq"):
        raise Refuse(UNCHOSEN, "randomness")
    return "jax.random.choice({rng}, jnp.array({seq}))"


def _several(call: Call, name: str, count: str, options: str = "") -> str:
    """Python's `sample` and `choices` of a range or of numbers that are written out: an array of them."""
    pool = ast.parse(call.text(name), mode="eval").body
    match pool:
        case ast.Call(func=ast.Name("range"), args=[stop], keywords=[]):
            numbers = ast.unparse(stop)
        case ast.Call(func=ast.Name("range"), args=args, keywords=[]):
            numbers = f"jnp.arange({', '.join(map(ast.unparse, args))})"
        case _ if _are_numbers(call, name):
            numbers = f"jnp.array({{{name}}})"
        case _:
            raise Refuse(UNCHOSEN, "randomness")
    return f"jax.random.choice({{rng}}, {numbers}, ({count},){options})"


def _sample(call: Call) -> str:
    if call.given("counts"):
        raise Refuse("`sample` with counts: the numbers of both sides cannot be paired", "randomness")
    return _several(call, "population", "{k}", ", replace=False")


def _choices(call: Call) -> str:
    if call.given("weights") or call.given("cum_weights"):
        raise Refuse("`choices` with weights: the numbers of both sides cannot be paired", "randomness")
    return _several(call, "population", "{k=1}")


def _numpy_choice(call: Call) -> str:
    if call.given("p") and call.literal("p") is not None:
        raise Refuse("`choice` with weights: the numbers of both sides cannot be paired", "randomness")
    pool = "{a}" if isinstance(call.literal("a"), int) or is_kind(call, "a", "int") else "jnp.array({a})"
    if pool != "{a}" and not _are_numbers(call, "a"):
        raise Refuse(UNCHOSEN, "randomness")
    size = _size(call)
    extra = "" if size == "()" and not call.given("replace") else f", {size}"
    return f"jax.random.choice({{rng}}, {pool}{extra}" + (", replace={replace})" if call.given("replace") else ")")


def _beta(first: str, second: str) -> Template:
    def to(call: Call) -> str:
        _parameters(call, first, second)
        size = _size(call) if call.given("size") else "()"
        return f"jax.random.beta({{rng}}, {{{first}}}, {{{second}}}" + (")" if size == "()" else f", {size})")

    return to


def _exponential(call: Call) -> str:
    _parameters(call, "scale")
    drawn = "jax.random.exponential({rng})" if (size := _size(call)) == "()" else f"jax.random.exponential({{rng}}, {size})"
    return f"{{scale}} * {drawn}" if call.given("scale") and call.literal("scale") != 1 else drawn


def _unpaired(function: str) -> Callable[[Call], str]:
    def to(call: Call) -> str:
        raise Refuse(
            f"`{function}` draws on the host, where `jit` fixes the numbers: draw with `jax.random` and a key of `self.rngs`", "randomness"
        )

    return to


def _op(name: str, signature: str, to: Template) -> Op:
    return Op(name, signature, to, draws=True)


UNPAIRED: Mapping[str, str] = {
    "random": "shuffle triangular lognormvariate vonmisesvariate gammavariate paretovariate weibullvariate getrandbits randbytes",
    "numpy.random": """shuffle gamma dirichlet poisson multinomial multivariate_normal laplace logistic lognormal geometric gumbel chisquare
        standard_exponential standard_gamma standard_cauchy standard_t triangular power rayleigh vonmises wald weibull zipf random_integers
        negative_binomial hypergeometric logseries f pareto noncentral_chisquare noncentral_f ranf sample bytes""",
}
"""Functions that draw and have no counterpart whose numbers can be paired."""
DRAWS = [
    _op("random.random", "", "jax.random.uniform({rng})"),
    _op("random.uniform", "a, b", _bounded("a", "b")),
    _op("random.randint", "a, b", _randint),
    _op("random.randrange", "start, stop=None, step=1", _randrange),
    _op("random.gauss", "mu=0.0, sigma=1.0", _normal("mu", "sigma")),
    _op("random.normalvariate", "mu=0.0, sigma=1.0", _normal("mu", "sigma")),
    _op("random.expovariate", "lambd=1.0", "jax.random.exponential({rng}) / {lambd=1.0}"),
    _op("random.betavariate", "alpha, beta", _beta("alpha", "beta")),
    _op("random.choice", "seq", _choice),
    _op("random.sample", "population, k, counts=None", _sample),
    _op("random.choices", "population, weights=None, cum_weights=None, k=1", _choices),
    *(_op(f"numpy.random.{name}", "size=None", _standard("uniform")) for name in ("random", "random_sample")),
    _op("numpy.random.rand", "*size", _spread("uniform")),
    _op("numpy.random.randn", "*size", _spread("normal")),
    _op("numpy.random.standard_normal", "size=None", _standard("normal")),
    _op("numpy.random.uniform", "low=0.0, high=1.0, size=None", _bounded("low", "high")),
    _op("numpy.random.normal", "loc=0.0, scale=1.0, size=None", _normal("loc", "scale")),
    _op("numpy.random.exponential", "scale=1.0, size=None", _exponential),
    _op("numpy.random.randint", "low, high=None, size=None", _integers),
    _op("numpy.random.permutation", "x", _permutation),
    _op("numpy.random.binomial", "n, p, size=None", _binomial),
    _op("numpy.random.beta", "a, b, size=None", _beta("a", "b")),
    _op("numpy.random.choice", "a, size=None, replace=True, p=None", _numpy_choice),
    *(
        _op(f"{module}.{name}", "*args, **kwargs", _unpaired(f"{module}.{name}"))
        for module, names in UNPAIRED.items()
        for name in names.split()
    ),
]
HOST_DRAWS: Mapping[str, Op] = {row.name: row for row in DRAWS}
"""Dotted name → row."""
