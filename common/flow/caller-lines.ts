// Callers that take turns: one queue is as fair as the other.

/** Items of callers who take turns, each with a line of their own. No step depends on how long the lines are. */
export class CallerLines<Item extends object> {
  readonly #lines = new Map<string, Line<Item>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get callers(): number {
    return this.#lines.size;
  }

  sizeOf(caller: string): number {
    return this.#lines.get(caller)?.size ?? 0;
  }

  push(caller: string, item: Item): void {
    const line = this.#lines.get(caller);
    if (line === undefined) this.#lines.set(caller, new Line(item));
    else line.push(item);
    this.#size += 1;
  }

  /** The item whose turn it is. */
  peek(): Item | undefined {
    for (const line of this.#lines.values()) return line.peek();
    return undefined;
  }

  /** The item whose turn it is; its caller's next turn comes after those of all others. */
  take(): { readonly caller: string; readonly item: Item } | undefined {
    for (const [caller, line] of this.#lines) {
      const item = line.take();
      this.#size -= 1;
      if (line.size === 0) this.#lines.delete(caller);
      else if (this.#lines.size > 1) {
        this.#lines.delete(caller);
        this.#lines.set(caller, line);
      }
      return { caller, item };
    }
    return undefined;
  }

  /** The newest item of a caller, who waits no more for it. */
  takeNewest(caller: string): Item | undefined {
    const newest = this.#lines.get(caller)?.newest();
    if (newest !== undefined) this.remove(caller, newest);
    return newest;
  }

  /** Of an item that waits. */
  remove(caller: string, item: Item): void {
    const line = this.#lines.get(caller);
    if (line === undefined) return;
    line.remove(item);
    this.#size -= 1;
    if (line.size === 0) this.#lines.delete(caller);
  }

  /** The caller with most items. */
  longest(): { readonly caller: string; readonly size: number } | undefined {
    let longest: { readonly caller: string; readonly size: number } | undefined;
    for (const [caller, { size }] of this.#lines) if (size > (longest?.size ?? 0)) longest = { caller, size };
    return longest;
  }
}

/** Gives from its front without moving the rest each time; who leaves from its middle is passed over later. */
class Line<Item extends object> {
  #items: Item[];
  #first = 0;
  readonly #gone = new Set<Item>();

  constructor(item: Item) {
    this.#items = [item];
  }

  get size(): number {
    return this.#items.length - this.#first - this.#gone.size;
  }

  push(item: Item): void {
    this.#items.push(item);
  }

  peek(): Item {
    while (this.#gone.delete(this.#items[this.#first] as Item)) this.#first += 1;
    return this.#items[this.#first] as Item;
  }

  take(): Item {
    const item = this.peek();
    this.#first += 1;
    if (2 * this.#first >= this.#items.length) {
      this.#items = this.#items.slice(this.#first);
      this.#first = 0;
    }
    return item;
  }

  newest(): Item {
    while (this.#gone.delete(this.#items.at(-1) as Item)) this.#items.pop();
    return this.#items.at(-1) as Item;
  }

  remove(item: Item): void {
    this.#gone.add(item);
    if (2 * this.#gone.size <= this.#items.length - this.#first) return;
    this.#items = this.#items.slice(this.#first).filter((one) => !this.#gone.has(one));
    this.#first = 0;
    this.#gone.clear();
  }
}
