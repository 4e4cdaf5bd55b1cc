"""`python -O`, which removes every `assert`, changes no verdict."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from migrate_agent.sandbox.process import ProcessSandbox
from migrate_agent.tests.tools.verify.harness import Pair, Wrong, check_pair

PAIR = Pair(
    "small",
    torch="""
        class M(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(4, 3)

            def forward(self, x):
                return torch.tanh(self.fc(x))
    """,
    jax="""
        class M(nnx.Module):
            def __init__(self, *, rngs):
                init = jax.nn.initializers.variance_scaling(1 / 3, "fan_in", "uniform")
                bound = 1 / math.sqrt(4)
                uniform = lambda key, shape, dtype: jax.random.uniform(key, shape, dtype, -bound, bound)
                self.fc = nnx.Linear(4, 3, kernel_init=init, bias_init=uniform, rngs=rngs)

            def __call__(self, x):
                return jnp.tanh(self.fc(x))
    """,
    call="torch.randn(2, 4)",
    wrongs=(
        Wrong("another function", "forward_fp64", "jnp.tanh(", "jax.nn.sigmoid("),
        Wrong("does not construct", "candidate_runs", "bound = 1 / math.sqrt(4)", "raise ValueError(4)"),
    ),
)


def verdicts(folder: Path) -> list[list[list[str]]]:
    """(Check, status) of all verdicts on the right candidate and on each wrong one."""
    with ProcessSandbox() as sandbox:
        evidence = [check_pair(PAIR, PAIR.candidate(wrong), sandbox, folder) for wrong in (None, *PAIR.wrongs)]
    return [[[verdict.check, verdict.status] for verdict in item.verdicts] for item in evidence]


def test_verdicts_are_the_same(tmp_path: Path) -> None:
    code = (
        f"import json, pathlib; from {__name__} import verdicts; print(json.dumps(verdicts(pathlib.Path({str(tmp_path / 'optimised')!r}))))"
    )
    done = subprocess.run([sys.executable, "-O", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    right, *wrong = optimised = json.loads(done.stdout.splitlines()[-1])
    assert {status for _, status in right} == {"pass"}
    failed = [[check for check, status in rows if status == "fail"] for rows in wrong]
    assert [checks[0] for checks in failed] == [each.check for each in PAIR.wrongs]
    assert optimised == verdicts(tmp_path / "plain")
