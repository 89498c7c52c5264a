import { percentiles } from '../../lab/meters/percentile.ts';

/** Collects times in milliseconds, as many as come. */
export class Latencies {
  #times = new Float64Array(1 << 16);
  #count = 0;

  add(time: number): void {
    if (this.#count === this.#times.length) {
      const larger = new Float64Array(this.#times.length * 2);
      larger.set(this.#times);
      this.#times = larger;
    }
    this.#times[this.#count++] = time;
  }

  get count(): number {
    return this.#count;
  }

  /** The time that this part (0 to 1) of all did not exceed. */
  percentiles(...parts: readonly number[]): number[] {
    return percentiles(this.#times.subarray(0, this.#count), ...parts);
  }
}
