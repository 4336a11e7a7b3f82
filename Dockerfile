# The broker's image: Node, the production packages, the source; nothing is compiled, because Node runs the TypeScript as
# it is. It holds no configuration: one is mounted at /etc/sandbox-broker/config.yaml (docs/deployment.md).
#
#   docker build -t sandbox-broker/broker:local --label org.opencontainers.image.revision="$(git rev-parse HEAD)" .
#
# scripts/build-broker-image.sh makes the same image out of this machine's files where no registry is in reach. It reads
# the last stage: its files (COPY) and what the engine is told about it (all other lines). Nothing here needs BuildKit.
ARG NODE_VERSION=24.21.0

FROM node:${NODE_VERSION}-bookworm-slim AS packages
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# The optional packages are Node itself, for machines without one.
RUN npm ci --omit=dev --omit=optional --ignore-scripts --no-audit --no-fund

FROM node:${NODE_VERSION}-bookworm-slim
LABEL org.opencontainers.image.title="sandbox-broker" \
  org.opencontainers.image.description="Hands out container sandboxes to AI-agent gateways" \
  org.opencontainers.image.version="0.1.0" \
  org.opencontainers.image.licenses="MIT"
# HEALTH_URL is what the health check asks; a configuration with another server.port or server.host needs another one.
ENV NODE_ENV=production HEALTH_URL=http://127.0.0.1:8080/healthz
WORKDIR /app
# Owned by root: the process cannot change what it runs. It writes no file, so the root file system may be read-only.
COPY --from=packages /app/node_modules node_modules
COPY package.json config.example.yaml LICENSE ./
COPY src src
# A number, so that Kubernetes can tell that it is not root. The Docker socket is opened to it by the socket's group
# (--group-add); an engine over TCP with TLS needs readable certificates and no group.
USER 10001:10001
EXPOSE 8080
# Whether the process runs. Whether it wants traffic is for load balancers: /readyz.
HEALTHCHECK --interval=10s --timeout=5s --start-period=15s --retries=3 \
  CMD ["node", "-e", "fetch(process.env.HEALTH_URL).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
# Without a shell in between, a signal reaches node itself. It starts no other process, so that it needs no init to reap them.
ENTRYPOINT ["node", "src/main.ts"]
CMD ["--config", "/etc/sandbox-broker/config.yaml"]
