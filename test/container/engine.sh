# shellcheck shell=sh
# Sourced by the scripts beside it: finds the container engine, or starts one that ends with the script.

say() { echo "container: $*" >&2; }

# Returns 1 if no engine is available.
find_engine() {
  if answers; then return 0; fi
  if [ "$(id -u)" -ne 0 ]; then return 1; fi
  if ! command -v dockerd >/dev/null; then install_packages docker.io || return 1; fi
  engine_folder=$(mktemp -d)
  # On a socket of its own, so that no other program depends on an engine that is about to end.
  DOCKER_HOST=unix://$engine_folder/docker.sock
  export DOCKER_HOST
  dockerd --host "$DOCKER_HOST" --pidfile "$engine_folder/docker.pid" >"$engine_folder/log" 2>&1 &
  engine=$!
  for _ in $(seq 60); do
    if answers; then
      say 'started dockerd, which ends with this script'
      return 0
    fi
    kill -0 "$engine" 2>/dev/null || break
    sleep 0.5
  done
  say "dockerd does not start: $(tail -n 3 "$engine_folder/log")"
  end_engine
  return 1
}

# By its id, and only the one that was started here.
end_engine() {
  if [ -z "${engine:-}" ]; then return; fi
  kill "$engine" 2>/dev/null || true
  wait "$engine" 2>/dev/null || true
  rm -rf "$engine_folder"
  engine=
}

has_compose() { docker compose version >/dev/null 2>&1 || docker-compose version >/dev/null 2>&1; }

answers() { command -v docker >/dev/null && docker info >/dev/null 2>&1; }

install_packages() {
  if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then return 1; fi
  say "installing $*"
  { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"; } >/dev/null 2>&1
}

# The old builder needs no plugin. Without this variable, a client that lacks the plugin refuses to build.
choose_builder() {
  if [ -z "${DOCKER_BUILDKIT:-}" ] && ! docker buildx version >/dev/null 2>&1; then
    export DOCKER_BUILDKIT=0
  fi
}
