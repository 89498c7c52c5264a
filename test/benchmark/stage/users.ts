// The users that are there before a run: each part of one can be worked out from its number, by everybody.

const FIRST_CREATED = Date.UTC(2024, 0, 1);

/** The id of the user with this number, from 1 on: in the order of creation, as UUIDs version 7 are. */
export function idOf(number: number): string {
  return `018f0000-0000-7000-8000-${String(number).padStart(12, '0')}`;
}

/** The address of the user with this number. */
export function emailOf(number: number): string {
  return `user-${number}@example.com`;
}

/** The user with this number as a line of COPY; one in fifty is inactive, and one is created each second. */
export function copyLineOf(number: number): string {
  const created = new Date(FIRST_CREATED + number * 1000).toISOString();
  const isActive = number % 50 === 0 ? 'f' : 't';
  return `${idOf(number)}\t${emailOf(number)}\tUser ${number}\t${isActive}\t${created}\t${created}\n`;
}
