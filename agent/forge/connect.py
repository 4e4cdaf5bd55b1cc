"""From an address and a token to the forge."""

from __future__ import annotations

from migrate_agent.agent.forge.base import Forge
from migrate_agent.agent.forge.remote import Address


def connect(address: Address, token: str) -> Forge:
    """The forge's client; imported only now, since each brings its own HTTP stack."""
    if address.kind == "gitlab":
        from migrate_agent.agent.forge.gitlab import GitLab

        return GitLab(address, token)
    from migrate_agent.agent.forge.github import GitHub

    return GitHub(address, token)
