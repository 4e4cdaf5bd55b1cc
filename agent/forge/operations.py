"""The operations of each forge that are used, with the scopes that a token needs for them. The documentation and the tests are held against these."""

from __future__ import annotations

from typing import NamedTuple


class Operation(NamedTuple):
    """One operation, as the forge's own description spells it. `fine` is a fine-grained token's permission, `classic` a classic token's scope."""

    method: str
    path: str
    use: str
    fine: str
    classic: str

    @property
    def writes(self) -> bool:
        """Whether it changes anything."""
        return self.method != "get"


_PULLS, _READ = "Pull requests: write", "Pull requests: read"
_REPO = "repo (public_repo for public repositories)"
GITHUB = (
    Operation("get", "/repos/{owner}/{repo}", "default branch, and whether the token may push", "Metadata: read", _REPO),
    Operation(
        "get", "/repos/{owner}/{repo}/branches/{branch}", "whether a branch is protected, before it is pushed", "Contents: read", _REPO
    ),
    Operation("get", "/repos/{owner}/{repo}/pulls", "which requests there are", _READ, _REPO),
    Operation("get", "/repos/{owner}/{repo}/pulls/{pull_number}", "a request, before it turns into a draft or back", _READ, _REPO),
    Operation("get", "/repos/{owner}/{repo}/pulls/{pull_number}/comments", "which lines are commented", _READ, _REPO),
    Operation("get", "/repos/{owner}/{repo}/commits/{ref}/status", "the status of a commit", "Commit statuses: read", "repo:status"),
    Operation("post", "/repos/{owner}/{repo}/pulls", "open a request", _PULLS, _REPO),
    Operation("patch", "/repos/{owner}/{repo}/pulls/{pull_number}", "change its text or base", _PULLS, _REPO),
    Operation("post", "/repos/{owner}/{repo}/issues/{issue_number}/labels", "add labels (--label)", _PULLS, _REPO),
    Operation("post", "/repos/{owner}/{repo}/pulls/{pull_number}/requested_reviewers", "ask for reviews", _PULLS, _REPO),
    Operation("post", "/repos/{owner}/{repo}/pulls/{pull_number}/comments", "comment on a line", _PULLS, _REPO),
    Operation("post", "/repos/{owner}/{repo}/statuses/{sha}", "the status migrate-agent/verify", "Commit statuses: write", "repo:status"),
)
"""Of the REST interface. Draft and ready go over GraphQL (`convertPullRequestToDraft`, `markPullRequestReadyForReview`), with Pull requests: write."""

_API = "api"
GITLAB = (
    Operation("get", "/projects/{id}", "default branch, and whether the token may push", "Developer", _API),
    Operation(
        "get", "/projects/{id}/repository/branches/{branch}", "whether a branch is protected, before it is pushed", "Developer", _API
    ),
    Operation("get", "/projects/{id}/merge_requests", "which requests there are", "Developer", _API),
    Operation("get", "/projects/{id}/merge_requests/{merge_request_iid}", "the commits that a line comment names", "Developer", _API),
    Operation("get", "/projects/{id}/merge_requests/{merge_request_iid}/discussions", "which lines are commented", "Developer", _API),
    Operation("get", "/projects/{id}/repository/commits/{sha}/statuses", "the status of a commit", "Developer", _API),
    Operation("get", "/users", "the number of a reviewer", "Developer", _API),
    Operation("post", "/projects/{id}/merge_requests", "open a request", "Developer", _API),
    Operation(
        "put", "/projects/{id}/merge_requests/{merge_request_iid}", "change text, base, draft, labels or reviewers", "Developer", _API
    ),
    Operation("post", "/projects/{id}/merge_requests/{merge_request_iid}/discussions", "comment on a line", "Developer", _API),
    Operation("post", "/projects/{id}/statuses/{sha}", "the status migrate-agent/verify", "Developer", _API),
)
"""`fine` is the role that the token's user has in the project."""
