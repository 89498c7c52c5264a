import { prepareValue } from 'pg/lib/utils.js';

/** In bytes; what is being sent is not written over, so that each piece of memory is used once. */
const SLAB = 64 * 1024;

/** Execute of the unnamed portal for all rows, and Sync. */
const EXECUTE_AND_SYNC = Buffer.from([69, 0, 0, 0, 9, 0, 0, 0, 0, 0, 83, 0, 0, 0, 4]);

/** A longer text is measured before it is written; of a shorter one the most that it may take is kept free. */
const SHORT = 1024;

/**
 * Writes messages of PostgreSQL's extended query protocol one behind the other, so that those of many statements are one
 * write to the socket: pg writes each by itself, which costs more than all else that is done for a statement.
 *
 * @see PostgreSQL, "Message Formats"
 */
export class MessageWriter {
  #slab = Buffer.allocUnsafe(SLAB);
  #begin = 0;
  #end = 0;

  /** Forgets what has the name, parses the statement under it and asks for its columns. */
  prepare(name: string, sql: string): void {
    this.#message('C', () => this.#byte('S').#text(name));
    this.#message('P', () => this.#text(name).#text(sql).#int16(0));
    this.#message('D', () => this.#byte('S').#text(name));
  }

  /** Runs the statement of this name, in a transaction of its own; its rows are answered as texts, or in binary. */
  execute(name: string, values: readonly unknown[], isBinary = false): void {
    const converted = values.map((value) => (typeof value === 'string' ? value : prepareValue(value)));
    this.#message('B', () => {
      this.#text('').#text(name).#int16(converted.length);
      for (const value of converted) this.#int16(Buffer.isBuffer(value) ? 1 : 0);
      this.#int16(converted.length);
      for (const value of converted) this.#value(value);
      if (isBinary) this.#int16(1).#int16(1);
      else this.#int16(0);
    });
    this.#keepFree(EXECUTE_AND_SYNC.length);
    this.#end += EXECUTE_AND_SYNC.copy(this.#slab, this.#end);
  }

  /** What was written since it was taken last. */
  take(): Buffer {
    const written = this.#slab.subarray(this.#begin, this.#end);
    this.#begin = this.#end;
    return written;
  }

  #message(type: string, writeContent: () => void): void {
    this.#byte(type).#int32(0);
    // Relative, for what is written may have moved when the end is known.
    const start = this.#end - this.#begin;
    writeContent();
    const at = this.#begin + start - 4;
    this.#slab.writeInt32BE(this.#end - at, at);
  }

  #value(value: string | Buffer | null): void {
    if (value === null) {
      this.#int32(-1);
      return;
    }
    this.#int32(0);
    const start = this.#end - this.#begin;
    if (typeof value === 'string') this.#characters(value);
    else {
      this.#keepFree(value.length);
      this.#end += value.copy(this.#slab, this.#end);
    }
    const at = this.#begin + start;
    this.#slab.writeInt32BE(this.#end - at, at - 4);
  }

  /** With the zero that ends it. */
  #text(text: string): this {
    this.#characters(text);
    this.#keepFree(1);
    this.#slab[this.#end++] = 0;
    return this;
  }

  #characters(text: string): void {
    if (text === '') return;
    this.#keepFree(text.length <= SHORT ? text.length * 3 : Buffer.byteLength(text));
    this.#end += this.#slab.write(text, this.#end);
  }

  #byte(character: string): this {
    this.#keepFree(1);
    this.#slab[this.#end++] = character.charCodeAt(0);
    return this;
  }

  #int16(number: number): this {
    this.#keepFree(2);
    this.#end = this.#slab.writeInt16BE(number, this.#end);
    return this;
  }

  #int32(number: number): this {
    this.#keepFree(4);
    this.#end = this.#slab.writeInt32BE(number, this.#end);
    return this;
  }

  #keepFree(bytes: number): void {
    if (this.#end + bytes <= this.#slab.length) return;
    const written = this.take();
    this.#slab = Buffer.allocUnsafe(Math.max(SLAB, (written.length + bytes) * 2));
    this.#begin = 0;
    this.#end = written.copy(this.#slab);
  }
}
