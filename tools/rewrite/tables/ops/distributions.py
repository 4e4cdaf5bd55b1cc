"""Probability distributions (https://docs.pytorch.org/docs/stable/distributions.html): classes that
draw from the `rngs` at hand.
"""

from __future__ import annotations

from migrate_agent.tools.rewrite.tables.registry import Call, Op, Refuse

LOCATED = "loc, scale, validate_args=None"
EITHER = "probs=None, logits=None, validate_args=None"
SIGNATURES = {
    "normal.Normal": LOCATED,
    "log_normal.LogNormal": LOCATED,
    "laplace.Laplace": LOCATED,
    "gumbel.Gumbel": LOCATED,
    "uniform.Uniform": "low, high, validate_args=None",
    "exponential.Exponential": "rate, validate_args=None",
    "poisson.Poisson": "rate, validate_args=None",
    "bernoulli.Bernoulli": EITHER,
    "categorical.Categorical": EITHER,
    "one_hot_categorical.OneHotCategorical": EITHER,
    "one_hot_categorical.OneHotCategoricalStraightThrough": EITHER,
    "gamma.Gamma": "concentration, rate, validate_args=None",
    "beta.Beta": "concentration1, concentration0, validate_args=None",
    "dirichlet.Dirichlet": "concentration, validate_args=None",
    "independent.Independent": "base_distribution, reinterpreted_batch_ndims, validate_args=None",
    "multivariate_normal.MultivariateNormal": ("loc, covariance_matrix=None, precision_matrix=None, scale_tril=None, validate_args=None"),
    "lowrank_multivariate_normal.LowRankMultivariateNormal": "loc, cov_factor, cov_diag, validate_args=None",
}
"""Module and class → torch's parameters, which the vendored class has too. Arguments cannot be
validated while a function is traced.
"""


def _row(path: str, signature: str) -> Op:
    name = path.partition(".")[2]
    dotted, names = f"torch.distributions.{name}", [part.partition("=")[0].strip() for part in signature.split(",")]
    defaults = {part.partition("=")[0].strip() for part in signature.split(",") if "=" in part}
    keywords = ", ".join(f"{name}={{{name}}}" if name in defaults else f"{{{name}}}" for name in names if name != "validate_args")
    return Op(dotted, signature, f"vendored.{name}({keywords})", aliases=(f"torch.distributions.{path}",), returns=f"object:{dotted}")


def _divergence(call: Call) -> str:
    """The template of a divergence. Refused for two distributions of different classes."""
    kinds = [fact.kinds for name in ("p", "q") if (fact := call.observed(name))]
    # Torch dispatches on pairs of classes; the vendored table holds pairs of one class only.
    if len(kinds) == 2 and not set(kinds[0]) & set(kinds[1]):
        raise Refuse(f"the divergence between {kinds[0][0]} and {kinds[1][0]}")
    return "vendored.kl_divergence({p}, {q})"


DISTRIBUTIONS = [_row(path, signature) for path, signature in SIGNATURES.items()]
DIVERGENCE = Op("torch.distributions.kl_divergence", "p, q", _divergence, aliases=("torch.distributions.kl.kl_divergence",))
