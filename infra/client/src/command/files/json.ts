import { EXIT, type ExitCode, Failure } from '../failure.ts';
import type { ColumnMap } from './columns.ts';
import { createEntry, type Entry, parseJson, TOO_LONG } from './entry.ts';
import { isTooLong, MAX_BYTES, type Scanner, scan } from './scanner.ts';

/** An element of the list of users, and the line at which it begins. `text` is undefined if it is too long. */
type Element = { readonly line: number; readonly text: string | undefined; readonly value: unknown };

/** Where the scanner is: before the document, in the name or the value of a member, in the list, after the document. */
type Place = 'begin' | 'name' | 'member' | 'list' | 'end';

const [LINE_FEED, RETURN] = [10, 13];

/**
 * Reads the elements of a JSON array, or of the array `users` of an object. An element is parsed as a whole. No package does
 * this: @streamparser/json keeps an element in memory, whatever its size, and takes ten times as long.
 */
export class JsonScanner implements Scanner<Element> {
  fault: Failure | undefined;
  line = 1;
  /** Whether the list has begun. */
  hasList = false;
  #place: Place = 'begin';
  #isInObject = false;
  #name: unknown;
  /** The brackets that are open within the value, and whether it is in a string, behind a backslash, begun or complete. */
  #depth = 0;
  #isString = false;
  #isEscaped = false;
  #value: 'none' | 'begun' | 'done' = 'none';
  /** The text of the element or the name so far. */
  #text = '';
  #length = 0;
  #begin = 1;
  #isFirst = true;
  #isAfterReturn = false;

  push(text: string): Element[] {
    const elements: Element[] = [];
    let from = 0;
    for (let at = 0; at < text.length && !this.fault; at += 1) {
      const code = text.charCodeAt(at);
      if (code === RETURN || (code === LINE_FEED && !this.#isAfterReturn)) this.line += 1;
      this.#isAfterReturn = code === RETURN;
      if (this.#isString) {
        if (this.#isEscaped) this.#isEscaped = false;
        else if (code === 92) this.#isEscaped = true;
        else if (code === 34) this.#endPart();
        else if (code < 32) this.#fail('a control character within a string');
        continue;
      }
      if (code === 32 || code === 9 || code === LINE_FEED || code === RETURN) {
        if (this.#value === 'begun' && this.#depth === 0) this.#value = 'done';
        continue;
      }
      const character = text[at] as string;
      const isOuter = this.#depth === 0;
      if (this.#place === 'begin' || this.#place === 'end') this.#enter(character);
      else if (isOuter && character === ':' && this.#place === 'name') {
        this.#add(text.slice(from, at));
        this.#name = this.#parse();
        if (typeof this.#name !== 'string') this.#fail('not JSON');
        this.#startPart('member');
      } else if (isOuter && (character === ',' || character === ']' || character === '}')) {
        this.#endValue(character, text.slice(from, at), elements);
      } else if (isOuter && character === '[' && this.#isList()) {
        this.hasList = true;
        this.#startPart('list');
        this.#isFirst = true;
      } else {
        if (this.#value === 'done') this.#fail('not JSON');
        if (this.#value === 'none') {
          this.#begin = this.line;
          from = at;
        }
        this.#value = 'begun';
        if (character === '"') this.#isString = true;
        else if (character === '[' || character === '{') this.#depth += 1;
        else if (character === ']' || character === '}') {
          this.#depth -= 1;
          if (this.#depth === 0) this.#value = 'done';
        }
        continue;
      }
      from = at + 1;
    }
    this.#add(text.slice(from));
    return elements;
  }

  end(): Element[] {
    if (this.#place !== 'end' && this.#place !== 'begin')
      this.#fail('the file ends before its list of users does');
    return [];
  }

  #enter(character: string): void {
    if (this.#place === 'end')
      this.#fail('something follows the list of users', character === '{' ? EXIT.wrongUse : EXIT.failed);
    else if (character === '[') {
      this.hasList = true;
      this.#startPart('list');
    } else if (character === '{') {
      this.#isInObject = true;
      this.#startPart('name');
    } else this.#fail('not JSON');
  }

  #isList(): boolean {
    return this.#place === 'member' && this.#name === 'users' && this.#value === 'none';
  }

  /** A comma or a bracket outside of the value ends the value, or the list or the object around it. */
  #endValue(character: string, text: string, elements: Element[]): void {
    const isEnd = character !== ',';
    if (this.#place === 'list') {
      this.#add(text);
      const isEmpty = this.#value === 'none';
      if (character === '}' || (isEmpty && !(isEnd && this.#isFirst))) this.#fail('not JSON');
      const isLong = this.#length > 2 * MAX_BYTES || isTooLong(this.#text.length, () => this.#text.trimEnd());
      const value = isEmpty || isLong ? undefined : this.#parse();
      if (!isEmpty && !this.fault)
        elements.push({ line: this.#begin, text: isLong ? undefined : this.#text, value });
      this.#isFirst = false;
      this.#startPart(!isEnd ? 'list' : this.#isInObject ? 'member' : 'end');
      if (isEnd) this.#value = 'done';
    } else if (character === ']' || (this.#place === 'name' && (!isEnd || this.#value !== 'none'))) {
      this.#fail('not JSON');
    } else if (this.#place === 'member' && this.#value === 'none') this.#fail('not JSON');
    else if (!isEnd) this.#startPart('name');
    else if (this.hasList) this.#startPart('end');
    else this.#fail('an object without a list "users"; list the objects in [ and ]', EXIT.wrongUse);
  }

  #endPart(): void {
    this.#isString = false;
    if (this.#depth === 0) this.#value = 'done';
  }

  #startPart(place: Place): void {
    this.#place = place;
    this.#value = 'none';
    this.#text = '';
    this.#length = 0;
  }

  #add(text: string): void {
    if (this.#value === 'none' || (this.#place !== 'list' && this.#place !== 'name')) return;
    this.#length += text.length;
    this.#text = this.#length > 2 * MAX_BYTES ? '' : this.#text + text;
  }

  #parse(): unknown {
    const value = parseJson(this.#text);
    if (value === undefined) this.#fail('not JSON', EXIT.failed, this.#begin);
    return value;
  }

  #fail(fault: string, exitCode: ExitCode = EXIT.failed, line = this.line): void {
    this.fault ??= new Failure(`Line ${line}: ${fault}`, exitCode);
  }
}

/** The users of the list of a file. */
export async function* readJson(
  read: (readLine: () => number) => AsyncIterable<string>,
  map: ColumnMap,
): AsyncGenerator<readonly Entry[], void> {
  const scanner = new JsonScanner();
  let position = 0;
  for await (const elements of scan(scanner, read)) {
    yield elements.map(({ line, text, value }) => {
      const place = { line, index: position, position: ++position };
      if (text === undefined) return { ...place, problem: TOO_LONG };
      return createEntry(place, { text, value }, (object) => map.readObject(object, line));
    });
  }
}
