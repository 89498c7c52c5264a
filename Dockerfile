# The defaults are public images. --build-arg replaces them by a mirror or a digest.
ARG BUILD_IMAGE=node:24.21.0-trixie-slim
ARG RUNTIME_IMAGE=gcr.io/distroless/nodejs24-debian13:nonroot
# With the commit, which the image cannot know by itself: --build-arg VERSION="$(node infra/build-version.ts)".
ARG VERSION=1.5.0-dev

FROM ${RUNTIME_IMAGE} AS distroless

FROM ${BUILD_IMAGE} AS build
WORKDIR /user-management-service
# A mirror of the npm registry, if there is one.
ARG NPM_CONFIG_REGISTRY
COPY package.json package-lock.json .npmrc ./
# No package needs its scripts for the build.
RUN npm ci --ignore-scripts
COPY . .
ARG VERSION
RUN node esbuild.config.mjs --version="${VERSION}"

# The bundle's code as V8 compiles it at the first start. The cache makes every later start a third shorter. It belongs to
# this Node.js, this user and this path. If one of them or the processor differs, Node.js ignores it.
FROM build AS compiled
COPY --from=distroless /nodejs /nodejs
RUN cp -r dist/host /app && mkdir /app/compiled && chown 65532:65532 /app/compiled
# Scanners find Debian's packages by themselves, but not the packages within a bundle.
RUN /nodejs/bin/node infra/tools/sbom.ts > /app/sbom.cdx.json
USER 65532:65532
ENV SVC_ENV=production SVC_PORT=0 SVC_POSTGRES_HOST=nowhere.invalid NODE_COMPILE_CACHE=/app/compiled \
    SVC_OAUTH_JWKS_URI=http://nowhere.invalid/ SVC_OAUTH_ISSUER=none SVC_OAUTH_AUDIENCE=none
RUN timeout --signal=TERM --kill-after=10 2 /nodejs/bin/node /app/main.mjs > /dev/null || test $? -eq 124

# The base image unchanged: its maintainers are responsible for its contents, and scanners know it. The image has 161 MB,
# of which the base has 154, measured with a base made of the same Debian packages.
FROM distroless AS runtime
USER 65532:65532
WORKDIR /app
STOPSIGNAL SIGTERM
ENTRYPOINT ["/nodejs/bin/node"]

# docker build --target sbom --output dist . writes the software bill of materials.
FROM scratch AS sbom
COPY --from=compiled /app/sbom.cdx.json /

# For development only: gives a token to every client that asks. See infra/compose.yaml.
FROM runtime AS issuer
COPY --from=build /user-management-service/dist/development /app
EXPOSE 9000
HEALTHCHECK --interval=5s --timeout=3s --start-period=5s \
    CMD ["/nodejs/bin/node", "-e", "fetch('http://127.0.0.1:9000/jwks').then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
CMD ["/app/issuer.mjs"]

# The command `users`, for the component `relay` of Kubernetes: docker build --target users.
FROM build AS command
ARG NPM_CONFIG_REGISTRY
RUN npm ci --ignore-scripts --prefix infra/client && npm run build --prefix infra/client && \
    npx esbuild infra/client/dist/command/main.js --bundle --platform=node --format=esm --outfile=/users.mjs

FROM runtime AS users
COPY --from=command /users.mjs /app/users.mjs
ENTRYPOINT ["/nodejs/bin/node", "/app/users.mjs"]

FROM runtime AS service
ARG VERSION
ARG REVISION=unknown
ARG CREATED=1970-01-01T00:00:00Z
ARG RUNTIME_IMAGE
LABEL org.opencontainers.image.title="user-management-service" \
      org.opencontainers.image.description="An HTTP JSON API that keeps user records in PostgreSQL, for callers with OAuth 2.0 access tokens." \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.created="${CREATED}" \
      org.opencontainers.image.licenses="LicenseRef-Proprietary" \
      org.opencontainers.image.base.name="${RUNTIME_IMAGE}"
COPY --from=compiled /app /app
ENV SVC_ENV=production NODE_COMPILE_CACHE=/app/compiled MALLOC_ARENA_MAX=2 MALLOC_MMAP_THRESHOLD_=131072 UV_THREADPOOL_SIZE=2
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=5s \
    CMD ["/nodejs/bin/node", "-e", "const { SVC_HOST: host, SVC_PORT: port } = process.env; const own = { '': '127.0.0.1', '0.0.0.0': '127.0.0.1', '::': '::1' }[host ?? ''] ?? host; fetch(`http://${own.includes(':') ? `[${own}]` : own}:${port || 8000}/health`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
# The source maps are beside the bundle. Reading them makes the start half as long again, so they are read only on demand,
# with NODE_OPTIONS=--enable-source-maps.
CMD ["--max-semi-space-size=16", "--no-parallel-scavenge", "/app/main.mjs"]
