"""Batches of sequences of several lengths (https://docs.pytorch.org/docs/stable/nn.html#utilities)."""

from __future__ import annotations

from migrate_agent.tools.rewrite.tables.registry import Op

RNN = "torch.nn.utils.rnn"
PACKED = "object:torch.nn.utils.rnn.PackedSequence"


PACKING = [
    Op(
        f"{RNN}.pack_padded_sequence",
        "input, lengths, batch_first=False, enforce_sorted=True",
        "vendored.pack_padded_sequence({input}, {lengths}, batch_first={batch_first}, enforce_sorted={enforce_sorted})",
        returns=PACKED,
    ),
    Op(
        f"{RNN}.pad_packed_sequence",
        "sequence, batch_first=False, padding_value=0.0, total_length=None",
        "vendored.pad_packed_sequence({sequence}, batch_first={batch_first}, padding_value={padding_value}, total_length={total_length})",
        returns="tuple",
        samples=("torch.nn.utils.rnn.pad_packed_sequence(torch.nn.utils.rnn.pack_padded_sequence(torch.ones(4, 2, 3), [3, 1]))",),
    ),
    Op(
        f"{RNN}.pad_sequence",
        "sequences, batch_first=False, padding_value=0.0, padding_side='right'",
        "vendored.pad_sequence({sequences}, batch_first={batch_first}, padding_value={padding_value}, padding_side={padding_side})",
        samples=(
            "torch.nn.utils.rnn.pad_sequence([torch.ones(3, 2), torch.ones(1, 2)])",
            "torch.nn.utils.rnn.pad_sequence([torch.ones(1), torch.ones(3)], True, 2.5, padding_side='left')",
        ),
    ),
    Op(
        f"{RNN}.pack_sequence",
        "sequences, enforce_sorted=True",
        "vendored.pack_sequence({sequences}, enforce_sorted={enforce_sorted})",
        returns=PACKED,
        samples=(
            "torch.nn.utils.rnn.pad_packed_sequence(torch.nn.utils.rnn.pack_sequence([torch.ones(1, 2), torch.ones(3, 2)], False), "
            "padding_value=2.0, total_length=4)",
        ),
    ),
]
