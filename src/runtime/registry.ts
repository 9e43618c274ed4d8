/**
 * The open objects of a thread, in no order. Each knows its place, so that adding and removing cost a few stores; a
 * `Set` hashes, and copies itself again and again as members come and go.
 */

/** A member of one registry at most. */
interface Registered {
  /** Index in the registry; -1: in none. Only the registry writes it. */
  place: number
}

export class Registry<Member extends Registered> {
  readonly #members: Member[] = []

  get size(): number {
    return this.#members.length
  }

  add(member: Member): void {
    member.place = this.#members.length
    this.#members.push(member)
  }

  /** Returns false where the member was removed before. */
  delete(member: Member): boolean {
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
  [Symbol.iterator](): IterableIterator<Member> {
    return this.#members.values()
  }
}
