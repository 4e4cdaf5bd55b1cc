#!/usr/bin/env bash
# Runs a command with a Docker engine at hand, and with what the sandbox tests need installed: `.ci/docker.sh make test`.
#
# Takes the engine that answers already, else starts one and stops it at the end. Needs root on Debian for what is missing.
# Base image: Debian from its package archives, so that no image registry is needed. Its data stay in $STATE and are used again.
set -euo pipefail

PYTHON=${PYTHON_IN_VENV:-.venv/bin/python}
STATE=${MIGRATE_AGENT_ENGINE:-/var/tmp/migrate-agent-engine}
DEBIAN=migrate-agent-debian:bookworm-named

install() { # COMMAND PACKAGE…: installs the packages where the command is missing
  command -v "$1" > /dev/null && return
  [[ -n ${UPDATED:-} ]] || { apt-get update -qq && UPDATED=yes; }
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${@:2}" > /dev/null
}

answers() { docker info > /dev/null 2>&1; }

start() {
  mkdir -p "$STATE"
  export DOCKER_HOST=unix://$STATE/socket
  answers && return
  # Containers of the sandbox have no network, so the engine needs neither a bridge nor firewall rules.
  dockerd --data-root "$STATE/data" --exec-root "$STATE/exec" --pidfile "$STATE/pid" --host "$DOCKER_HOST" \
    --iptables=false --bridge=none > "$STATE/log" 2>&1 &
  ENGINE=$!
  trap 'kill $ENGINE; wait $ENGINE || true' EXIT
  for _ in $(seq 120); do
    answers && return
    kill -0 $ENGINE 2> /dev/null || break
    sleep 0.5
  done
  tail -n 20 "$STATE/log" >&2
  echo "the Docker engine did not start" >&2
  return 1
}

debian() {
  docker image inspect "$DEBIAN" > /dev/null 2>&1 && return
  install debootstrap debootstrap
  local root
  root=$(mktemp -d)
  debootstrap --variant=minbase bookworm "$root" > "$STATE.debootstrap.log" || { tail "$STATE.debootstrap.log" >&2; return 1; }
  chmod 755 "$root/root" # an empty file system mounted there takes this mode, and environments below it must be in reach
  # debootstrap copies the host's name, and a fresh host has the same users: marked, so that tests can tell them apart
  echo "sandbox" > "$root/etc/hostname"
  sed -i '1i image:x:65533:65533:of the base image:/nonexistent:/usr/sbin/nologin' "$root/etc/passwd"
  tar -C "$root" --exclude=./dev --exclude=./var/cache/apt -c . | docker import - "$DEBIAN" > /dev/null
  rm -rf "$root"
}

install bwrap bubblewrap
install dockerd docker.io
command -v docker > /dev/null || install docker-cli docker-cli
answers || start
debian
"$PYTHON" -c 'from migrate_agent.agent.cli import main; main()' sandbox build --base "$DEBIAN"
MIGRATE_AGENT_REQUIRE=docker,bubblewrap,tpu "$@"
