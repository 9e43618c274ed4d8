/**
 * Checks the members of a file against a table. A known member is read, is a description without effect on any gateway,
 * or is inert here, which is a warning. An unknown member is a warning too; it is an error where it resembles a member
 * that decides who may call, because that member would silently be absent.
 */
import { nearest, nearestTypoOrRegrouped } from '../config/nearest.ts'
import type { Path, YamlFile } from './yaml-file.ts'

export interface Member {
  /** True if the absence of the member admits other callers: a misspelt name is an error. */
  readonly isAccess?: boolean
  /** Members of the value, or of each item if the value is a list; undefined: not checked. */
  readonly members?: Members
  /** True if any other value than a map is an error, because its members would silently be absent. */
  readonly isMap?: boolean
  readonly inert?: InertMember
  /** Why the member is an error. */
  readonly refused?: string
}

/** A member that another gateway acts on. */
interface InertMember {
  /** Why the member has no effect, or what to write instead. */
  readonly hint: string
  /** Values that ask for nothing beside empty ones, in lower case. */
  readonly harmless: readonly string[]
}

export type Members = Readonly<Record<string, Member>>

/** Names of one file that get a diagnostic each; further ones are not looked at. */
const UNKNOWN_MAX = 50
/** A merge key of YAML 1.1 would hide members from those who read the file. */
const MERGE = '<<'
/** The start of a known name, as `auth` of `authType`, is meant to be that name from this length on. */
const ABBREVIATION_CHARS_MIN = 4

/** Checks the values of one file. A mistake that several items of a list repeat is reported at the first of them. */
export class MemberCheck {
  readonly #file: YamlFile
  /** Objects by the table that they were checked against: aliases may lead to one object many times. */
  readonly #seen = new Map<Members, Set<object>>()
  /** Names by the table that they were reported for. */
  readonly #reported = new Map<Members, Set<string>>()
  readonly #isStrict: boolean
  #unknown = 0
  /** Access members of every level of the table that is checked, by name, with their paths. */
  #elsewhere: ReadonlyMap<string, string> = new Map()

  /** `isStrict`: an unknown member that resembles none is an error. Exports may be of a newer release; they are not. */
  constructor(file: YamlFile, isStrict = false) {
    this.#file = file
    this.#isStrict = isStrict
  }

  /** Checks the map at `at`, or the maps of the list there, and what stands below. */
  members(members: Members, at: Path = []): void {
    this.#elsewhere = accessPaths(members)
    this.#enter(this.#valueAt(at), members, at, false)
  }

  /**
   * Checks the members that begin with `x-` only. Those of other tools are ignored: an unknown one is reported if it
   * begins with `x-wso2-`, or differs from a known one by a typing error.
   */
  extensions(extensions: Members, at: Path = []): void {
    this.#enter(this.#valueAt(at), extensions, at, true)
  }

  #valueAt(at: Path): unknown {
    return at.length === 0 ? this.#file.root : this.#file.value(at)
  }

  #enter(value: unknown, members: Members, at: Path, isExtended: boolean): void {
    if (typeof value !== 'object' || value === null || !isNew(this.#seen, members, value)) return
    if (Array.isArray(value)) {
      for (const [item, each] of value.entries())
        if (!Array.isArray(each)) this.#enter(each, members, [...at, item], false)
      return
    }
    for (const [name, each] of Object.entries(value)) {
      if (isExtended && !/^x-/i.test(name)) continue
      const member = Object.hasOwn(members, name) ? members[name] : undefined
      if (member === undefined) this.#reportUnknown(name, members, [...at, name], isExtended)
      else {
        if (member.refused !== undefined)
          this.#file.error([...at, name], undefined, 'is not known here', member.refused)
        if (member.isMap) this.#requireMap([...at, name], each)
        if (member.inert !== undefined) this.#reportInert(name, member.inert, members, [...at, name])
        if (member.members !== undefined) this.#enter(each, member.members, [...at, name], false)
      }
    }
  }

  #requireMap(path: Path, value: unknown): void {
    if (Array.isArray(value) || (typeof value !== 'object' && this.#file.hasContent(path)))
      this.#file.error(path, undefined, 'expected names with their values', 'write name: value')
  }

  #reportInert(name: string, { hint, harmless }: InertMember, members: Members, path: Path): void {
    const value = this.#file.value(path)
    const items: readonly unknown[] = Array.isArray(value) ? value : [value]
    if (items.every(item => harmless.includes(String(item).trim().toLowerCase()))) return
    if (!this.#file.hasContent(path) || !isNew(this.#reported, members, name)) return
    this.#file.warn(path, typeof value === 'string' ? value : undefined, 'has no effect', hint)
  }

  #reportUnknown(name: string, members: Members, path: Path, isExtended: boolean): void {
    if (this.#unknown >= UNKNOWN_MAX) return
    if (name === MERGE && !isExtended) {
      this.#file.error(path, undefined, 'merge keys are not supported', 'write the members out, or as one alias')
      return
    }
    const guess = guessOf(name, members, isExtended)
    if (isExtended && guess === '' && !/^x-wso2-/i.test(name)) return
    if (!isNew(this.#reported, members, name)) return
    this.#unknown++
    const misplaced = guess === '' && !isExtended ? nearestTypoOrRegrouped(name, [...this.#elsewhere.keys()]) : ''
    const meant = misplaced === '' ? guess : this.#elsewhere.get(misplaced)!
    const hint = meant === '' ? 'remove it' : `did you mean ${meant}?`
    const isError = meant === '' ? this.#isStrict : misplaced !== '' || members[guess]!.isAccess
    if (isError) this.#file.error(path, undefined, 'is not known here', hint)
    else this.#file.warn(path, undefined, 'is not known here and has no effect', hint)
  }
}

/** Names that stand for different things at different levels. */
const COMMON = new Set(['data', 'name', 'type', 'version', 'target', 'scope', 'scopes', 'alias', 'certificate'])
const PATHS = new WeakMap<Members, ReadonlyMap<string, string>>()

/** Paths of the access members of a table and the tables below it, by name, without the names that are common. */
function accessPaths(members: Members): ReadonlyMap<string, string> {
  const known = PATHS.get(members)
  if (known !== undefined) return known
  const paths = new Map<string, string>()
  const enter = (level: Members, at: string): void => {
    for (const [name, member] of Object.entries(level)) {
      if (member.isAccess && !COMMON.has(name) && !paths.has(name)) paths.set(name, `${at}${name}`)
    }
    for (const [name, { members: below = {} }] of Object.entries(level)) enter(below, `${at}${name}.`)
  }
  enter(members, '')
  PATHS.set(members, paths)
  return paths
}

/** False for what the set of the table has already. */
function isNew<K, V>(sets: Map<K, Set<V>>, key: K, value: V): boolean {
  const known = sets.get(key) ?? new Set()
  sets.set(key, known)
  const { size } = known
  return known.add(value).size > size
}

/** The known name that an unknown one was meant to be; '' for none. */
function guessOf(name: string, members: Members, isExtended: boolean): string {
  const known = Object.keys(members)
  if (isExtended && !/^x-wso2-/i.test(name)) return nearestTypoOrRegrouped(name, known)
  const lower = name.toLowerCase()
  const whole = lower.length < ABBREVIATION_CHARS_MIN ? undefined : known.find(it => it.toLowerCase().startsWith(lower))
  return nearest(name, known) || (whole ?? '')
}
