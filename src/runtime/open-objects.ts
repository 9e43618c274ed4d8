/**
 * The open objects of a thread, in no order. Each knows its place, so that adding and removing cost a few stores; a
 * `Set` hashes, and copies itself again and again as members come and go.
 */

/** A member of one `OpenObjects` at most. */
interface Member {
  /** Index among the open objects; -1: not open. Only `OpenObjects` writes it. */
  place: number
}

export class OpenObjects<One extends Member> {
  readonly #members: One[] = []

  get size(): number {
    return this.#members.length
  }

  add(member: One): void {
    member.place = this.#members.length
    this.#members.push(member)
  }

  /** Returns false where the member was removed before. */
  delete(member: One): boolean {
    const { place } = member
    if (place < 0) return false
    const last = this.#members.pop()!
    if (last !== member) {
      this.#members[place] = last
      last.place = place
    }
    member.place = -1
    return true
  }

  /** While members may be removed, iterate over a copy. */
  [Symbol.iterator](): IterableIterator<One> {
    return this.#members.values()
  }
}
