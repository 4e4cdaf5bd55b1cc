"""Parts of packed sequences by their place."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.rewrite.tables.ops.packing import PACKED

PARTS = {"0": "data", "1": "batch_sizes"}


class NamePackedParts(Rule):
    """Name the parts of a packed sequence, which in torch is a tuple: `packed[0]` → `packed.data`.

    Declines where what is indexed is not known to be packed. Sorted and unsorted indices have no counterpart: the order stays as given.
    """

    KEEP = ("def f(rows):\n    return rows[0]\n",)
    CHANGE = (
        (
            "from torch.nn.utils.rnn import pack_padded_sequence\n\ndef f(x, lengths):\n    return pack_padded_sequence(x, lengths)[0]\n",
            "def f(x, lengths):\n    return pack_padded_sequence(x, lengths).data\n",
        ),
    )

    def leave_Subscript(self, original: cst.Subscript, updated: cst.Subscript) -> cst.Attribute | None:
        seen = self.context.observed(original.value)
        match original.slice:
            case [cst.SubscriptElement(slice=cst.Index(value=cst.Integer(value=place)))] if (
                seen and seen.kinds == (PACKED,) and place in PARTS
            ):
                return cst.Attribute(updated.value, cst.Name(PARTS[place]), lpar=updated.lpar, rpar=updated.rpar)
        return None
