import { PostgreSqlContainer } from '@testcontainers/postgresql';
import pg from 'pg';
import { GenericContainer, Network, Wait } from 'testcontainers';
import { docker, images } from './docker.ts';

/** A running container of the service, restricted as in production: its id, and its URL from outside. */
export interface ServiceContainer {
  readonly id: string;
  readonly url: string;
}

const audience = 'user-management-service';

/** Starts a network with PostgreSQL and the token issuer, in which containers of the service can run. */
export async function startStage() {
  const network = await new Network().start();
  const [postgres, issuer] = await Promise.all([
    new PostgreSqlContainer('postgres:18').withNetwork(network).withNetworkAliases('postgres').start(),
    new GenericContainer(images.issuer)
      .withNetwork(network)
      .withNetworkAliases('issuer')
      .withEnvironment({
        ISSUER_HOST: '0.0.0.0',
        ISSUER_PORT: '9000',
        ISSUER_URL: 'http://issuer:9000',
        ISSUER_AUDIENCE: audience,
      })
      .withExposedPorts(9000)
      .withWaitStrategy(Wait.forHealthCheck())
      .start(),
  ]);
  const services: string[] = [];
  const tokenUrl = `http://${issuer.getHost()}:${issuer.getMappedPort(9000)}/token`;

  const settings = {
    SVC_OAUTH_ISSUER: 'http://issuer:9000',
    SVC_OAUTH_JWKS_URI: 'http://issuer:9000/jwks',
    SVC_OAUTH_AUDIENCE: audience,
    SVC_OAUTH_ROLES_CLAIM: 'aud',
    SVC_OTEL_ENABLED: 'false',
    SVC_POSTGRES_HOST: 'postgres',
    SVC_POSTGRES_USER: postgres.getUsername(),
    SVC_POSTGRES_PASSWORD: postgres.getPassword(),
  };

  /** The arguments of `docker run` for the image in this network. */
  const restricted = (database: string, changes: Readonly<Record<string, string>> = {}) => [
    ...['--network', network.getName(), '--read-only', '--cap-drop', 'ALL'],
    ...['--security-opt', 'no-new-privileges', '--memory', '256m'],
    ...Object.entries({ ...settings, SVC_POSTGRES_DB: database, ...changes }).flatMap(([name, value]) => [
      '--env',
      `${name}=${value}`,
    ]),
  ];

  return {
    restricted,

    async startService(
      database: string,
      changes?: Readonly<Record<string, string>>,
    ): Promise<ServiceContainer> {
      const options = ['--publish', '127.0.0.1::8000', '--health-interval', '1s'];
      const id = await docker(
        'run',
        '--detach',
        ...options,
        ...restricted(database, changes),
        images.service,
      );
      services.push(id);
      const [address] = (await docker('port', id, '8000')).split('\n');
      return { id, url: `http://${address}` };
    },

    tokenUrl,

    async token(scope: string): Promise<string> {
      const body = new URLSearchParams({ grant_type: 'client_credentials', client_id: 'test', scope });
      const response = await fetch(tokenUrl, { method: 'POST', body });
      return ((await response.json()) as { access_token: string }).access_token;
    },

    /** Connects to a database, by default to the one for administration. */
    async connect(database = postgres.getDatabase()): Promise<pg.Client> {
      const client = new pg.Client({
        host: postgres.getHost(),
        port: postgres.getPort(),
        user: postgres.getUsername(),
        password: postgres.getPassword(),
        database,
      });
      await client.connect();
      return client;
    },

    async strike(): Promise<void> {
      if (services.length > 0) await docker('rm', '--force', ...services);
      await Promise.all([postgres.stop(), issuer.stop()]);
      await network.stop();
    },
  };
}
