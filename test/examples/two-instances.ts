import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../../host/development/free-port.ts';
import { startTokenIssuer } from '../../host/development/token-issuer.ts';
import { startFront } from '../lab/stage/front.ts';
import { startBuiltHost } from '../stage/built-host.ts';
import { untilReady } from '../stage/built-service.ts';
import { createDatabase } from '../stage/postgres.ts';
import { environmentOf } from '../stage/service.ts';
import { until } from '../stage/until.ts';

/** Two instances of the built service over one database, whose tokens come from an issuer with a token endpoint. */
export async function startTwoInstances() {
  const audience = 'user-management-service';
  const [database, port] = await Promise.all([createDatabase(), freePort()]);
  const issuer = await startTokenIssuer({ audience, port });
  const environment = {
    ...environmentOf(database, { issuer: issuer.issuer, jwksUri: issuer.jwksUri, audience }),
    SVC_OAUTH_ROLES_CLAIM: 'aud',
  };
  const hosts = await Promise.all([startBuiltHost(environment), startBuiltHost(environment)]);
  const urls = await Promise.all(hosts.map((host) => host.untilListening()));
  await Promise.all(urls.map(untilReady));
  return {
    url: urls[0] as string,
    ports: urls.map((url) => Number(new URL(url).port)),
    environment,
    database,
    issueToken: issuer.issueToken,
    credentials: { ACCEPT_TOKEN_URL: issuer.tokenEndpoint, ACCEPT_CLIENT_ID: 'acceptance' },
    async stop() {
      await Promise.all([...hosts.map((host) => host.remove()), issuer.stop()]);
      await database.drop();
    },
  };
}

const EXAMPLES = join(import.meta.dirname, '../../infra/examples');

/** Starts the program of an example with it as it stands, but for ports and the folder of its files. */
export async function startBalancer(
  program: 'nginx' | 'haproxy',
  name: string,
  [one, two]: readonly number[],
) {
  const balancer = await startFront(program, (port, folder) =>
    readFileSync(join(EXAMPLES, name), 'utf8')
      .replaceAll('127.0.0.1:8080', `127.0.0.1:${port}`)
      .replaceAll('127.0.0.1:8000', `127.0.0.1:${one}`)
      .replaceAll('127.0.0.1:8001', `127.0.0.1:${two}`)
      .replaceAll('/tmp/', `${folder}/`),
  );
  const isReady = () =>
    fetch(`${balancer.url}/ready`).then(
      ({ ok }) => ok,
      () => false,
    );
  await until(`${program} leads to the service`, isReady);
  return balancer;
}
