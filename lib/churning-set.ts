/** So many members come before the set of them is made anew, beside as many as there are in it. */
const TURNOVER = 256;

/**
 * A set that lives for long, of members that do not: in the order in which they came. Members are not added within a
 * loop over it.
 *
 * A `Set` to which members are added, and from which they are deleted, moves on to another table every few of them, and
 * the table that it leaves refers to the next. Once one of these is in V8's old space, the garbage collections of the
 * young one, which look no further, take it for alive, and so all tables and members that ever come: 630 MB were moved
 * to the old space where 0.4 were needed, at five times the CPU time. So the set is left, too, before it gets old.
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

  /** Gives whether it was there. */
  delete(member: Member): boolean {
    return this.#members.delete(member);
  }

  clear(): void {
    this.#members = new Set();
  }

  [Symbol.iterator](): SetIterator<Member> {
    return this.#members.values();
  }
}
