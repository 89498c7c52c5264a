/** A model with its bounds, and what is checked: the assertions of its steps (safety), or its LTL formula (liveness). */
export type Configuration = {
  readonly name: string;
  readonly model: 'feed' | 'keys';
  /** Bounds and planted faults, as macros of the preprocessor. */
  readonly defines: Readonly<Record<string, number | true>>;
  readonly property: 'safety' | 'liveness';
  /**
   * Whether a state is stored as a hash of 64 bits or more (Spin's hash compaction): two states with the same hash count as
   * one, which is improbable and not impossible.
   */
  readonly isHashed?: boolean;
};

export type Property = keyof typeof PROPERTIES;

/** The properties by the numbers in the models. Liveness has no assertion, so it has the number 0. */
export const PROPERTIES = {
  0: 'in the end every change has a position, each reader is at the head, and each client has a final response',
  1: 'no position has two changes',
  2: 'no change gets a position that a reader has passed',
  3: 'no change has two positions',
  4: 'a write that began after another was answered comes after it',
  5: 'the versions of a user are in order, and none is missing',
  6: 'a cursor after changes that were lost is 410',
  7: 'a read that begins after a write was answered has its change',
  8: 'a page has no gap',
  9: 'only a cursor whose change has expired or was lost is 410',
  11: 'a key makes one user within 24 hours',
  12: 'a 201 has a user that the same caller created',
  13: 'a 201 has a user with the values of the request',
  14: 'only a user that was deleted is 410',
} as const;

const feed = (name: string, defines: Configuration['defines'] = {}): Configuration => ({
  name: `feed: ${name}`,
  model: 'feed',
  defines,
  property: 'LIVENESS' in defines ? 'liveness' : 'safety',
});
const keys = (name: string, defines: Configuration['defines'] = {}): Configuration => ({
  ...feed(name, defines),
  name: `keys: ${name}`,
  model: 'keys',
});

/** For every change of the repository. */
export const SMALL: readonly Configuration[] = [
  feed('2 writers, 1 user, 1 reader, a failover', { FAILOVERS: 1 }),
  feed('2 writers, 2 users, 1 reader', { USERS: 2 }),
  feed('2 writers, 2 readers, steps of 1', { USERS: 2, CHANGES: 2, READERS: 2, STEP: 1 }),
  feed('a crash, settling and retention', { CHANGES: 2, CRASHES: 1, CLEANERS: 1 }),
  feed('liveness with settling', { LIVENESS: true, CHANGES: 2, USERS: 2, CLEANERS: 1, ROLLBACKS: 0 }),
  keys('2 clients of 1 caller, a failover', { CALLERS: 1, FAILOVERS: 1 }),
  keys('2 callers, 1 client each', { CLIENTS: 1 }),
  keys('liveness', { LIVENESS: true, CALLERS: 1 }),
];

const THREE = { WRITERS: 3, ROLLBACKS: 0 };

const LARGEST: readonly Configuration[] = [
  feed('3 writers, 3 users, a failover', { ...THREE, USERS: 3, FAILOVERS: 1 }),
  feed('3 writers, 2 readers, a crash', { ...THREE, USERS: 2, READERS: 2, CRASHES: 1, FAILOVERS: 1 }),
  feed('2 users, 1 reader, settling, retention, a crash', { USERS: 2, CRASHES: 1, CLEANERS: 1 }),
  feed('settling and retention, a failover', { FAILOVERS: 1, CLEANERS: 1 }),
  feed('2 instances that settle and delete', { CHANGES: 2, USERS: 2, CLEANERS: 2 }),
  feed('late commits', { LIVENESS: true, LATE_COMMITS: true, CHANGES: 2, USERS: 2, CLEANERS: 1 }),
  keys('2 callers, 2 clients each, other values', { VALUES: 2 }),
  keys('3 clients, 2 days', { CALLERS: 1, CLIENTS: 3, FAILOVERS: 1, DAYS: 2, LOSSES: 2 }),
];

/** For the lab. */
export const LARGE = LARGEST.map((configuration) => ({ ...configuration, isHashed: true }));

/** A design fault, and the property that finds it. */
function planted(of: Configuration, macro: string, foundBy: Property) {
  return { ...of, name: macro, defines: { ...of.defines, [macro]: true } as const, foundBy };
}

const cleaning = feed('', { CLEANERS: 1, ROLLBACKS: 0 });

export const FAULTS = [
  // The statement that writes gives the position.
  planted(feed('', { USERS: 2, ROLLBACKS: 0 }), 'POSITION_BEFORE_COMMIT', 8),
  // A reader reads `position > cursor`, and does not number first.
  planted(cleaning, 'READ_WITHOUT_NUMBERING', 7),
  // Retention deletes changes that have no position yet.
  planted(cleaning, 'RETENTION_BEFORE_NUMBERING', 7),
  // A cursor is a position, without the identity of its change.
  planted(feed('', { FAILOVERS: 1 }), 'BARE_CURSOR', 6),
  // Numbering counts from a head that it has not locked.
  planted(feed('', { READERS: 2 }), 'NUMBERING_WITHOUT_LOCK', 9),
  // The sequence number is drawn before the row is locked.
  planted(feed(''), 'SEQUENCE_BEFORE_LOCK', 5),
  // The sequence is settled past writes that have not ended.
  planted(feed('', { USERS: 2 }), 'LATE_FORGOTTEN', 7),
  // Retention deletes changes, then moves `expired`.
  planted(cleaning, 'RETENTION_IN_TWO_STATEMENTS', 8),
  // The digest of a key does not contain the caller.
  planted(keys(''), 'KEY_WITHOUT_CALLER', 12),
  // The key is stored after the commit of the user.
  planted(keys(''), 'KEY_AFTER_USER', 11),
  // The key is committed before the user.
  planted(keys(''), 'KEY_BEFORE_USER', 14),
  // Expiry deletes what its snapshot found, and does not look again.
  planted(keys(''), 'EXPIRY_WITHOUT_LOOK', 11),
];
