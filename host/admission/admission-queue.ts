/** The queue of requests that wait for admission, in the order in which they came. */
export type AdmissionQueue<QueuedRequest> = {
  readonly length: number;
  /** Whether the queue has a request that may be admitted now. */
  readonly hasNext: boolean;
  add(arrival: QueuedRequest): void;
  /** Removes the first request that may be admitted now. */
  takeNext(): QueuedRequest | undefined;
  /** Removes all requests that came before a time of `performance.now`, in milliseconds. */
  takeThoseBefore(moment: number): QueuedRequest[];
};

type Waiting<QueuedRequest> = { readonly arrival: QueuedRequest; readonly since: number };

/** Creates a queue in which memory-intensive requests wait for their limit, without delaying the others. */
export function createAdmissionQueue<QueuedRequest extends { readonly isMemoryIntensive: boolean }>(
  isTurnOfHeavy: () => boolean,
): AdmissionQueue<QueuedRequest> {
  const light: Waiting<QueuedRequest>[] = [];
  const heavy: Waiting<QueuedRequest>[] = [];

  /** The queue whose first request is the next one. */
  function next(): Waiting<QueuedRequest>[] {
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
      (arrival.isMemoryIntensive ? heavy : light).push({ arrival, since: performance.now() });
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
