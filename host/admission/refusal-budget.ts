/**
 * Limits the cost of refusals to a share of the process's time. At ten times the capacity they would take all of it.
 */
export type RefusalBudget = {
  /** Number of further refusals that can be paid for now; below 1 if none can. */
  affordable(): number;
  /** Refuses and pays for it in any case. A debt is paid off first. */
  spend(refuse: () => void): void;
};

/** Share of the process's time. */
const SHARE = 0.2;

/** Maximum saving or debt, in milliseconds. */
const LARGEST = 20;

/** Factor for receiving and parsing the request, which takes half of the measured 40 microseconds. */
const WITH_RECEIVING = 2;

/** Cost in milliseconds before the first refusal. */
const FIRST_COST = 0.04;

/** Weight of the latest refusal in the average cost. */
const WEIGHT = 1 / 16;

/** Creates the budget of one instance. `now` is a clock in milliseconds. */
export function createRefusalBudget(now = () => performance.now()): RefusalBudget {
  let balance = LARGEST;
  let balanceAt = now();
  let cost = FIRST_COST;

  return {
    affordable() {
      const at = now();
      balance = Math.min(balance + (at - balanceAt) * SHARE, LARGEST);
      balanceAt = at;
      return balance / cost;
    },
    spend(refuse) {
      const begun = now();
      refuse();
      // The time may include a garbage collection.
      const spent = Math.min((now() - begun) * WITH_RECEIVING, LARGEST);
      balance = Math.max(balance - spent, -LARGEST);
      cost += (spent - cost) * WEIGHT;
    },
  };
}
