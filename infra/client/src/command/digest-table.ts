/** Positive numbers by digests, in a third of the memory of a Map. */
export class DigestTable {
  size = 0;
  #keys = new Float64Array(1024);
  #values = new Uint32Array(1024);

  get(key: number): number | undefined {
    return this.#values[this.#find(key)] || undefined;
  }

  set(key: number, value: number): void {
    const slot = this.#find(key);
    if (this.#values[slot] === 0) this.size += 1;
    this.#keys[slot] = key;
    this.#values[slot] = value;
    if (this.size * 3 < this.#keys.length * 2) return;
    const [keys, values] = [this.#keys, this.#values];
    this.#keys = new Float64Array(keys.length * 2);
    this.#values = new Uint32Array(keys.length * 2);
    this.size = 0;
    for (const [index, one] of values.entries()) if (one > 0) this.set(keys[index] as number, one);
  }

  /** The slot of a digest, or the free one that it would have. */
  #find(key: number): number {
    const last = this.#keys.length - 1;
    let slot = key & last;
    while (this.#values[slot] !== 0 && this.#keys[slot] !== key) slot = (slot + 1) & last;
    return slot;
  }
}
