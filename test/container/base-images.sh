#!/bin/sh
# Builds the base images that the Dockerfile and infra/compose.yaml name, if they neither exist nor can be pulled:
# from
# the same Debian packages, and Node.js and PostgreSQL in node_modules. LOCAL_BASE_IMAGES=true does not try to pull.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
root=$(CDPATH='' cd -- "$here/../.." && pwd)
# shellcheck source=engine.sh
. "$here/engine.sh"

suite=trixie
# The mirror from which this machine installs.
mirror=${DEBIAN_MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -v security | head -n 1)}
certificates=/etc/ssl/certs/ca-certificates.crt
# The parts of distroless's image of Node.js.
distroless_packages=base-files,netbase,tzdata,media-types,libc6,libssl3t64,libzstd1,zlib1g,libgomp1,libstdc++6,libgcc-s1,gcc-14-base

main() {
  find_engine || { say "no container engine"; exit 1; }
  work=$(mktemp -d)
  trap 'rm -rf "$work"; end_engine' EXIT
  trap 'exit 1' INT TERM
  case $(uname -m) in
    aarch64 | arm64) architecture=arm64 ;;
    *) architecture=x64 ;;
  esac

  provide "$(default_of RUNTIME_IMAGE)" make_distroless
  provide "$(default_of BUILD_IMAGE)" make_node
  provide "$(sed -n 's/^ *image: \(postgres:.*\)$/\1/p' "$root/infra/compose.yaml")" make_postgres
}

default_of() { sed -n "s/^ARG $1=//p" "$root/Dockerfile"; }

provide() {
  if docker image inspect "$1" >/dev/null 2>&1; then return; fi
  if [ "${LOCAL_BASE_IMAGES:-}" != true ] && docker pull --quiet "$1" >/dev/null 2>&1; then return; fi
  say "making $1"
  command -v mmdebstrap >/dev/null || install_packages mmdebstrap
  "$2" "$1"
}

make_distroless() {
  unpack extract "$distroless_packages"
  for user in root:0:/root nobody:65534:/nonexistent nonroot:65532:/home/nonroot; do
    id=${user#*:}
    echo "${user%%:*}:x:${id%%:*}:${id%%:*}::${user##*:}:/sbin/nologin" >>"$tree/etc/passwd"
    echo "${user%%:*}:x:${id%%:*}:" >>"$tree/etc/group"
  done
  echo 'hosts: files dns' >"$tree/etc/nsswitch.conf"
  mkdir -p "$tree/etc/ssl/certs"
  cp "$certificates" "$tree/$certificates"
  install -d -o 65532 -g 65532 -m 0700 "$tree/home/nonroot"
  # No distroless image has further programs. These came along for dpkg.
  find "$tree/usr/bin" "$tree/usr/sbin" "$tree/usr/share/perl5" -mindepth 1 -delete
  install -D "$(node_program)" "$tree/nodejs/bin/node"
  import "$1" --change 'ENTRYPOINT ["/nodejs/bin/node"]' --change 'USER 65532' \
    --change 'WORKDIR /home/nonroot' --change "ENV SSL_CERT_FILE=$certificates"
}

make_node() {
  unpack minbase ca-certificates,libstdc++6
  install -D "$(node_program)" "$tree/usr/local/bin/node"
  mkdir -p "$tree/usr/local/lib/node_modules"
  # The npm of this machine. Its own path follows the first Node.js in PATH.
  npm_program=$(readlink -f "${npm_execpath:-$(command -v npm)}")
  cp -RL "${npm_program%/bin/*}" "$tree/usr/local/lib/node_modules/npm"
  for name in npm npx; do
    ln -s "../lib/node_modules/npm/bin/$name-cli.js" "$tree/usr/local/bin/$name"
  done
  # npm must trust the certificates of this machine, where a proxy may be in front of the registry.
  cp "$certificates" "$tree/$certificates"
  import "$1" --change "ENV NODE_EXTRA_CA_CERTS=$certificates" --change 'CMD ["node"]'
}

make_postgres() {
  # The client contains pg_isready and psql, which the embedded PostgreSQL does not have.
  unpack minbase postgresql-client
  mkdir -p "$tree/usr/local/lib/postgresql" "$tree/docker-entrypoint-initdb.d"
  # The first run creates its library links.
  node_in_project --input-type=module -e "
    const { runnablePostgres } = await import('$root/host/development/postgres/place.ts');
    process.stdout.write(await runnablePostgres({}));
  " >"$work/postgres"
  cp -R "$(cat "$work/postgres")/." "$tree/usr/local/lib/postgresql/"
  chmod -R a+rX,go-w "$tree/usr/local/lib/postgresql"
  for name in postgres initdb pg_ctl; do
    ln -s "../lib/postgresql/bin/$name" "$tree/usr/local/bin/$name"
  done
  install -m 0755 "$here/postgres-entrypoint.sh" "$tree/usr/local/bin/docker-entrypoint.sh"
  echo 'postgres:x:999:999::/var/lib/postgresql:/bin/bash' >>"$tree/etc/passwd"
  echo 'postgres:x:999:' >>"$tree/etc/group"
  install -d -o 999 -g 999 -m 1777 "$tree/var/lib/postgresql" "$tree/run/postgresql"
  import "$1" \
    --change 'ENV PGDATA=/var/lib/postgresql/18/docker' \
    --change 'VOLUME /var/lib/postgresql' \
    --change 'ENTRYPOINT ["docker-entrypoint.sh"]' \
    --change 'EXPOSE 5432' \
    --change 'CMD ["postgres"]'
}

unpack() {
  tree=$work/tree
  rm -rf "$tree"
  mmdebstrap --quiet --mode=root --variant="$1" --include="$2" "$suite" "$tree" "$mirror"
}

import() {
  image=$1
  shift
  tar -C "$tree" --numeric-owner -c . |
    docker import --change 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' "$@" - "$image" >/dev/null
}

node_program() { echo "$root/node_modules/node-linux-$architecture/bin/node"; }

node_in_project() { (cd "$root" && "$(node_program)" "$@"); }

main
