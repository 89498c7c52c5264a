import { callerFaults } from './callers.ts';
import { databaseFaults } from './database.ts';
import { identityProviderFaults } from './identity-provider.ts';
import { observerFaults } from './observers.ts';
import type { PassingFault } from './passing-fault.ts';

/** Every fault that ends within seconds, to be brought about while a load goes on. */
export const passingFaults: readonly PassingFault[] = Object.entries({
  ...databaseFaults,
  ...identityProviderFaults,
  ...callerFaults,
  ...observerFaults,
}).map(([name, bringAbout]) => ({ name, bringAbout }));
