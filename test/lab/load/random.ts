/** Chance that can be had again: the same seed gives the same numbers in the same order. */
export type Random = ReturnType<typeof seededRandom>;

/** A generator of random numbers (mulberry32). */
export function seededRandom(seed: number) {
  let state = seed >>> 0;

  function next(): number {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  return {
    /** From 0 up to 1, which it never is. */
    next,
    /** A whole number from 0 up to `limit`, which it never is. */
    below: (limit: number) => Math.floor(next() * limit),
    chance: (share: number) => next() < share,
    pick: <Item>(items: readonly Item[]): Item => items[Math.floor(next() * items.length)] as Item,
    /** A generator of its own, so that what one caller does does not hang on how fast the others are. */
    branch: () => seededRandom(Math.floor(next() * 2 ** 32)),
  };
}

/** Deals items at random, but none a second time before every other has been dealt as often. */
export function deckOf<Item>(items: readonly Item[], random: Random): () => Item {
  let deck: Item[] = [];
  return () => {
    if (deck.length === 0) deck = [...items];
    return deck.splice(random.below(deck.length), 1)[0] as Item;
  };
}
