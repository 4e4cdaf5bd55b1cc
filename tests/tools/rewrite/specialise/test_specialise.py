"""Helpers made to measure: what goes, what stays, that they compute what they did, and that no other text is taken for one."""

from __future__ import annotations

import ast
import linecache
import sys
import types
from collections.abc import Iterator
from typing import Any

import jax
import pytest
from torch.testing._internal.common_modules import ModuleInfo

from migrate_agent.tests.sampling import one_in
from migrate_agent.tests.tools.vendored import modules
from migrate_agent.tests.tools.vendored.exclusions import EXCLUDED
from migrate_agent.tools.rewrite.assemble.formatting import format_python
from migrate_agent.tools.rewrite.specialise import render_specialised
from migrate_agent.tools.rewrite.specialise.derive import derive
from migrate_agent.tools.rewrite.specialise.signatures import provider, signature
from migrate_agent.tools.rewrite.specialise.usage import Usage
from migrate_agent.tools.rewrite.tables.helpers import file_text, rngs_of, symbols, with_texts
from migrate_agent.tools.verify.evidence.copied_helpers import is_specialised

TABLE = [
    ("gelu(x)", "gelu", ["jax.nn.gelu(promote_half(input), approximate=False)"], ["approximate: str"]),
    ("gelu(x, mode)", "gelu", ["approximate: str"], []),
    ("gelu(x, *rest)", "gelu", ["approximate: str"], []),
    ("apply(gelu)", "gelu", ["approximate: str"], []),
    ("nnx_layers.gelu(x)", "gelu", ["approximate: str"], []),
    ("embedding(x, w)", "embedding", ["return rows"], ["padding_idx", "max_norm", "renormalised", "scale_grad_by_freq"]),
    ("embedding(x, w, padding_idx=0)", "embedding", ["padding_idx", "is_padding"], ["max_norm"]),
    ("Embedding(4, 3, rngs=rngs)", "Embedding", ["embedding(input, weight)"], ["max_norm", "cast_parameters", "padding_idx", "_fill"]),
    ("Embedding(4, 3, rngs=rngs).padding_idx", "Embedding", ["self.padding_idx"], ["max_norm"]),
    ("Linear(4, 3, rngs=rngs)", "Linear", ["use_bias=True"], ["device", "cast_parameters", "bias: bool"]),
    ("Linear(4, 3, rngs=rngs)", "Linear", ["self.kernel[...].T"], ["def weight", "tied", "replace_value"]),
    ("Linear(4, 3, rngs=rngs).weight", "Linear", ["def weight", "tied"], []),
    ("a.weight = b; Conv2d(1, 2, 3, rngs=rngs)", "Conv2d", ["def weight", "assign_kernel"], []),
    ("Conv2d(1, 2, 3, rngs=rngs)", "Conv2d", ["channels_first(self.kernel[...])"], ["def weight", "assign_kernel", "def pad("]),
    ("BatchNorm2d(4, rngs=rngs).running_var", "BatchNorm2d", ["def running_var"], ["def running_mean", "def weight"]),
    ("class Mine(Linear): pass", "Linear", ["bias: bool = True", "device: Any"], []),
    ("cross_entropy(x, y)", "cross_entropy", ["nll_loss"], ["size_average", "legacy_reduction", "reduce:"]),
    ("cross_entropy(x, y, reduce=False)", "cross_entropy", ["reduce:", "legacy_reduction"], []),
    ("topk(x, 2)", "topk", ["jnp.argsort(a, d, descending=True)", "-1"], ["largest", "keepdim"]),
    (
        "scaled_dot_product_attention(q, k, v)",
        "scaled_dot_product_attention",
        ["scale = 1 / math"],
        ["attn_mask", "gqa", "scale is None", "scale:"],
    ),
    ("pad(x, (1, 1))", "pad", ["lax.pad("], ["padded_index", "mode", "value"]),
    ("pad(x, (1, 1), mode)", "pad", ["padded_index"], ["value"]),
    ("remove_weight_norm(m)", "remove_weight_norm", ['delattr(module, f"weight_{suffix}")'], ["{'weight'"]),
    ("BatchNorm2d(4, rngs=rngs)", "BatchNorm2d", ["use_scale=True"], ["track_running_stats", "affine"]),
]
"""(What the tree says, helper, what its file then has, what it has not)."""


