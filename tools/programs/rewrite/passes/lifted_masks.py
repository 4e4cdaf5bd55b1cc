"""Masks that are there before a step select by their places: inside a compiled step a mask says no size.

loss = nll(out[train_mask], y[train_mask])            train_mask_places = torch.nonzero(train_mask, as_tuple=True)
loss.backward()                                →      loss = nll(out[train_mask_places], y[train_mask_places])
                                                      loss.backward()
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import libcst as cst

from migrate_agent.tools.programs.rewrite.core import method_of, tainted
from migrate_agent.tools.programs.rewrite.names import FreeNames, Imports, again, chain_of, gives, read, text_of
from migrate_agent.tools.programs.rewrite.spans import ScriptPass


class LiftedMasks(ScriptPass):
    """One pass over a script. `modules` are the names that were seen to hold modules, and `is_mask`
    says of an expression whether it was seen to be a tensor of truth values."""

    def __init__(self, module: cst.Module, imports: Imports, modules: frozenset[str], is_mask: Callable[[cst.CSTNode], bool]) -> None:
        super().__init__()
        self._torch = next((name for name, dotted in imports.dotted.items() if dotted == "torch"), "")
        self._modules, self._is_mask, self._free = modules, is_mask, FreeNames(text_of(module))

    def leave_IndentedBlock(self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock) -> cst.IndentedBlock:
        """Find the places before the statements of a step."""
        lines = self._lifted(updated_node.body)
        return updated_node if lines is None else updated_node.with_changes(body=lines)

    def leave_Module(self, original_node: cst.Module, updated_node: cst.Module) -> cst.Module:
        """The same for a step at the top of the file."""
        lines = self._lifted(updated_node.body)
        return updated_node if lines is None else updated_node.with_changes(body=lines)

    def _lifted(self, lines: Sequence[Any]) -> list[Any] | None:
        """The lines of a block with places in place of masks; `None` where nothing changes."""
        last = max((i for i, line in enumerate(lines) if method_of(line)[1] == "backward"), default=0)
        steps = tainted(lines[:last], self._modules) if self._torch else []
        names: dict[str, str] = {}
        result, computed = list[Any](), set[str]()
        for line in lines:
            masks = _Masks(self, computed) if line in steps else None
            if masks is not None:
                line.visit(masks)
                new = [one for text, one in masks.found.items() if text not in names]
                names |= {chain_of(one): self._free.pick(f"{chain_of(one).rpartition('.')[2]}_places", "places") for one in new}
                lookups = [self._made(one, names[chain_of(one)]) for one in new]
                if lookups:
                    lookups[0] = lookups[0].with_changes(leading_lines=line.leading_lines)
                    self.origin[changed := line.with_changes(leading_lines=())] = self.origin.get(line, line)
                    line = changed
                result += lookups
                line = line.visit(_Placed(self, names, computed)) if masks.found else line
                computed |= set(gives(line))
            result.append(line)
        return result if names else None

    def _made(self, mask: cst.BaseExpression, name: str) -> cst.SimpleStatementLine:
        """`mask_places = torch.nonzero(mask, as_tuple=True)`."""
        call = cst.ensure_type(cst.parse_expression(f"{self._torch}.nonzero(mask, as_tuple=True)"), cst.Call)
        arguments = [call.args[0].with_changes(value=again(self.origin, mask)), *call.args[1:]]
        return cst.SimpleStatementLine([cst.Assign([cst.AssignTarget(cst.Name(name))], call.with_changes(args=arguments))])

    def mask_of(self, node: cst.Subscript, computed: set[str]) -> cst.BaseExpression | None:
        """The mask by which alone an expression selects, where the step does not compute it."""
        index = node.slice[0].slice if len(node.slice) == 1 else None
        mask = index.value if isinstance(index, cst.Index) and index.star is None else None
        plain = mask is not None and bool(chain_of(mask)) and not computed & set(read(mask))
        return mask if mask is not None and plain and self._is_mask(self.origin.get(mask, mask)) else None


class _Masks(cst.CSTVisitor):
    """Collects the masks of a statement, by their text. What is assigned to selects nothing."""

    def __init__(self, lifted: LiftedMasks, computed: set[str]) -> None:
        self._lifted, self._computed = lifted, computed
        self.found: dict[str, cst.BaseExpression] = {}

    def visit_AssignTarget(self, node: cst.AssignTarget) -> bool:
        """Not in what is assigned to."""
        return False

    def visit_Subscript(self, node: cst.Subscript) -> None:
        """The mask of a selection."""
        if (mask := self._lifted.mask_of(node, self._computed)) is not None:
            self.found.setdefault(chain_of(mask), mask)


class _Placed(cst.CSTTransformer):
    """Puts places in place of masks."""

    def __init__(self, lifted: LiftedMasks, names: dict[str, str], computed: set[str]) -> None:
        super().__init__()
        self._lifted, self._places, self._computed = lifted, names, computed

    def on_leave(self, original_node: Any, updated_node: Any) -> Any:
        """Note which new node stands for which old one."""
        result = super().on_leave(original_node, updated_node)
        if isinstance(result, cst.CSTNode):
            self._lifted.origin.setdefault(result, self._lifted.origin.get(original_node, original_node))
        return result

    def visit_AssignTarget(self, node: cst.AssignTarget) -> bool:
        """Not in what is assigned to."""
        return False

    def leave_Subscript(self, original_node: cst.Subscript, updated_node: cst.Subscript) -> cst.Subscript:
        """`out[mask]` → `out[mask_places]`."""
        mask = self._lifted.mask_of(original_node, self._computed)
        if mask is None:
            return updated_node
        return updated_node.with_changes(slice=[cst.SubscriptElement(cst.Index(cst.Name(self._places[chain_of(mask)])))])
