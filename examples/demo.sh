#!/usr/bin/env bash
# Migrates a copy of examples/gpt in a temporary git repository, by rules alone, and trains both side by side. Needs `migrate-agent` and git on the PATH.
set -euo pipefail

examples="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
work="$(mktemp -d "${TMPDIR:-/tmp}/migrate-agent-demo.XXXXXX")"
repo="$work/gpt"
report="$work/report.json"

cp -R "$examples/gpt" "$repo"
git -C "$repo" init --quiet
git -C "$repo" config user.name "migrate-agent demo"
git -C "$repo" config user.email "demo@example.invalid"
git -C "$repo" add .
git -C "$repo" commit --quiet --message "A small GPT"

status=0
migrate-agent run --repo "$repo" --yes --no-llm --sandbox process --report "$report" || status=$?
[ -f "$report" ] || exit "$status"

branch="$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["branch"])' "$report")"
echo
echo "Repository  $repo"
echo "Branch      $branch"
echo "Report      $report"
git -C "$repo" diff --stat HEAD "$branch"
echo
echo "Read it     git -C $repo show $branch:model_jax.py"
[ "$status" -eq 0 ] || exit "$status"

# Both scripts train for 30 steps from the same weights. Without dropout, whose masks differ, they print the same lines,
# but for a last digit where float32 rounds otherwise; the last line is a sample.
git -C "$repo" worktree add --quiet "$work/migrated" "$branch"
echo
migrate-agent curves train.py --repo "$work/migrated" --sandbox process -- --steps 30 --dropout 0 --batch-size 8 --block-size 32 \
  --n-layer 2 --n-head 2 --n-embd 64 --warmup 4 --eval-every 10 --eval-batches 2 --sample 60 || true
exit "$status"
