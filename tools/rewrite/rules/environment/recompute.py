"""Backward passes that compute again what they need: the same random numbers, and gradients by running a part of the module once more."""

from __future__ import annotations

import ast

import libcst as cst

from migrate_agent.tools.rewrite.analysis.facts import span_of
from migrate_agent.tools.rewrite.rules.calls.torch_references import FUNCTION_BASES
from migrate_agent.tools.rewrite.rules.context import Context
from migrate_agent.tools.rewrite.rules.rule import Rule

STATES = {
    **dict.fromkeys(["torch.get_rng_state", "torch.random.get_rng_state"], "rng_state"),
    **dict.fromkeys(["torch.set_rng_state", "torch.random.set_rng_state"], "set_rng_state"),
    **dict.fromkeys(["torch.fork_rng", "torch.random.fork_rng"], "fork_rng"),
}
"""Function of torch's one generator → the vendored function of the random streams of a module."""


class KeepRandomStates(Rule):
    """Save and restore random states: `torch.get_rng_state()` in a method of a module → `rng_state(self)`.

    The state is how far the streams of the module and its parts have come. `set_rng_state` and `with
    fork_rng():` likewise. Declines outside of methods of modules: JAX has no global generator.
    """

    KEEP = ("def f(generator):\n    return generator.get_rng_state()\n",)
    CHANGE = (
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def forward(self, x, state):\n"
            "        with torch.random.fork_rng(devices=[], enabled=True):\n            torch.set_rng_state(state)\n"
            "            return x, torch.get_rng_state()\n",
            "class M(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        pass\n\n    def __call__(self, x, state):\n"
            "        with fork_rng(self):\n            set_rng_state(self, state)\n            return x, rng_state(self)\n",
        ),
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self, net):\n        super().__init__()\n"
            "        self.net = net\n        self.state = None\n\n    def forward(self, x):\n        self.state = torch.get_rng_state()\n"
            "        return self.net(x)\n",
            "class M(nnx.Module):\n    def __init__(self, net, *, rngs: nnx.Rngs):\n        self.net = net\n"
            "        self.state = nnx.data(rng_state(self))\n\n    def __call__(self, x):\n        self.state = rng_state(self)\n"
            "        return self.net(x)\n",
        ),
    )

    def leave_Assign(self, original: cst.Assign, updated: cst.Assign) -> cst.Assign | None:
        """`self.state = None` in the constructor, for what calls put a state into: it holds one from the start, as `jax.jit` wants it."""
        context = self.context
        match original:
            case cst.Assign(
                targets=[cst.AssignTarget(target=cst.Attribute(value=owner, attr=cst.Name(value=name)))], value=cst.Name(value="None")
            ) if context.is_self(owner) and context.path[-1:] == ["__init__"] and context.cls is not None:
                methods = [method for model in context.repo.ancestors(context.cls) for method in model.methods.values()]
                if not any(self._stores_rng_state(node, name) for method in methods for node in ast.walk(method)):
                    return None
                return updated.with_changes(value=context.build(f"nnx.data(vendored.rng_state({context.self_name()}))"))
        return None

    def _stores_rng_state(self, node: ast.AST, name: str) -> bool:
        """Whether a statement is `self.<name> = torch.get_rng_state()`."""
        match node:
            case ast.Assign(targets=[ast.Attribute(attr=attr)], value=ast.Call(func=function)) if attr == name:
                return STATES.get(self.context.facts.dotted.get(span_of(function, self.context.file.lines), "")) == "rng_state"
        return False

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.Call | None:
        context = self.context
        helper = STATES.get(context.dotted(original.func))
        if helper is None or not in_module(context):
            return None
        keywords = {argument.keyword.value: argument.value for argument in original.args if argument.keyword}
        switched = keywords.get("enabled")
        if helper == "fork_rng" and isinstance(switched, cst.BaseExpression):
            # Whether the random state is restored would depend on a value.
            if not (isinstance(switched, cst.Name) and switched.value == "True"):
                return None
        if (helper == "set_rng_state") != (len(original.args) == 1) and helper != "fork_rng":
            return None
        values = [cst.Arg(updated.args[0].value)] if helper == "set_rng_state" else []
        return cst.Call(context.helper(helper), [cst.Arg(cst.Name(context.self_name())), *values])


