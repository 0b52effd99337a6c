// First in, first out. Taking one does not move the others.

export class LineQueue {
  readonly #compactAfter: number;
  #lines: string[] = [];
  #first = 0;
  #bytes = 0;

  constructor(compactAfter: number) {
    this.#compactAfter = compactAfter;
  }

  get length(): number {
    return this.#lines.length - this.#first;
  }

  get bytes(): number {
    return this.#bytes;
  }

  push(line: string): void {
    this.#lines.push(line);
    this.#bytes += Buffer.byteLength(line);
  }

  take(): string {
    const line = this.#lines[this.#first] ?? '';
    this.#lines[this.#first] = '';
    this.#first += 1;
    this.#bytes -= Buffer.byteLength(line);
    if (this.#first >= this.#compactAfter || this.#first === this.#lines.length) {
      this.#lines = this.#lines.slice(this.#first);
      this.#first = 0;
    }
    return line;
  }
}
