"""The name under which tests in users' repositories import `run`; the code lies in `candidate/recorded_kernels.py`."""

from migrate_agent.tools.verify.candidate.recorded_kernels import *  # noqa: F403
