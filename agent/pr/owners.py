"""Who owns a file by the repository's CODEOWNERS: the last pattern that fits counts, as on GitHub and GitLab."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

PLACES = (".github/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS", ".gitlab/CODEOWNERS")
"""Where a forge looks, the first that is there counts."""


def owners(text: str, paths: Sequence[str]) -> tuple[str, ...]:
    """People (`name`) and teams (`organisation/team`) who own the first of these paths that anyone owns. Addresses of e-mail are left out."""
    rules = list(_rules(text))
    for path in paths:
        last = next((people for pattern, people in reversed(rules) if pattern.match(path)), ())
        names = tuple(name[1:] for name in last if name.startswith("@") and len(name) > 1 and not name.startswith("@@"))
        if names:
            return tuple(dict.fromkeys(names))
    return ()


def _rules(text: str) -> Iterable[tuple[re.Pattern[str], tuple[str, ...]]]:
    defaults: tuple[str, ...] = ()
    for line in text.splitlines():
        words = re.split(r"(?<!\\)\s+", re.sub(r"(^|\s)#.*", "", line).strip())
        if not words[0]:
            continue
        if section := re.match(r"^\^?\[[^\]]*\](?:\[\d+\])?\s*(.*)$", line.strip()):  # GitLab: `[Section][2] @default`
            defaults = tuple(section[1].split())
            continue
        yield re.compile(_pattern(words[0].replace("\\ ", " "))), tuple(words[1:]) or defaults


def _pattern(glob: str) -> str:
    """The glob as a regular expression over paths from the repository's root."""
    anchored = "/" in glob.rstrip("/")
    body = glob.strip("/") if glob.strip("/") else "**"
    parts = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    text = re.sub(r"\*\*/|\*\*|\*|\?|[^*?]+", lambda match: parts.get(match[0], re.escape(match[0])), body)
    # A folder owns what is below it; `folder/*` only the files in it.
    below = "/.+" if glob.endswith("/") else "" if glob.endswith("/*") else "(?:/.+)?"
    return f"^{'' if anchored else '(?:.*/)?'}{text}{below}$"
