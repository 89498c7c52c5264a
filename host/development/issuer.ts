import { startTokenIssuer } from './token-issuer.ts';

// The development issuer by itself, for compose. `ISSUER_URL` is the `iss` of its tokens.
const { ISSUER_HOST = '127.0.0.1', ISSUER_PORT = '9000', ISSUER_URL, ISSUER_AUDIENCE = '' } = process.env;
const issuer = await startTokenIssuer({
  audience: ISSUER_AUDIENCE,
  host: ISSUER_HOST,
  port: Number(ISSUER_PORT),
  ...(ISSUER_URL && { issuer: ISSUER_URL }),
});
const example = `curl -s ${issuer.issuer}/token -d grant_type=client_credentials -d client_id=newcomer`;
process.stdout.write(`The token issuer, for development only, is ready. A token: ${example}\n`);

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  process.once(signal, () => void issuer.stop().then(() => process.exit(0)));
}
