#!/bin/sh
# The npm scripts: `npm run <name>` runs `sh commands.sh <name>`. `exec` replaces this shell, so that a signal to npm
# reaches the program.
set -eu
name=$1
shift
# The row that these print for the table of test/README.md begins with it.
case $name in test | bench | suite | lab) export PROOF_COMMAND="npm run $name${*:+ -- $*}" ;; esac
# The bootstrap installs what is missing and links Node 24. It is called by its path, so that the shell looks up `node`
# only afterwards.
"${npm_node_execpath:-node}" bootstrap.mjs "$name"
# As npm does. Without npm, the shell would find another Node and no tools.
PATH="$PWD/node_modules/.bin:$PATH"

case $name in
dev) exec node host/development/launch.ts "$@" ;;
start)
  # host/README.md gives the reasons for the flags. The image has the same ones.
  MALLOC_ARENA_MAX=2 MALLOC_MMAP_THRESHOLD_=131072 UV_THREADPOOL_SIZE=2 NODE_COMPILE_CACHE=dist/compiled exec node --max-semi-space-size=16 --no-parallel-scavenge dist/host/main.mjs
  ;;
build) exec node esbuild.config.mjs ;;
test) exec vitest run "$@" ;;
check)
  biome check --error-on-warnings .
  tsc
  knip --no-config-hints
  for generator in openapi settings-table role-settings metrics-table observability; do node "infra/tools/$generator.ts" --check; done
  for rule in layers links pages release; do node "infra/tools/$rule.ts"; done
  ;;
generate) for generator in openapi settings-table role-settings metrics-table observability; do node "infra/tools/$generator.ts"; done ;;
bench) exec node test/benchmark/bench.ts "$@" ;;
suite) exec node test/suites/suite.ts "$@" ;;
lab) exec node test/lab/lab.ts "$@" ;;
*)
  echo "There is no command $name." >&2
  exit 2
  ;;
esac