class ReplaceManualBackward(Rule):
    """Replace a backward pass inside a method: `y = self.g(x); torch.autograd.backward(y, dy)` → `y, x_grad = pull_back(…)`.

    Both stand under `with torch.enable_grad()`, behind `x.requires_grad = True`. `x.grad` → `x_grad` from
    there on. The gradients of the parameters go to the `ModuleFunction` whose `backward` this is part of.
    Declines where the block does anything else, and outside of methods of modules.
    """

    KEEP = ("def f(lock, x):\n    with lock:\n        x.grad = None\n        y = x.grad\n",)
    CHANGE = (
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def back(self, x, dy):\n        with torch.enable_grad():\n"
            "            x.requires_grad = True\n            y = self.g(x, set_rng=True)\n            torch.autograd.backward(y, dy)\n"
            "        dx = dy + x.grad\n        x.grad = None\n        return y, dx\n",
            "class M(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        pass\n\n    def back(self, x, dy):\n"
            "        y, x_grad = pull_back(lambda self, x: self.g(x, set_rng=True), self, x, dy)\n"
            "        dx = dy + x_grad\n        return y, dx\n",
        ),
    )

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._pulled: set[tuple[str, str]] = set()

    def leave_With(self, original: cst.With, updated: cst.With) -> cst.SimpleStatementLine | None:
        context = self.context
        lines = [line for line in original.body.body if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1]
        if not self._enables_gradients(original) or len(lines) != 3 or len(lines) != len(original.body.body) or not in_module(context):
            return None
        name, output = self._watched_name(lines[0].body[0]), self._output_name(lines[1].body[0])
        cotangent = self._cotangent(lines[2].body[0], output)
        value = next((one.value for one in _assignments(updated.body) if output in _bound_names(one)), None)
        if not name or not output or cotangent is None or value is None or f"{name}_grad" in context.taken:
            return None
        context.drop_holes(lines[0], lines[2], original.items[0])
        self._pulled.add((".".join(context.path), name))
        own = context.self_name()
        call = context.build(
            f"vendored.pull_back(lambda {own}, {name}: {{value}}, {own}, {name}, {{cotangent}})", value=value, cotangent=cotangent
        )
        target = cst.Tuple([cst.Element(cst.Name(output)), cst.Element(cst.Name(f"{name}_grad"))], lpar=[], rpar=[])
        return cst.SimpleStatementLine([cst.Assign([cst.AssignTarget(target)], call)], leading_lines=updated.leading_lines)

    def leave_Attribute(self, original: cst.Attribute, updated: cst.Attribute) -> cst.Name | None:
        return cst.Name(f"{self._pulled_name(original)}_grad") if self._pulled_name(original) else None

    def leave_SimpleStatementLine(self, original: cst.SimpleStatementLine, updated: cst.SimpleStatementLine) -> cst.RemovalSentinel | None:
        match original.body:
            case [cst.Assign(targets=[cst.AssignTarget(target=cst.Attribute() as target)], value=cst.Name(value="None"))]:
                return cst.RemoveFromParent() if self._pulled_name(target) else None
        return None

    def _pulled_name(self, node: cst.Attribute) -> str:
        """The name of which `name.grad` is asked after a pull-back."""
        match node:
            case cst.Attribute(value=cst.Name(value=name), attr=cst.Name(value="grad")):
                return name if (".".join(self.context.path), name) in self._pulled else ""
        return ""

    def _enables_gradients(self, node: cst.With) -> bool:
        call = node.items[0].item if len(node.items) == 1 else None
        if not isinstance(call, cst.Call):
            return False
        dotted = self.context.dotted(call.func)
        on = len(call.args) == 1 and isinstance(call.args[0].value, cst.Name) and call.args[0].value.value == "True"
        return dotted == "torch.enable_grad" or (dotted == "torch.set_grad_enabled" and on)

    def _watched_name(self, small: cst.BaseSmallStatement) -> str:
        """`x` of `x.requires_grad = True` or `x.requires_grad_()`."""
        match small:
            case cst.Assign(
                targets=[cst.AssignTarget(target=cst.Attribute(value=cst.Name(value=name), attr=cst.Name(value="requires_grad")))],
                value=cst.Name(value="True"),
            ):
                return name
            case cst.Expr(value=cst.Call(func=cst.Attribute(value=cst.Name(value=name), attr=cst.Name(value="requires_grad_")), args=[])):
                return name
        return ""

    def _output_name(self, small: cst.BaseSmallStatement) -> str:
        match small:
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))]):
                return name
        return ""

    def _cotangent(self, small: cst.BaseSmallStatement, output: str) -> cst.Name | None:
        """`dy` of `torch.autograd.backward(y, dy)` or `y.backward(dy)`."""
        if not isinstance(small, cst.Expr) or not isinstance(small.value, cst.Call):
            return None
        call = small.value
        values = [argument.value for argument in call.args if not argument.keyword]
        # JAX keeps no graph to be retained.
        others = {argument.keyword.value for argument in call.args if argument.keyword} - {"retain_graph"}
        match call.func, values:
            case cst.Attribute(value=cst.Name(value=name), attr=cst.Name(value="backward")), [cst.Name() as given]:
                return given if name == output and not others else None
            case _, [cst.Name(value=name), cst.Name() as given]:
                return given if self.context.dotted(call.func) == "torch.autograd.backward" and name == output and not others else None
        return None


class DeriveFromModuleFunction(Rule):
    """Find gradients of modules inside an autograd function: `class F(torch.autograd.Function)` → `class F(ModuleFunction)`.

    Declines where its `forward` was not seen to call modules that it is given.
    """

    KEEP = ("class F:\n    @staticmethod\n    def forward(ctx, x, blocks):\n        return blocks[0](x)\n",)

    def leave_ClassDef(self, original: cst.ClassDef, updated: cst.ClassDef) -> cst.ClassDef | None:
        context = self.context
        if context.cls is None or not any(context.dotted(base.value) in FUNCTION_BASES for base in original.bases):
            return None
        forward = context.cls.methods.get("forward")
        if forward is None or not any(self._calls_module(node) for node in ast.walk(forward)):
            return None
        bases = [
            new.with_changes(value=context.helper("ModuleFunction")) if context.dotted(old.value) in FUNCTION_BASES else new
            for old, new in zip(original.bases, updated.bases, strict=True)
        ]
        return updated.with_changes(bases=bases)

    def _calls_module(self, node: ast.AST) -> bool:
        fact = self.context.facts.observed.get(span_of(node.func, self.context.file.lines)) if isinstance(node, ast.Call) else None
        return fact is not None and any(kind.startswith("module:") for kind in fact.kinds)


def in_module(context: Context) -> bool:
    """Whether this is in a method of a module class that has `self`."""
    return bool(context.self_name()) and context.cls is not None and context.repo.is_module_class(context.cls)


def _assignments(suite: cst.BaseSuite) -> list[cst.Assign]:
    lines = [line for line in suite.body if isinstance(line, cst.SimpleStatementLine)]
    return [small for line in lines for small in line.body if isinstance(small, cst.Assign)]


def _bound_names(node: cst.Assign) -> set[str]:
    return {target.target.value for target in node.targets if isinstance(target.target, cst.Name)}
