/** The seed of the values that tests draw: the same in each run of `npm test`, unless FUZZ_SEED names another one. */
export const SEED = Number(process.env.FUZZ_SEED || 1);
