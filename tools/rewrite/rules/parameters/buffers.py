"""Buffers that are set anew: `self.b = x` keeps the buffer, whatever shape its value gets."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import libcst as cst

from migrate_agent.tools.rewrite.analysis.facts import is_tensor, span_of
from migrate_agent.tools.rewrite.rules.parameters.variables import is_buffer_of_other, may_be_unset, registers_none
from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.scan.nodes import walk


class SetBuffers(Rule):
    """Keep buffers that are set anew: `self.register_buffer("b", x)`, then `self.b = y` in the constructor → `self.b = nnx.Variable(y)`.

    In a call, where examples showed more than one shape, `self.b.set_value(y)`: `self.b[...] = y` would keep the old shape. So is a buffer of
    another module set (`child.b = y`), whose shapes are not looked for. Of a buffer that is registered as `None` there is no variable to write into,
    and the call makes one: `self.b = nnx.Variable(y)`. Declines for other values that may be `None`, and where the assignment stands instead of the
    registration.
    """

    KEEP = ("class Plain:\n    def __init__(self, x):\n        self.b = x\n",)
    CHANGE = (
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n        self.add(n)\n"
            "        self.b = self.b.clamp(0, 1)\n\n    def add(self, n):\n        self.register_buffer('b', torch.ones(n), persistent=False)\n",
            "class M(nnx.Module):\n    def __init__(self, n, *, rngs: nnx.Rngs):\n        self.add(n)\n        self.b = nnx.Cache(clamp(self.b[...], 0, 1))\n\n"
            "    def add(self, n):\n        self.b = nnx.Cache(jnp.ones(n))\n",
        ),
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n        if n:\n"
            "            self.register_buffer('b', torch.ones(n))\n        else:\n            self.b = torch.zeros(3)\n",
            "class M(nnx.Module):\n    def __init__(self, n, *, rngs: nnx.Rngs):\n        if n:\n            self.b = nnx.Variable(jnp.ones(n))\n"
            "        else:\n            self.b = jnp.zeros(3)\n",
        ),
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n"
            "        self.register_buffer('b', None)\n        self.register_buffer('c', tensor=None, persistent=False)\n\n"
            "    def freeze(self, c):\n        self.b = torch.ones(3)\n        self.c = c\n\n    def unfreeze(self):\n        self.b = None\n",
            "class M(nnx.Module):\n    def __init__(self, n, *, rngs: nnx.Rngs):\n        self.b = nnx.data(None)\n        self.c = nnx.data(None)\n\n"
            "    def freeze(self, c):\n        self.b = nnx.Variable(jnp.ones(3))\n        self.c = nnx.Cache(c) if c is not None else None\n\n"
            "    def unfreeze(self):\n        self.b = nnx.data(None)\n",
        ),
        (
            "import torch\nfrom torch import nn\n\nclass Part(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.register_buffer('b', torch.ones(3))\n\nclass M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.part = Part()\n\n    def set_b(self, b: torch.Tensor):\n        self.part.b = b * 2\n",
            "class Part(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        self.b = nnx.Variable(jnp.ones(3))\n\n\n"
            "class M(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        self.part = Part(rngs=rngs)\n\n"
            "    def set_b(self, b: jax.Array):\n        self.part.b.set_value(b * 2)\n",
        ),
    )

    def leave_Assign(self, original: cst.Assign, updated: cst.Assign) -> cst.BaseSmallStatement | None:
        context, target = self.context, original.targets[0].target
        self._refuse_several(original)
        if len(original.targets) == 1 and isinstance(target, cst.Attribute) and not context.is_self(target.value):
            return self._set_in_other(original, updated, target)
        if len(original.targets) > 1 or not isinstance(target, cst.Attribute) or not context.is_self(target.value):
            return None
        if context.cls is None or not context.repo.is_module_class(context.cls):
            return None
        name, fact = target.attr.value, context.observed(original.value)
        persistent = context.repo.buffer(context.cls, name)
        if persistent is not None and not context.constructing and may_be_unset(self, name):
            return self._made_anew(original, updated, "Variable" if persistent else "Cache")
        # Torch has no buffer while it is `None`, which a variable cannot say.
        if persistent is None or not is_tensor(fact) or fact is None or "none" in fact.kinds or "parameter" in fact.kinds:
            return None
        if not context.constructing:
            if len({*self._observed_shapes(name), *fact.shapes}) < 2:
                return None
            call = context.build("{owner}.set_value({value})", owner=target, value=updated.value)
            return cst.Expr(call)
        # On this branch torch has a plain attribute, and the state dictionary no entry.
        if self._replaces_registration(original, name):
            return None
        return updated.with_changes(value=context.build(f"nnx.{'Variable' if persistent else 'Cache'}({{value}})", value=updated.value))

    def _set_in_other(self, original: cst.Assign, updated: cst.Assign, target: cst.Attribute) -> cst.BaseSmallStatement | None:
        """`child.b = x` → `child.b.set_value(x)`, for a buffer of another module; a hole where it may be None, or no buffer at times."""
        context, owner, fact = self.context, self.context.observed(target.value), self.context.observed(original.value)
        kinds = owner.kinds if owner is not None else ()
        models = [context.repo.class_of(kind.removeprefix("module:")) for kind in kinds if kind.startswith("module:")]
        name = target.attr.value
        if not any(model is not None and context.repo.buffer(model, name) is not None for model in models):
            return None
        unset = any(registers_none(one, name) for model in models if model is not None for one in context.repo.ancestors(model))
        if not is_buffer_of_other(self, target) or unset or fact is None or set(fact.kinds) != {"tensor"}:
            context.hole(original, f"{name} of another module is a buffer, and may be None or something else", "unsupported")
            return None
        new = cst.ensure_type(updated.targets[0].target, cst.Attribute)
        return cst.Expr(context.build("{owner}.set_value({value})", owner=new, value=updated.value))

    def _refuse_several(self, original: cst.Assign) -> None:
        """Leave a hole where a buffer that may be None is set beside something else: each value would need a variable of its own."""
        context = self.context
        targets = [one.target for one in original.targets]
        inner = [part.value for one in targets if isinstance(one, (cst.Tuple, cst.List)) for part in one.elements]
        if not inner and len(targets) < 2:
            return
        if any(isinstance(one, cst.Attribute) and is_buffer_of_other(self, one) for one in inner or targets):
            context.hole(
                original, "a buffer of another module is set beside something else: set each in a statement of its own", "unsupported"
            )
            return
        if context.cls is None or context.constructing:
            return
        for target in inner or targets:
            if not isinstance(target, cst.Attribute) or not context.is_self(target.value) or not may_be_unset(self, target.attr.value):
                continue
            if context.repo.buffer(context.cls, target.attr.value) is not None:
                context.hole(original, f"{target.attr.value}, which may be None, is set beside something else", "unsupported")

    def _made_anew(self, original: cst.Assign, updated: cst.Assign, kind: str) -> cst.BaseSmallStatement | None:
        """The assignment with a variable of this kind around what is no `None`; None where it already is one, or nothing is known of it."""
        context, fact, value = self.context, self.context.observed(original.value), original.value
        if isinstance(value, cst.Name) and value.value == "None":
            return None
        if fact is not None and set(fact.kinds) & {"parameter"}:
            return None
        # A buffer is a tensor or None, and nothing computed is None.
        computed = isinstance(value, cst.BinaryOperation) or (
            isinstance(value, cst.Call) and context.dotted(value.func).startswith("torch.")
        )
        if computed or (fact is not None and fact.kinds and set(fact.kinds) == {"tensor"}):
            return updated.with_changes(value=context.build(f"nnx.{kind}({{value}})", value=updated.value))
        if isinstance(value, cst.Name) and isinstance(updated.value, cst.Name):
            made = context.build(f"nnx.{kind}({{value}}) if {{value}} is not None else None", value=updated.value)
            return updated.with_changes(value=made)
        context.hole(
            original, f"whether {cst.Module([]).code_for_node(value)} is None was neither observed nor inferred", "unknown-receiver"
        )
        return None

    def _observed_shapes(self, name: str) -> Iterator[tuple[int, ...]]:
        """The shapes that the buffer was seen to have where the class reads it."""
        context = self.context
        assert context.cls
        for node in walk(context.cls.node):
            if isinstance(node, ast.Attribute) and context.cls.own.get(id(node)) == name and isinstance(node.ctx, ast.Load):
                fact = context.facts.observed.get(span_of(node, context.file.lines))
                yield from fact.shapes if fact else ()

    def _replaces_registration(self, assign: cst.Assign, name: str) -> bool:
        """Whether the buffer is registered in other arms of branches around the assignment, and nowhere else."""
        context = self.context
        assert context.cls
        line = context.span(assign).line
        registrations = [node.lineno for node in walk(context.cls.node) if isinstance(node, ast.Call) and _is_registration(node, name)]
        branches = [node for node in walk(context.cls.node) if isinstance(node, ast.If) and node.orelse]
        return bool(registrations) and all(
            any(_in_different_arms(branch, line, registration) for branch in branches) for registration in registrations
        )


def _is_registration(call: ast.Call, name: str) -> bool:
    names = [*call.args[:1], *(keyword.value for keyword in call.keywords if keyword.arg == "name")]
    named = any(isinstance(value, ast.Constant) and value.value == name for value in names)
    return isinstance(call.func, ast.Attribute) and call.func.attr == "register_buffer" and named


def _in_different_arms(branch: ast.If, one: int, other: int) -> bool:
    """Whether two lines stand in different arms of a branch."""
    end = branch.body[-1].end_lineno or 0
    first, second = (branch.body[0].lineno <= line <= end for line in (one, other))
    inside = all(branch.body[0].lineno <= line <= (branch.end_lineno or 0) for line in (one, other))
    return inside and first != second
