/** Makes so many at the same time, and resolves with all of them. */
export const times = <Value>(count: number, make: (index: number) => Promise<Value>): Promise<Value[]> =>
  Promise.all(Array.from({ length: count }, (_, index) => make(index)));
