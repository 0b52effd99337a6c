// The member names of one JSON object as they come, so that the second of one name is noticed. Its size is its owner's
// to bound.

/** Member names of one object that are looked through one by one. */
const LONGEST_NAME_LIST = 16;

/**
 * A list while it is short, as it is in every message of ours: a Set for each object costs more than the rest of the
 * scan.
 */
export class SeenNames {
  readonly #list: string[] = [];
  #set: Set<string> | undefined;

  get size(): number {
    return this.#set?.size ?? this.#list.length;
  }

  /** False when it was there. */
  add(name: string): boolean {
    if (this.#set === undefined) {
      if (this.#list.includes(name)) return false;
      if (this.#list.push(name) === LONGEST_NAME_LIST) this.#set = new Set(this.#list);
      return true;
    }
    const known = this.#set.size;
    return this.#set.add(name).size > known;
  }
}
