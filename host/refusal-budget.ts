/** Keeps what refusals cost within a share of the process's time: at ten times the load they would take all of it. */
export type RefusalBudget = {
  /** How many more refusals can be paid for now; below 1 when none can. */
  affordable(): number;
  /** Refuses, and pays for it, whatever there is: a debt is paid off first. */
  spend(refuse: () => void): void;
};

/** Of the process's time. */
const SHARE = 0.2;

/** The most that may be saved up, or owed; in milliseconds. */
const LARGEST = 20;

/** Beside what a refusal itself takes, its request was received and parsed: half of 40 microseconds, as measured. */
const WITH_RECEIVING = 2;

/** In milliseconds, before the first one. */
const FIRST_COST = 0.04;

/** The share of the newest refusal in what one costs. */
const WEIGHT = 1 / 16;

/** The budget of one instance; `now` is a clock in milliseconds. */
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
      // A pause of the garbage collector may fall into it.
      const spent = Math.min((now() - begun) * WITH_RECEIVING, LARGEST);
      balance = Math.max(balance - spent, -LARGEST);
      cost += (spent - cost) * WEIGHT;
    },
  };
}
