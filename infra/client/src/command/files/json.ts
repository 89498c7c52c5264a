import { parseJson } from '../../response-content.ts';
import { EXIT } from '../failure.ts';
import { createEntry, TOO_LONG } from './entry.ts';
import { isTooLong, MAX_BYTES, Scanner } from './scanner.ts';

const TOKEN = /\\[\s\S]|["[\]{},]|\r\n?|\n/g;

/**
 * Finds the elements of a JSON array, or of the array `users` of an object. Each is parsed as a whole, and so is what is outside of
 * the list. @streamparser/json would keep an element of any size in memory, and takes ten times as long.
 */
export class JsonScanner extends Scanner {
  #depth = 0;
  #isString = false;
  /** The depth within the list; 0 outside of it. */
  #listDepth = 0;
  #hasList = false;
  #outside = '';
  #isDone = false;
  #element = '';
  /** In characters, of the element. */
  #length = 0;

  protected push(text: string): void {
    let from = 0;
    for (const { 0: token, index } of text.matchAll(TOKEN)) {
      if (this.#isDone) break;
      const next = index + token.length;
      if (token === '\n' || token[0] === '\r') {
        this.line += 1;
        if (this.#listDepth === 0 || this.#length > 0) continue;
        // White space before an element is left out.
        if (text.slice(from, index).trim() !== '') this.#keep(text.slice(from, index));
        else this.begin = this.line;
        from = index;
      } else if (token === '"') this.#isString = !this.#isString;
      else if (this.#isString || token[0] === '\\') continue;
      else if (token === '[' || token === '{') {
        this.#depth += 1;
        if (this.#listDepth > 0 || token === '{' || !this.#isList(text.slice(from, index))) continue;
        this.#keep(text.slice(from, next));
        from = next;
        this.#listDepth = this.#depth;
        this.#hasList = true;
        this.begin = this.line;
      } else {
        if (token !== ',') this.#depth -= 1;
        if (this.#listDepth > 0 && this.#depth <= this.#listDepth - (token === ',' ? 0 : 1)) {
          this.#keep(text.slice(from, index));
          from = token === ',' ? next : index;
          this.#endElement(token !== ',');
        }
        if (this.#depth > 0 || token === ',') continue;
        this.#keep(text.slice(from, next));
        from = next;
        this.#endDocument();
      }
    }
    if (this.#isDone) this.#refuseMore(text.slice(from));
    else this.#keep(text.slice(from));
  }

  protected end(): void {
    if (this.#depth > 0) throw this.fault('the file ends before its list of users does', this.line);
    if (!this.#isDone && this.#outside.trim() !== '') throw this.fault('not JSON', this.line);
  }

  #isList(before: string): boolean {
    const outside = this.#outside + before;
    return this.#depth === 1 ? outside.trim() === '' : this.#depth === 2 && BEFORE_LIST.test(outside);
  }

  #keep(text: string): void {
    if (this.#listDepth === 0) {
      this.#outside += text;
      return;
    }
    this.#length += text.length;
    this.#element = this.#length > 2 * MAX_BYTES ? '' : this.#element + text;
  }

  #endElement(isEnd: boolean): void {
    const text = this.#element.trim();
    const isLong = isTooLong(this.#length > 2 * MAX_BYTES ? this.#length : text.length, text);
    const value = isLong ? undefined : parseJson(text);
    // Only a list without elements may end here.
    const isEmpty = text === '' && isEnd && this.position === 0;
    if (value === undefined && !isLong && !isEmpty) throw this.fault('not JSON');
    if (!isEmpty || isLong) this.#add(text, value, isLong);
    this.#element = '';
    this.#length = 0;
    this.begin = this.line;
    if (isEnd) this.#listDepth = 0;
  }

  #add(text: string, value: unknown, isLong: boolean): void {
    const place = { line: this.begin, index: this.position, position: ++this.position };
    const read = (object: object) => this.map.readObject(object, place.line);
    this.found.push(isLong ? { ...place, problem: TOO_LONG } : createEntry(place, { text, value }, read));
  }

  #endDocument(): void {
    this.#isDone = true;
    if (parseJson(this.#outside) === undefined) throw this.fault('not JSON', this.line);
    if (this.#hasList) return;
    throw this.fault(
      'an object without a list "users"; list the objects in [ and ]',
      this.line,
      EXIT.wrongUse,
    );
  }

  #refuseMore(text: string): void {
    const rest = text.trimStart();
    this.line += text.slice(0, text.length - rest.length).match(/\r\n?|\n/g)?.length ?? 0;
    const exitCode = rest[0] === '{' ? EXIT.wrongUse : EXIT.failed;
    if (rest !== '') throw this.fault('something follows the list of users', this.line, exitCode);
  }
}

const BEFORE_LIST = /[{,]\s*"users"\s*:\s*$/;

/** Whether a text begins with an object that has a list of users. */
export function hasListOfUsers(text: string): boolean {
  let depth = 0;
  for (const [token] of text.matchAll(/"users"\s*:\s*\[|"(?:[^"\\]|\\[\s\S])*"|[[\]{}]/g)) {
    if (depth === 1 && token.startsWith('"users"')) return true;
    depth += token === ']' || token === '}' ? -1 : token.endsWith('[') || token === '{' ? 1 : 0;
  }
  return false;
}
