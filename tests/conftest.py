"""What holds for every test. Set before anything imports jax, torch or git."""

from __future__ import annotations

import os

from hypothesis import settings

ENVIRONMENT = {
    # Tests run side by side: one thread each, and no search for accelerators.
    "JAX_PLATFORMS": "cpu",
    "PJRT_NPROC": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    # Repositories made by tests: the developer's git configuration neither helps nor hinders.
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "Test Author",
    "GIT_AUTHOR_EMAIL": "author@example.invalid",
    "GIT_COMMITTER_NAME": "Test Committer",
    "GIT_COMMITTER_EMAIL": "committer@example.invalid",
}
os.environ.update(ENVIRONMENT)
for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "MIGRATE_AGENT_MODEL"):
    os.environ.pop(name, None)  # no test may spend a developer's tokens

settings.register_profile("tests", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("tests")
