import type { Random } from '../lab/load/random.ts';

/** Deals items at random, but none a second time before every other has been dealt as often. */
export function deckOf<Item>(items: readonly Item[], random: Random): () => Item {
  let deck: Item[] = [];
  return () => {
    if (deck.length === 0) deck = [...items];
    return deck.splice(random.below(deck.length), 1)[0] as Item;
  };
}
