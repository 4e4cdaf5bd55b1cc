"""Imports of packages with fused kernels for GPUs, and the guards around them, where the kernel library has what is imported."""

from __future__ import annotations

import ast

import libcst as cst

from migrate_agent.tools.rewrite.rules.environment.import_fallbacks import catches_import
from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.rewrite.tables.registry import FUSED_PACKAGES, of_fused_package
from migrate_agent.tools.scan.nodes import walk


class TakeFusedKernels(Rule):
    """Remove guards around imports that the kernel library has: `try: from flash_attn import … except ImportError: …` → nothing, `flash_attn_func is not None` → `True`.

    What else stands in the body of such a `try` stays (`HAS_FLASH = True`). Where it imports something that the
    kernel library lacks, the body of its `except` replaces it, which is what runs without the package. Declines
    where there is an `else` or a `finally`.
    """

    KEEP = (
        "try:\n    import numpy as np\nexcept ImportError:\n    np = None\n\n\ndef f(x=np):\n    return x is not None\n",
        "try:\n    from flash_attn import flash_attn_with_kvcache\nfinally:\n    pass\n",
    )
    CHANGE = (
        (
            "try:\n    from flash_attn import flash_attn_func\nexcept ImportError:\n    flash_attn_func = None\n\n\n"
            "def f(q, k, v):\n    if flash_attn_func is not None:\n        return flash_attn_func(q, k, v, causal=True)\n    return q\n",
            "def f(q, k, v):\n    return flash_attention(q, k, v, causal=True)\n",
        ),
        (
            "try:\n    from apex.normalization import FusedLayerNorm as Norm\n\n    FUSED = True\nexcept ImportError:\n"
            "    from torch.nn import LayerNorm as Norm\n\n    FUSED = False\n\n\ndef f():\n    return Norm(4, eps=1e-6)\n",
            "FUSED = True\n\n\ndef f(*, rngs: nnx.Rngs):\n    return LayerNorm(4, eps=1e-6, rngs=rngs)\n",
        ),
        (
            "try:\n    from flash_attn import flash_attn_func, flash_attn_with_kvcache\nexcept ImportError:\n"
            "    flash_attn_func, flash_attn_with_kvcache = None, None\n\n\n"
            "def f(q, k, v):\n    return flash_attn_func(q, k, v) if flash_attn_with_kvcache is None else q\n",
            "flash_attn_func, flash_attn_with_kvcache = None, None\n\n\n"
            "def f(q, k, v):\n    return flash_attention(q, k, v) if flash_attn_with_kvcache is None else q\n",
        ),
        (
            "try:\n    from apex import amp\n\n    APEX = True\nexcept:\n    APEX = False\n\n\n"
            "def f(g, x):\n    return amp.float_function(g)(x) if APEX else g(x)\n",
            "APEX = False\namp = None\n\n\ndef f(g, x):\n    return amp.float_function(g)(x) if APEX else g(x)\n",
        ),
        (
            "from torch import nn\n\ntry:\n    import bitsandbytes as bnb\nexcept ImportError:\n    bnb = None\n\n\n"
            "def f(bits):\n    return bnb.nn.Linear8bitLt(2, 3) if bnb is not None and bits == 8 else nn.Linear(2, 3)\n",
            "def f(bits, *, rngs: nnx.Rngs):\n    return Linear(2, 3, rngs=rngs) if bits == 8 else Linear(2, 3, rngs=rngs)\n",
        ),
        (
            "import xformers.ops as xops\n\n\ndef f(q, k, v):\n    return xops.memory_efficient_attention(q, k, v, attn_bias=xops.LowerTriangularMask())\n",
            "def f(q, k, v):\n    return memory_efficient_attention(q, k, v, attn_bias=LowerTriangularMask())\n",
        ),
    )

    def leave_ImportFrom(self, original: cst.ImportFrom, updated: cst.ImportFrom) -> cst.ImportFrom | cst.RemovalSentinel | None:
        if original.relative or original.module is None or isinstance(original.names, cst.ImportStar):
            return None
        module = cst.Module([]).code_for_node(original.module)
        aliases = [alias for alias in original.names if not of_fused_package(f"{module}.{alias.evaluated_name}")]
        if len(aliases) == len(original.names):
            return None
        if not aliases:
            return cst.RemoveFromParent()
        return updated.with_changes(names=[*aliases[:-1], aliases[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)])

    def leave_Import(self, original: cst.Import, updated: cst.Import) -> cst.RemovalSentinel | None:
        return cst.RemoveFromParent() if all(of_fused_package(alias.evaluated_name) for alias in original.names) else None

    def leave_Try(self, original: cst.Try, updated: cst.Try) -> cst.FlattenSentinel[cst.BaseStatement] | cst.RemovalSentinel | None:
        handlers = [handler for handler in original.handlers if catches_import(handler)]
        if not handlers or original.finalbody or original.orelse or not imports_fused(original.body):
            return None
        block, missing = updated.body, list[str]()
        if imports_fused(block):  # something that the kernel library lacks
            lacking = block
            block = next(handler for handler in updated.handlers if catches_import(handler)).body
            missing = self._names_read(_bound_names(lacking) - _bound_names(block))
            self.context.drop_holes(original.body)
        # Another import in the block may fail for reasons of its own.
        elif any(isinstance(small, (cst.Import, cst.ImportFrom)) for small in _small_statements(block)):
            return None
        else:
            self.context.drop_holes(*original.handlers)
        body = [statement for statement in block.body if isinstance(statement, cst.BaseStatement)]
        # The failed import never bound these: code that asks for them must find `None`, and no `NameError`.
        body += [cst.parse_statement(f"{name} = None\n") for name in missing]
        return cst.FlattenSentinel(body) if body else cst.RemoveFromParent()

    def _names_read(self, names: set[str]) -> list[str]:
        """Those of the names that the file reads."""
        tree = self.context.file.tree
        return sorted({node.id for node in walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)} & names)

    def leave_Comparison(self, original: cst.Comparison, updated: cst.Comparison) -> cst.BaseExpression | None:
        """`name is not None` of what the guarded import binds."""
        target = original.comparisons[0]
        if len(original.comparisons) != 1 or not isinstance(target.operator, (cst.Is, cst.IsNot)):
            return None
        if not isinstance(target.comparator, cst.Name) or target.comparator.value != "None" or not isinstance(original.left, cst.Name):
            return None
        dotted = self.context.file.bindings.get(original.left.value, "")
        # A local variable may have the name of the import.
        if self.context.dotted(original.left) != dotted or not of_fused_package(dotted):
            return None
        return cst.Name(str(isinstance(target.operator, cst.IsNot)))


