"""Questions about the signature of a module class, whose metaclass hides it."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.rules.rule import Rule

ASKING = {"inspect.signature": "constructor_signature", "inspect.getfullargspec": "constructor_arguments"}
"""Functions of `inspect`, and those of the vendored ones that stand for them."""


class ReplaceSignatureCalls(Rule):
    """Ask a module class for its constructor: `inspect.signature(cls)` → `constructor_signature(cls)`, and likewise `inspect.getfullargspec`.

    The metaclass of NNX hides the constructor's parameters. Declines where the argument was not observed to
    be a module class.
    """

    KEEP = ("import inspect\n\ndef f(function):\n    return inspect.signature(function)\n",)
    CHANGE = (
        (
            "import inspect\nfrom torch import nn\n\ndef f():\n    return inspect.signature(nn.Linear)\n",
            "import inspect\n\n\ndef f():\n    return constructor_signature(Linear)\n",
        ),
        (
            "import inspect\nfrom torch import nn\n\ndef f():\n    return inspect.getfullargspec(nn.Linear).args\n",
            "import inspect\n\n\ndef f():\n    return constructor_arguments(Linear).args\n",
        ),
    )

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        context = self.context
        function = ASKING.get(context.dotted(original.func), "")
        if not function or len(original.args) != 1:
            return None
        fact = context.observed(original.args[0].value)
        names = [kind.removeprefix("class:") for kind in fact.kinds if kind.startswith("class:")] if fact else []
        if not any(context.repo.is_module(name) for name in names):
            return None
        return context.build(f"vendored.{function}({{cls}})", cls=updated.args[0].value)
