/** Number of members that are added before the set is replaced, besides as many as it contains. */
const TURNOVER = 256;

/**
 * A long-lived set of short-lived members, in the order in which they were added. Do not add members within a loop over
 * it.
 *
 * A `Set` moves to another table after every few additions and deletions, and the table that it leaves refers to the
 * next. If one of these tables is in V8's old space, collections of the young space, which look no further, treat it as
 * alive, and with it all later tables and members. This class therefore replaces the set before it gets old. With plain
 * sets a get takes 1.6 times the server's CPU time, an update 1.5 times, a batch of 100 1.3 times.
 */
export class ChurningSet<Member> {
  #members = new Set<Member>();
  #added = 0;

  get size(): number {
    return this.#members.size;
  }

  add(member: Member): void {
    this.#added += 1;
    if (this.#added > TURNOVER + this.#members.size) {
      this.#members = new Set(this.#members);
      this.#added = 0;
    }
    this.#members.add(member);
  }

  delete(member: Member): boolean {
    return this.#members.delete(member);
  }

  [Symbol.iterator](): SetIterator<Member> {
    return this.#members.values();
  }
}