def imports_fused(suite: cst.BaseSuite) -> bool:
    """Whether a block imports something of these packages."""
    for small in _small_statements(suite):
        if isinstance(small, cst.ImportFrom) and small.module is not None and not small.relative:
            if cst.Module([]).code_for_node(small.module).partition(".")[0] in FUSED_PACKAGES:
                return True
        if isinstance(small, cst.Import) and any(alias.evaluated_name.partition(".")[0] in FUSED_PACKAGES for alias in small.names):
            return True
    return False


def _bound_names(suite: cst.BaseSuite) -> set[str]:
    """The names that a block binds at its own level."""
    names: set[str] = set()
    for small in _small_statements(suite):
        if isinstance(small, (cst.Import, cst.ImportFrom)) and not isinstance(small.names, cst.ImportStar):
            names |= {alias.evaluated_alias or alias.evaluated_name.partition(".")[0] for alias in small.names}
        elif isinstance(small, cst.Assign):
            targets = [target.target for target in small.targets]
            parts = [element.value for target in targets if isinstance(target, cst.Tuple) for element in target.elements]
            names |= {target.value for target in (*targets, *parts) if isinstance(target, cst.Name)}
    return names


def _small_statements(suite: cst.BaseSuite) -> list[cst.BaseSmallStatement]:
    return [small for statement in suite.body if isinstance(statement, cst.SimpleStatementLine) for small in statement.body]
