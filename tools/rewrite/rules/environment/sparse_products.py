"""Autograd functions that are products of sparse matrices."""

from __future__ import annotations

import ast

import libcst as cst

from migrate_agent.tools.rewrite.analysis.autograd_functions.sparse_products import SPARSE, sparse_product
from migrate_agent.tools.rewrite.analysis.facts import span_of
from migrate_agent.tools.rewrite.analysis.repo import dotted_name
from migrate_agent.tools.rewrite.rules.calls.torch_references import FUNCTION_BASES
from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.scan.nodes import walk

SQUARE = 2


class DeriveSparseProducts(Rule):
    """Let JAX derive the product of a sparse matrix with a dense one: `class F(torch.autograd.Function)` → a class whose `apply` is the product.

    Its `backward` computes what the derivative is: the gradient of each value, and of the dense matrix. Declines where it
    computes anything else, and where the sparse matrix was seen not to be square.
    """

    KEEP = ("class F:\n    @staticmethod\n    def forward(ctx, indices, values, shape, b):\n        return values @ b\n",)
    CHANGE = (
        (
            "import torch\n\nclass F(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, indices, values, shape, b):\n"
            "        a = torch.sparse_coo_tensor(indices, values, shape)\n        ctx.save_for_backward(a, b)\n        ctx.N = shape[0]\n"
            "        return torch.matmul(a, b)\n\n    @staticmethod\n    def backward(ctx, grad_output):\n        a, b = ctx.saved_tensors\n"
            "        grad_values = grad_b = None\n        if ctx.needs_input_grad[1]:\n            grad_a_dense = grad_output.matmul(b.t())\n"
            "            edge_idx = a._indices()[0, :] * ctx.N + a._indices()[1, :]\n"
            "            grad_values = grad_a_dense.view(-1)[edge_idx]\n        if ctx.needs_input_grad[3]:\n"
            "            grad_b = a.t().matmul(grad_output)\n        return None, grad_values, None, grad_b\n",
            "class F:\n    @staticmethod\n    def apply(indices, values, shape, b):\n        return dense(indices, values, shape) @ b\n",
        ),
    )

    def leave_ClassDef(self, original: cst.ClassDef, updated: cst.ClassDef) -> cst.ClassDef | None:
        context = self.context
        if context.cls is None or not any(context.dotted(base.value) in FUNCTION_BASES for base in original.bases):
            return None
        if len(original.bases) != 1 or not sparse_product(context.cls) or not self._is_square():
            return None
        context.drop_holes(original)
        forward = next(node for node in updated.body.body if isinstance(node, cst.FunctionDef) and node.name.value == "forward")
        others = [node for node in updated.body.body if not isinstance(node, cst.FunctionDef)]
        _, *parameters = forward.params.params
        names = {name: cst.Name(parameter.name.value) for name, parameter in zip(("i", "v", "s", "b"), parameters, strict=True)}
        product = context.build("vendored.dense({i}, {v}, {s}) @ {b}", **names)
        apply = forward.with_changes(
            name=cst.Name("apply"),
            params=forward.params.with_changes(params=parameters),
            body=cst.IndentedBlock([cst.SimpleStatementLine([cst.Return(product)])]),
            leading_lines=[] if not others else forward.leading_lines,
        )
        body = updated.body.with_changes(body=[*others, apply])
        return updated.with_changes(bases=[], lpar=cst.MaybeSentinel.DEFAULT, rpar=cst.MaybeSentinel.DEFAULT, body=body)

    def _is_square(self) -> bool:
        """Whether all that was seen of the sparse matrix was square."""
        file = self.context.file
        assert self.context.cls is not None
        calls = [n for n in walk(self.context.cls.node) if isinstance(n, ast.Call) and dotted_name(n.func, file) in SPARSE]
        facts = [fact for call in calls if (fact := self.context.facts.observed.get(span_of(call, file.lines)))]
        return all(len(shape) == SQUARE and shape[0] == shape[1] for fact in facts for shape in fact.shapes)
