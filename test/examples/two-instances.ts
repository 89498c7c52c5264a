import { startTokenIssuer } from '../../host/development/token-issuer.ts';
import { startBuiltHost } from '../stage/built-service.ts';
import { untilReady } from '../stage/caller.ts';
import { createDatabase } from '../stage/postgres.ts';
import { environmentOf } from '../stage/service.ts';

/** Two instances of the built service over one database, whose tokens come from an issuer with a token endpoint. */
export async function startTwoInstances() {
  const audience = 'user-management-service';
  const [database, issuer] = await Promise.all([createDatabase(), startTokenIssuer({ audience, port: 0 })]);
  const environment = {
    ...environmentOf(database, { ...issuer, audience }),
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