@pytest.mark.parametrize(("user", "name", "there", "gone"), TABLE, ids=[f"{row[0]} {row[2][0]}" for row in TABLE])
def test_what_no_call_passes_goes(user: str, name: str, there: list[str], gone: list[str]) -> None:
    text = format_python({"f.py": render_specialised([name], [user])})["f.py"]
    code = "\n".join(line for line in text.splitlines() if "https://" not in line)
    assert [part for part in there if part not in code] == []
    assert [part for part in gone if part in code] == []
    assert all(is_specialised(each, text) for each in _defined(text))


def test_helpers_that_texts_of_examples_call_keep_all_parameters() -> None:
    assert "approximate: str" in render_specialised(["gelu"], ["gelu(x)"], fixed={"gelu"})


CHANGES = [
    ("rows = jnp.take(weight, input, axis=0)", "rows = jnp.take(weight, input, axis=-1)"),
    ("return rows", "return rows * 1.0"),
    ("def embedding(input", "def embedding(input, weight_2=None, *, input_2"),
]


@pytest.mark.parametrize(("old", "new"), CHANGES)
def test_a_changed_helper_is_not_taken_for_the_projects_own(old: str, new: str) -> None:
    text = format_python({"f.py": render_specialised(["embedding"], ["embedding(x, w)"])})["f.py"]
    assert old in text and is_specialised("embedding", text)
    assert not is_specialised("embedding", text.replace(old, new))


CALLED = sorted(name for name in symbols() if provider(name))


@pytest.mark.parametrize("start", one_in(40, ((str(start), start) for start in range(40))))
def test_helpers_with_what_they_must_be_given_are_a_file_that_runs(start: int) -> None:
    names = CALLED[start::40]
    calls = [f"{name}({', '.join(['x'] * _required(name))})" for name in names]
    text = format_python({"f.py": render_specialised(names, calls)})["f.py"]
    _run(text)
    assert [name for name in _defined(text) if not is_specialised(name, text)] == []


def _required(name: str) -> int:
    known = signature(provider(name))
    if name == "clamp":
        return 2  # torch refuses a clamp without a bound
    return len([parameter for parameter in known.positional if parameter not in known.defaults])


def _defined(text: str) -> list[str]:
    return [node.name for node in ast.parse(text).body if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name in symbols()]


def _run(text: str) -> dict[str, Any]:
    name = f"helpers_{abs(hash(text))}"
    # Dataclasses look their module up, and what is compiled looks up its lines.
    linecache.cache[f"<{name}>"] = (len(text), None, text.splitlines(True), f"<{name}>")
    module = sys.modules[name] = types.ModuleType(name)
    exec(compile(text, f"<{name}>", "exec"), vars(module))
    return vars(module)


@pytest.fixture
def exact() -> Iterator[None]:
    before = jax.config.read("jax_disable_most_optimizations")  # type: ignore[no-untyped-call]
    jax.config.update("jax_disable_most_optimizations", True)  # type: ignore[no-untyped-call]
    with jax.enable_x64(True):
        yield
    jax.config.update("jax_disable_most_optimizations", before)  # type: ignore[no-untyped-call]


def _layers() -> Iterator[tuple[str, ModuleInfo]]:
    for info in modules.infos():
        name = info.module_cls.__name__
        if name not in EXCLUDED and provider(name):
            yield name, info


@pytest.mark.filterwarnings("ignore")  # torch's, about its own arguments: they are tested elsewhere
@pytest.mark.usefixtures("exact")
@pytest.mark.parametrize("info", one_in(40, _layers()))
def test_a_layer_made_to_measure_is_as_torchs(info: ModuleInfo, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each input of `module_db`, with the parameters that it passes and no other."""
    name = info.module_cls.__name__
    whole = modules.layer_classes()
    for case in modules.spread(list(modules.cases(info)), 6):
        arguments = case.sample.constructor_input
        words = [word for word in arguments.kwargs if word not in ("device", "dtype")]
        given = {*signature(provider(name)).positional[: len(arguments.args)], *words, "rngs"}
        usage = Usage({name}, {provider(name)}, {provider(name): given})
        made = _run(file_text(with_texts(derive(usage))))[name]
        monkeypatch.setattr(modules, "layer_classes", lambda made=made: {**whole, name: made})
        modules.compare(case)


def test_what_takes_rngs_still_does() -> None:
    text = render_specialised(["Linear", "Dropout"], ["Linear(1, 2, rngs=rngs)", "Dropout(0.1, rngs=rngs)"])
    assert rngs_of("Linear") == "required" and text.count("rngs: nnx.Rngs") >= 2
