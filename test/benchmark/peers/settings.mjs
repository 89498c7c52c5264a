// What every peer is started with.
const { PORT, POSTGRES_URL, ISSUER, AUDIENCE, PUBLIC_KEY } = process.env;

export const settings = {
  port: Number(PORT),
  postgresUrl: POSTGRES_URL,
  issuer: ISSUER,
  audience: AUDIENCE,
  /** The identity provider's key, in PEM. */
  publicKey: PUBLIC_KEY,
};
