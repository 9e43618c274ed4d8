/** Hashes that a template makes of others: `h + {name: value}` in a loop. They share memory as sequences do. */
import { Hash, type TemplateValue } from './values.ts'

/** Values of a name, each from a version on. */
type Versions = { readonly since: number; readonly value: TemplateValue }[]

interface Members {
  readonly versions: Map<string, Versions>
  latest: number
}

export class JoinedHash extends Hash {
  readonly size: number
  readonly #members: Members
  readonly #version: number

  private constructor(members: Members, version: number, size: number) {
    super()
    this.#members = members
    this.#version = version
    this.size = size
  }

  /** The hash of both; members of the second one take the places of those of the first. `collect`: as of `Sequence`. */
  static joined(
    one: Hash,
    other: readonly (readonly [string, TemplateValue])[],
    collect: (items: number, made: number) => void,
  ): JoinedHash {
    const grows = one instanceof JoinedHash && one.#version === one.#members.latest
    const size = grows ? one.size : one.names().length
    collect(size + other.length, grows ? other.length : size + other.length)
    const members = grows ? one.#members : { versions: new Map<string, Versions>(), latest: 0 }
    if (!grows) for (const name of one.names()) members.versions.set(name, [{ since: 0, value: one.get(name) }])
    const since = ++members.latest
    for (const [name, value] of other) {
      const versions = members.versions.get(name)
      if (versions === undefined) members.versions.set(name, [{ since, value }])
      else versions.push({ since, value })
    }
    return new JoinedHash(members, since, members.versions.size)
  }

  override get(name: string): TemplateValue {
    return this.#members.versions.get(name)?.findLast(({ since }) => since <= this.#version)?.value
  }

  override names(): readonly string[] {
    const names: string[] = []
    for (const [name, [first]] of this.#members.versions) if (first!.since <= this.#version) names.push(name)
    return names
  }
}
