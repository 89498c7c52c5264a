import type { Row } from '../run-row.ts';
import { abortedRequests, callerLeaves } from './callers-disconnect.ts';
import { changeFeed } from './change-feed.ts';
import { overload, rollingRestarts } from './commands.ts';
import { deadlocks, serializationFailures } from './conflicts.ts';
import { badTokensFirst, forgedTokens } from './forged-tokens.ts';
import { framing, framingBehindProxies } from './framing.ts';
import { deadConnections, deadConnectionsOneCaller, migrationHalfOpen } from './half-open.ts';
import { hostileBodies } from './hostile-bodies.ts';
import { keyRotation, keysAwayAtStart, keysAwayLater } from './keys.ts';
import { badSettings, collectorAway, terminated } from './life-cycle.ts';
import { logReaders, oddSecrets } from './log.ts';
import { model, modelUnderFaults } from './model.ts';
import { nastyStrings } from './nasty-strings.ts';
import { callerNetwork, keyNetwork, postgresNetwork } from './networks.ts';
import { outcomeUnknown } from './outcome-unknown.ts';
import { poolExhausted } from './pool-exhausted.ts';
import { backendsKilled, postgresCrashed, postgresRestarted } from './postgres-gone.ts';
import { accountRefused, databaseMissing, tooManyConnections } from './postgres-refuses.ts';
import { blackHole, postgresFrozen } from './postgres-silent.ts';
import { diskFull, readOnly } from './postgres-takes-no-writes.ts';
import { paging, partialUpdates, sameAddress } from './racing-writers.ts';
import { fewDescriptors, largeBodies, steadyLoad } from './scarce.ts';
import { killedBeforeAnswer, serviceKilled } from './service-killed.ts';
import { silentConnections, slowClients, unreadLists } from './slow-clients.ts';
import { twoInstances } from './two-instances.ts';
import { unknownKeys } from './unknown-keys.ts';

/** Every row, in the order in which they run: those come first that a short run can least do without. */
export const rows: readonly Row[] = [
  killedBeforeAnswer,
  changeFeed,
  model,
  modelUnderFaults,
  twoInstances,
  serviceKilled,
  backendsKilled,
  postgresRestarted,
  postgresCrashed,
  postgresFrozen,
  blackHole,
  deadConnections,
  deadConnectionsOneCaller,
  migrationHalfOpen,
  poolExhausted,
  tooManyConnections,
  accountRefused,
  databaseMissing,
  diskFull,
  readOnly,
  deadlocks,
  serializationFailures,
  outcomeUnknown,
  callerLeaves,
  postgresNetwork,
  callerNetwork,
  keysAwayAtStart,
  keysAwayLater,
  keyNetwork,
  keyRotation,
  unknownKeys,
  forgedTokens,
  badTokensFirst,
  slowClients,
  unreadLists,
  silentConnections,
  abortedRequests,
  framing,
  framingBehindProxies,
  hostileBodies,
  nastyStrings,
  sameAddress,
  partialUpdates,
  paging,
  largeBodies,
  steadyLoad,
  fewDescriptors,
  terminated,
  badSettings,
  logReaders,
  collectorAway,
  oddSecrets,
  rollingRestarts,
  overload,
];
