#!/bin/sh
# Builds the images with Docker, and runs the given command line. Without a container engine it prints that
# and passes. With CONTAINER_TESTS=required it fails.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
root=$(CDPATH='' cd -- "$here/../.." && pwd)
# shellcheck source=engine.sh
. "$here/engine.sh"

PATH=$root/node_modules/.bin:$PATH
trap end_engine EXIT
trap 'exit 1' INT TERM

if ! find_engine; then
  line='########################################################################'
  printf '\n%s\n# SKIPPED: the container tests. No container engine could be started.\n' "$line" >&2
  printf '# The image was neither built nor run.\n%s\n\n' "$line" >&2
  if [ "${CONTAINER_TESTS:-}" = required ]; then exit 1; fi
  exit 0
fi

"$here/base-images.sh"
has_compose || install_packages docker-compose || say 'no Compose: its test will be skipped'
choose_builder

version=$(cd "$root" && node infra/build-version.ts)
revision=$(git -C "$root" rev-parse HEAD 2>/dev/null || echo unknown)
created=$(git -C "$root" log -1 --format=%cI 2>/dev/null || date -u +%Y-%m-%dT%H:%M:%SZ)
for name in issuer users service; do
  say "building user-management-$name:test"
  docker build --quiet --network host --target "$name" --tag "user-management-$name:test" \
    --build-arg NPM_CONFIG_REGISTRY="$(npm config get registry 2>/dev/null)" \
    --build-arg VERSION="$version" \
    --build-arg REVISION="$revision" --build-arg CREATED="$created" "$root" >&2
done

# The images exist already, and the cleaner of testcontainers would have to be pulled. The tests clean up themselves.
TESTCONTAINERS_RYUK_DISABLED=true "$@"
