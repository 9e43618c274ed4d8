/**
 * Sequences that a template makes of others: `s + [item]` in a loop. What is added goes behind what the former sequence
 * has, in the same memory, and the former one does not see it. Only where two grow out of one, the second is a copy.
 */
import type { Items, TemplateValue } from './values.ts'

/** Memory of sequences, each of which is a part of it. */
interface Memory {
  readonly items: TemplateValue[]
  /** The memory may grow: it is no value of the data. */
  readonly isOwn: boolean
}

export class Sequence implements Items {
  readonly size: number
  readonly #memory: Memory
  readonly #from: number

  private constructor(memory: Memory, from: number, size: number) {
    this.#memory = memory
    this.#from = from
    this.size = size
  }

  /** The sequence of both. `collect`: counts its items, and those that are made for it. */
  static joined(items: Items, others: Items, collect: (items: number, made: number) => void): Sequence {
    const grows = items instanceof Sequence && items.#isLast
    collect(items.size + others.size, grows ? others.size : items.size + others.size)
    const memory = grows ? items.#memory : { items: copyOf(items), isOwn: true }
    const from = memory.items.length - items.size
    for (let at = 0, { size } = others; at < size; at++) memory.items.push(others.at(at))
    return new Sequence(memory, from, items.size + others.size)
  }

  /** A part of a sequence; undefined where its items are no list. */
  static partOf(value: TemplateValue, from: number, size: number): Sequence | undefined {
    if (value instanceof Sequence) return new Sequence(value.#memory, value.#from + from, size)
    if (!Array.isArray(value)) return undefined
    return new Sequence({ items: value as TemplateValue[], isOwn: false }, from, size)
  }

  at(index: number): TemplateValue {
    return index < this.size ? this.#memory.items[this.#from + index] : undefined
  }

  /** The memory, whose first items are those of this sequence; null where the sequence begins further behind. */
  get memory(): readonly TemplateValue[] | null {
    return this.#from === 0 ? this.#memory.items : null
  }

  get #isLast(): boolean {
    return this.#memory.isOwn && this.#from + this.size === this.#memory.items.length
  }
}

function copyOf(items: Items): TemplateValue[] {
  return Array.from({ length: items.size }, (_, at) => items.at(at))
}
