#!/bin/sh
# The first steps in a fresh clone, with the named version of npm: `npm run dev` to its banner, and one file of tests.
# Ends with `N passed, N failed`, as the tests do.
set -eu

version=$1
root=$(cd "$(dirname "$0")/../.." && pwd)
folder=$(mktemp -d)
# The account of PostgreSQL needs access to the folder. Otherwise its data would be elsewhere, and stay there.
chmod 755 "$folder"
dev=
trap '[ -z "$dev" ] || kill "$dev" 2>/dev/null || true; wait; rm -rf "$folder"' EXIT

# As in any clone. The repository may belong to another account, from which git refuses to clone.
mkdir "$folder/clone"
git -c "safe.directory=$root" -C "$root" archive HEAD | tar -x -C "$folder/clone"
npm install --silent --no-audit --no-fund --prefix "$folder/npm" "npm@$version"
PATH=$folder/npm/node_modules/.bin:$PATH
export PATH
cd "$folder/clone"
echo "npm $(npm --version), Node.js $(node --version)"

SVC_PORT=0 npm run dev >"$folder/output" 2>&1 &
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

npm test -- test/users/update.test.ts
