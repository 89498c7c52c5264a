import { createPublicKey, generateKeyPairSync, KeyObject, sign } from 'node:crypto';
import type { Random } from '../lab/load/random.ts';
import { encoded, forged, goodParts, hmac, rs256 } from '../stage/forge.ts';
import type { IssuerKey } from '../stage/tokens.ts';

type Parts = {
  readonly key: IssuerKey;
  readonly header: object;
  readonly claims: object;
  /** Where an attacker would have keys fetched from. */
  readonly elsewhere: string;
};
type Forge = (parts: Parts, random: Random) => string;

const attacker = generateKeyPairSync('rsa', { modulusLength: 2048 });
const attackerJwk = attacker.publicKey.export({ format: 'jwk' });
const byAttacker = rs256(attacker.privateKey);

const inSomeCase = (text: string, random: Random) =>
  [...text].map((letter) => (random.chance(0.5) ? letter.toUpperCase() : letter)).join('');

const withHeader = (parts: Parts, change: object, signature = rs256(parts.key)) =>
  forged({ ...parts.header, ...change }, parts.claims, signature);

const withClaims = (parts: Parts, change: object) =>
  forged(parts.header, { ...parts.claims, ...change }, rs256(parts.key));

/** Every published class of forgery, each with a choice of its own; none may be accepted. */
export const FORGERIES: Readonly<Record<string, Forge>> = {
  none: ({ header, claims }, random) =>
    `${encoded({ ...header, alg: inSomeCase('none', random) })}.${encoded(claims)}.${random.pick(['', 'AA', encoded('none')])}`,
  'no signature': ({ header, claims }, random) =>
    forged(header, claims, () => Buffer.alloc(random.pick([0, 1, 64, 255, 256, 257, 512]))),
  'public key as secret': (parts, random) => {
    const publicKey = createPublicKey(KeyObject.from(parts.key.privateKey));
    const secret = random.pick([
      publicKey.export({ type: 'spki', format: 'pem' }),
      publicKey.export({ type: 'pkcs1', format: 'pem' }),
      publicKey.export({ type: 'spki', format: 'der' }),
      String(parts.key.publicJwk.n),
      '',
    ]);
    const alg = random.pick(['HS256', 'HS384', 'HS512']);
    return withHeader(parts, { alg }, hmac(alg, secret) as never);
  },
  'embedded key': (parts, random) =>
    withHeader(parts, { jwk: attackerJwk, ...random.pick([{}, { kid: undefined }]) }, byAttacker),
  'remote key': (parts, random) =>
    withHeader(parts, { [random.pick(['jku', 'x5u'])]: parts.elsewhere }, byAttacker),
  'certificate in the header': (parts) => withHeader(parts, { x5c: [encoded('certificate')] }, byAttacker),
  'kid injection': (parts, random) =>
    withHeader(
      parts,
      { kid: random.pick(['../../dev/null', "' OR '1'='1", '$(id)', '__proto__', '*', '', parts.elsewhere]) },
      random.pick([byAttacker, rs256(parts.key)]),
    ),
  'critical header': (parts, random) =>
    withHeader(
      parts,
      random.pick([{ crit: ['b64'], b64: false }, { crit: ['exp'], exp: 9e9 }, { crit: [] }, { crit: null }]),
    ),
  'unencoded payload': ({ key, header, claims }) => {
    const head = encoded({ ...header, b64: false, crit: ['b64'] });
    return `${head}.${encoded(claims)}.${encoded(rs256(key)(`${head}.${JSON.stringify(claims)}`))}`;
  },
  encryption: ({ header, claims }) =>
    [{ ...header, alg: 'RSA-OAEP-256', enc: 'A256GCM' }, 'key', 'iv', claims, 'tag'].map(encoded).join('.'),
  'another algorithm': (parts, random) =>
    withHeader(parts, {
      alg: random.pick(['RS384', 'PS256', 'ES256', 'EdDSA', 'RS1', 'rs256', 'ES256K', 256, null, ['RS256']]),
    }),
  'another digest': (parts) =>
    withHeader(parts, {}, (input) => sign('sha1', Buffer.from(input), KeyObject.from(parts.key.privateKey))),
  'malleable base64': (parts, random) => {
    const token = withHeader(parts, {});
    return random.pick([
      `${token}=`,
      `${token}==`,
      token.replace(/.$/, (last) => (last === 'B' ? 'C' : 'B')),
      ` ${token} x`,
      token.replace('.', '=.'),
    ]);
  },
  'other parts': (parts, random) => {
    const token = withHeader(parts, {});
    return random.pick([
      `${token}.`,
      `.${token}`,
      token.replaceAll('.', '..'),
      `${token}.${token}`,
      token.split('.').slice(0, 2).join('.'),
    ]);
  },
  'odd claims': (parts, random) =>
    withClaims(
      parts,
      random.pick([
        { exp: 1 },
        { exp: undefined },
        { exp: '9999999999' },
        { nbf: 9e9 },
        { iss: 'https://elsewhere.example' },
        { aud: 'other' },
        { aud: undefined },
        { sub: undefined },
        { sub: 'a\0b' },
        { cnf: { jkt: 'x' } },
      ]),
    ),
  'tampered claims': (parts) => {
    const [header, , signature] = withHeader(parts, {}).split('.');
    return `${header}.${encoded({ ...parts.claims, roles: ['api.superuser'], sub: 'root' })}.${signature}`;
  },
  'duplicate members': ({ key, header, claims }, random) =>
    forged(
      header,
      JSON.stringify(claims).replace(/\}$/, `,${random.pick(['"exp":1', '"aud":"other"', '"iss":"x"'])}}`),
      rs256(key),
    ),
  'no object': ({ key, claims }, random) =>
    forged(random.pick(['"RS256"', 'null', '[]', '{"alg":"RS256"', ' ', '1']), claims, rs256(key)),
  nested: ({ key, claims }, random) => forged('['.repeat(random.below(3000)), claims, rs256(key)),
  huge: (parts, random) => withHeader(parts, { filler: 'x'.repeat(9000 + random.below(2000)), kid: 'none' }),
  'another type': (parts, random) =>
    withHeader(parts, { typ: random.pick(['dpop+jwt', 'logout+jwt', 'JWE', 7, '']) }),
  mutation: (parts, random) => {
    const token = withHeader(parts, {});
    const at = random.below(token.length);
    const other = random.pick([...'ABCxyz019-_.=+/~'].filter((letter) => letter !== token[at]));
    const mutant = random.pick([
      token.slice(0, at) + other + token.slice(at + 1),
      token.slice(0, at) + token.slice(at + 1),
      token.slice(0, at) + token.slice(at, at + 8) + token.slice(at),
      token.slice(0, at),
    ]);
    return mutant === token ? `${token}A` : mutant;
  },
};

/** The parts of a good token, valid for an hour; by default nothing listens elsewhere. */
export function goodTokenParts(
  issuer: Parameters<typeof goodParts>[0]['issuer'],
  elsewhere = 'http://127.0.0.1:9/keys',
): Parts {
  const good = goodParts({ issuer });
  return { ...good, claims: { ...good.claims, exp: good.claims.exp + 3600 }, elsewhere };
}
