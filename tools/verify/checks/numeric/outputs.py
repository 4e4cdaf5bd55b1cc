"""Outputs agree: one row for each check, with the roles of the scenarios whose outputs it compares."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import chain

from migrate_agent.tools.harness.common import tolerances
from migrate_agent.tools.harness.common.compare_arrays import Difference, verdict
from migrate_agent.tools.types import Verdict
from migrate_agent.tools.verify.checks.base import NEW_PROCESS, Check
from migrate_agent.tools.verify.checks.shared.native import native_differences
from migrate_agent.tools.verify.checks.shared.outputs import applies, named_differences, output_differences
from migrate_agent.tools.verify.compare.pairs import UNPAIRED
from migrate_agent.tools.verify.contract.scenario import Role
from migrate_agent.tools.verify.evidence.candidate import Results


def _exact(name: str, *roles: Role, optional: tuple[Role, ...] = (), state: bool = False, cost: int = 1) -> Check:
    """A check in float64, within the limit that the unit's conditioning allows.

    `optional` roles are compared where the candidate does not refuse all of their scenarios, and may. With `state`, buffers
    after the call are compared too.
    """
    return Check("numeric", name, partial(_judge_exact, name, roles, optional, state), cost=cost)


def _judge_exact(name: str, roles: tuple[Role, ...], optional: tuple[Role, ...], state: bool, results: Results) -> Verdict | None:
    # A refusal that is forgiven is a note and no failure, so a role with nothing else does not count.
    accepted = [role for role in optional if any(not results.forgives(*answered) for answered in results.answers(role))]
    if not (roles or accepted) or not applies(results, *roles, *accepted):
        return None
    buffers: Iterator[Difference] = named_differences(results, "state", *roles, floor=tolerances.FLOOR_FP64) if state else iter(())
    return verdict("numeric", name, chain(output_differences(results, *roles, *accepted), buffers), UNPAIRED)


def _native(name: str, *roles: Role, narrow: bool | None, kinks: bool = False, later: int = 0) -> Check:
    """A check in the dtypes of a user's run: at most twice torch's own error against its float64 answer, plus the floors of `tolerances`.

    It applies where torch's own run computes in bfloat16 or float16 (`narrow`), where it does not, or in either case (None). Dtypes have to agree.
    With `kinks`, what rounding across a comparison does to torch's own answer counts too. `later`: how much later than others it comes.
    """
    return Check("numeric", name, partial(_judge_native, name, roles, narrow, kinks), cost=NEW_PROCESS + later)


def _judge_native(name: str, roles: tuple[Role, ...], narrow: bool | None, kinks: bool, results: Results) -> Verdict | None:
    results.of("native")
    omitted = results.left_out("native")
    native = [item for item in results.expected.scenarios if item.native and item.role in roles and item.name not in omitted]
    if not native or not applies(results, roles[0], narrow=narrow, kind="native"):
        return None
    return verdict("numeric", name, native_differences(results, *roles, narrow=narrow, kinks=kinks), UNPAIRED)


CHECKS = (
    # Random parameters and buffers, since the initial ones hide much: a bias of zeros may be left out unseen.
    _exact("forward_fp64", Role.SEED),
    # In training mode other code runs (dropout, batch statistics), which evaluation never reaches.
    _exact("training_fp64", Role.GRADIENT),
    _exact("edges_fp64", Role.EDGE, cost=2),
    # As far as the original accepts them. One more axis, and sizes beyond numbers of the code, a candidate
    # may refuse on purpose.
    _exact("shapes_fp64", optional=(Role.SHAPE, Role.RANK, Role.LONG), cost=2),
    # What the first call left behind (a cache, a counter) shows in the second one alone.
    _exact("second_call", Role.AGAIN, Role.AGAIN_TRAINED, state=True, cost=4),
    # What float64 cannot show: a cast in the wrong place, a sum in a narrower dtype than torch's.
    _native("forward_fp32", Role.SEED, Role.SHAPE, Role.LONG, narrow=False),
    # An offset, tiny and huge values, rows of zeros: a variance of one pass is right in float64, and drowns in float32.
    _native("edges_fp32", Role.EDGE, narrow=False, kinks=True, later=1),
    _native("forward_bf16", Role.SEED, narrow=True),
    # What only training runs, as statistics of a batch, a cast there moves by less than gradients are compared by.
    _native("training_native", Role.GRADIENT, narrow=None),
)
