/** Those who wait at the door, in the order in which they came. */
export type Line<Arrival> = {
  readonly length: number;
  /** Whether there is one who may be let in now. */
  readonly hasNext: boolean;
  add(arrival: Arrival): void;
  /** Takes the first of those who may be let in now. */
  takeNext(): Arrival | undefined;
  /** Takes all who came before a moment; in milliseconds of `performance.now`. */
  takeThoseBefore(moment: number): Arrival[];
};

type Waiting<Arrival> = { readonly arrival: Arrival; readonly since: number };

/** A line in which the heavy wait while it is not their turn, and nobody behind them does. */
export function createLine<Arrival extends { readonly isHeavy: boolean }>(
  isTurnOfHeavy: () => boolean,
): Line<Arrival> {
  const light: Waiting<Arrival>[] = [];
  const heavy: Waiting<Arrival>[] = [];

  /** Whose first one is the next. */
  function next(): Waiting<Arrival>[] {
    const [firstLight, firstHeavy] = [light[0], heavy[0]];
    if (!firstHeavy || !isTurnOfHeavy()) return light;
    return firstLight && firstLight.since <= firstHeavy.since ? light : heavy;
  }

  return {
    get length() {
      return light.length + heavy.length;
    },
    get hasNext() {
      return next().length > 0;
    },
    add(arrival) {
      (arrival.isHeavy ? heavy : light).push({ arrival, since: performance.now() });
    },
    takeNext: () => next().shift()?.arrival,
    takeThoseBefore(moment) {
      return [light, heavy].flatMap((waiting) => {
        const first = waiting.findIndex(({ since }) => since >= moment);
        return waiting.splice(0, first < 0 ? waiting.length : first).map(({ arrival }) => arrival);
      });
    },
  };
}
