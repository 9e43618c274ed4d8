/**
 * Wake-ups by name, in shared memory: every thread may wake, and one listens. Without a listener a wake-up costs two
 * atomic operations. Names share cells, so that a wake-up may reach another name too, but is never lost.
 */

/** Cell of the wake-ups of all names; behind it are those by name. */
const TOTAL = 0
const NAMED = 1
const NAMED_CELLS = 255

/** FNV-1a, in 32 bits. */
const FNV_OFFSET = 0x811c9dc5
const FNV_PRIME = 0x01000193

export class SharedWakes {
  readonly #cells: Int32Array

  constructor(shared: SharedArrayBuffer) {
    this.#cells = new Int32Array(shared)
  }

  static allocate(): SharedArrayBuffer {
    return new SharedArrayBuffer((NAMED + NAMED_CELLS) * Int32Array.BYTES_PER_ELEMENT)
  }

  wake(name: string): void {
    Atomics.add(this.#cells, cellOf(name), 1)
    Atomics.add(this.#cells, TOTAL, 1)
    Atomics.notify(this.#cells, TOTAL)
  }

  /** Another number after each wake-up of that name; 0 before the first one. */
  count(name: string): number {
    return Atomics.load(this.#cells, cellOf(name))
  }

  /** Another number after each wake-up, for `woken`: it is read before the names are looked at. */
  get total(): number {
    return Atomics.load(this.#cells, TOTAL)
  }

  /** Resolves once the total is another one. */
  async woken(total: number): Promise<void> {
    const { async: isPending, value } = Atomics.waitAsync(this.#cells, TOTAL, total)
    if (isPending) await value
  }
}

function cellOf(name: string): number {
  let hash = FNV_OFFSET
  for (let at = 0; at < name.length; at++) hash = Math.imul(hash ^ name.charCodeAt(at), FNV_PRIME)
  return NAMED + ((hash >>> 0) % NAMED_CELLS)
}
