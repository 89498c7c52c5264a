#!/bin/sh
# The first steps of README.md, with the named version of npm: the clone, `npm run dev` to its banner, and `npm test` with one
# file. Ends with `N passed, N failed`, as the tests do.
set -eu

version=$1
root=$(cd "$(dirname "$0")/../.." && pwd)
folder=$(mktemp -d)
# The account of PostgreSQL needs access to the folder. Otherwise its data would be elsewhere, and stay there.
chmod 755 "$folder"
dev=
trap '[ -z "$dev" ] || kill "$dev" 2>/dev/null || true; wait; rm -rf "$folder"' EXIT

# The first or second block of commands under "Try it".
block() {
  awk -v wanted="$1" '/^## / { here = $0 == "## Try it" } /^```/ { inside = here && /sh$/; count += inside; next }
    inside && count == wanted' "$root/README.md"
}

# The repository may belong to another account, from which git refuses to clone.
export GIT_CONFIG_GLOBAL="$folder/gitconfig" REPOSITORY="$root"
git config --global safe.directory '*'
npm install --silent --no-audit --no-fund --prefix "$folder/npm" "npm@$version"
PATH=$folder/npm/node_modules/.bin:$PATH
export PATH
cd "$folder"
echo "npm $(npm --version), Node.js $(node --version)"

# The signal reaches npm, and not its shell.
SVC_PORT=0 sh -euc "$(block 1 | sed 's/^npm run/exec &/')" >"$folder/output" 2>&1 &
dev=$!
seconds=0
until grep -q '^Ctrl-C stops everything' "$folder/output"; do
  if [ "$seconds" -ge 300 ] || ! kill -0 "$dev" 2>/dev/null; then
    cat "$folder/output"
    echo "failed: npm run dev with npm $version: no banner after $seconds s"
    exit 1
  fi
  sleep 1
  seconds=$((seconds + 1))
done
echo "npm run dev is ready after $seconds s"
kill "$dev"
wait "$dev" || true
dev=

cd user-management-service
eval "$(block 2) -- test/users/update.test.ts"
