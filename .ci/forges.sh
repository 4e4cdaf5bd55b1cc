#!/usr/bin/env bash
# Runs a command with what holds requests to forges against the forges' own descriptions: `.ci/forges.sh make test`.
#
# A validating proxy (Prism) and GitHub's OpenAPI description, from the npm registry, kept in $STATE. Needs root on Debian for what is missing.
set -euo pipefail

STATE=${MIGRATE_AGENT_FORGES:-/var/tmp/migrate-agent-forges}
VERSIONS=(@stoplight/prism-cli@5.14.2 @octokit/openapi@23.0.2)

if ! command -v npm > /dev/null; then
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends nodejs npm > /dev/null
fi
if [[ $(cat "$STATE/installed" 2> /dev/null) != "${VERSIONS[*]}" ]]; then
  mkdir -p "$STATE"
  npm install --prefix "$STATE" --no-audit --no-fund --no-save --silent "${VERSIONS[@]}"
  echo "${VERSIONS[*]}" > "$STATE/installed"
fi
export MIGRATE_AGENT_FORGES=$STATE
MIGRATE_AGENT_REQUIRE=${MIGRATE_AGENT_REQUIRE:+$MIGRATE_AGENT_REQUIRE,}prism "$@"
