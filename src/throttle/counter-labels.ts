/**
 * Texts of counters in shared memory: the key of each slot, and the names of policies, which slots refer to by number.
 * Commands and the state file show these labels; keys are told apart by their hashes.
 */
import { escapeControls } from '../observe/escape.ts'

export const LABEL_BYTES = 96
/** Bytes of UTF-8 that a label keeps of its key; longer keys keep both ends. */
const LABEL_TEXT_MAX = LABEL_BYTES - 1
const LABEL_TAIL = 40
/** Names of policies that are kept; the counters of others are labelled with `other`. */
export const POLICIES_MAX = 1024
const OTHER_POLICY = 'other'

export class CounterLabels {
  readonly #bytes: Buffer
  readonly #cells: Int32Array
  readonly #count: number
  readonly #names: number
  readonly #labels: number
  /** Names by number, as far as this thread has read them. */
  readonly #known: string[] = []

  /** `count`: cell with the number of names. `names`, `labels`: offsets in bytes. */
  constructor(cells: Int32Array, count: number, names: number, labels: number) {
    this.#bytes = Buffer.from(cells.buffer)
    this.#cells = cells
    this.#count = count
    this.#names = names
    this.#labels = labels
  }

  labelOf(slot: number): string {
    return this.#readText(this.#labels + slot * LABEL_BYTES)
  }

  setLabel(slot: number, key: string): void {
    this.#writeText(this.#labels + slot * LABEL_BYTES, key)
  }

  policyName(id: number): string {
    this.#learn()
    return this.#known[id] ?? OTHER_POLICY
  }

  /** True if the number is that of the policy. */
  isPolicy(id: number, name: string): boolean {
    const known = this.policyName(id)
    return known === name || known === shortened(name).toString()
  }

  /** The number of a policy, which is added where it is new; -1: there are too many. Under the lock of the table. */
  policyId(name: string): number {
    const text = shortened(name).toString()
    const count = this.#learn()
    const known = this.#known.indexOf(text)
    if (known >= 0 || count >= POLICIES_MAX) return known
    this.#writeText(this.#names + count * LABEL_BYTES, text)
    this.#known[count] = text
    Atomics.store(this.#cells, this.#count, count + 1)
    return count
  }

  /** Names that other threads have added; their number. */
  #learn(): number {
    const count = Atomics.load(this.#cells, this.#count)
    for (let id = this.#known.length; id < count; id++) {
      this.#known[id] = this.#readText(this.#names + id * LABEL_BYTES)
    }
    return count
  }

  #writeText(at: number, text: string): void {
    const bytes = shortened(text)
    this.#bytes[at] = bytes.length
    this.#bytes.set(bytes, at + 1)
  }

  #readText(at: number): string {
    return this.#bytes.toString('utf8', at + 1, at + 1 + this.#bytes[at]!)
  }
}

/**
 * The bytes that a label keeps of a text: all of them, or both ends with `…` between. Keys hold names of users, and go
 * to terminals: control characters are escaped.
 */
export function shortened(text: string): Buffer {
  const bytes = Buffer.from(escapeControls(text))
  if (bytes.length <= LABEL_TEXT_MAX) return bytes
  const mark = Buffer.from('…')
  const tail = bytes.subarray(bytes.length - LABEL_TAIL)
  return Buffer.concat([bytes.subarray(0, LABEL_TEXT_MAX - mark.length - LABEL_TAIL), mark, tail])
}
