/** Finds the value of every key in the order that references need, and says what is wrong with it. */
import { SECTIONS } from './catalogue.ts'
import { type Fault, show } from './fault.ts'
import { nearest } from './nearest.ts'
import { environmentValue, fileValue, isOwnSecret, plainSecret, SECRETS } from './outside.ts'
import type { PresentKey } from './present-keys.ts'
import { PROPERTIES, type Surroundings } from './properties.ts'
import { asText, asWritten, expand, type Found, hasReference, type Reference, Unresolved } from './references.ts'
import { remedyFor } from './remedies.ts'
import { type Setting, withoutPlaces } from './setting.ts'
import { canonical } from './tables.ts'

interface Settled extends Found {
  readonly faulty: boolean
}

const FAILED: Settled = { value: undefined, secret: false, faulty: true }

/** More would be no configuration that somebody has written. */
const LONGEST_CHAIN = 64
const ROLE = 'server.server_role'
const ROLES_OF: ReadonlyMap<string, readonly string[]> = new Map(SECTIONS.map(({ name, roles }) => [name, roles]))
/** Of a chain that is shown. */
const LINKS_AT_EITHER_END = 5

interface Given {
  /** By the catalogue's spelling of each path. */
  readonly winners: ReadonlyMap<string, Setting>
  /** By path. */
  readonly present: ReadonlyMap<string, PresentKey>
  /** Row -> where it is opened. */
  readonly rows: ReadonlyMap<string, string>
  readonly surroundings: Surroundings
}

export class ValueSearch {
  readonly faults: Fault[] = []
  /** Keys that others refer to. */
  readonly referred = new Set<string>()
  readonly #given: Given
  readonly #known: ReadonlyMap<string, PresentKey>
  readonly #settled = new Map<string, Settled>()
  /** What is being settled, outermost first: meeting one of them again closes a circle. */
  readonly #chain: string[] = []

  constructor(given: Given) {
    this.#given = given
    this.#known = given.present
    // In the order of the file, so that a fault is reported where a reader of the file meets it first.
    for (const path of given.winners.keys()) if (this.#known.has(path)) this.settle(path)
  }

  settle(path: string): Settled {
    const before = this.#settled.get(path)
    if (before !== undefined) return before
    const key = this.#known.get(path)
    if (key !== undefined && standsByItself(key) && !this.#given.winners.has(path)) return defaultOf(key)
    const depth = this.#chain.push(path) - 1
    const settled = this.#read(path)
    this.#chain.length = depth
    this.#settled.set(path, settled)
    return settled
  }

  #read(path: string): Settled {
    const key = this.#known.get(path)
    const setting = this.#given.winners.get(path)
    if (setting === undefined && key?.definition.required) {
      const opened = this.#opened(key)
      if (opened !== '') return this.#missing(key, opened)
      // What a section must have that is not used here is missed by nobody.
      return defaultOf(key)
    }
    try {
      const given = setting === undefined ? this.#fallback(key!) : setting.value
      const found = expand(given, reference => this.#find(reference))
      if (key === undefined) return { ...found, secret: found.secret || isOwnSecret(path), faulty: false }
      const secret = found.secret || key.definition.secret
      const value = firstReadable(key.definition.read, candidates(given, found.value, setting))
      return value === undefined ? this.#misread(key, given, found) : { value, secret, faulty: false }
    } catch (error) {
      if (!(error instanceof Unresolved)) throw error
      if (error.message !== '') this.#unresolved(error)
      return FAILED
    }
  }

  #misread(key: PresentKey, given: unknown, found: Found): Settled {
    const { path, definition } = key
    const secret = found.secret || definition.secret
    const comesTo = hasReference(given) && !secret ? `, and it comes to ${show(found.value)}` : ''
    this.faults.push({
      where: this.#given.winners.get(path)?.where ?? 'default',
      key: path,
      given: this.#shown(path),
      expected: `expected ${definition.expects}${comesTo}`,
      remedy: remedyFor(key, found.value, secret),
    })
    return FAILED
  }

  /** As the operator wrote it. */
  #shown(path: string): string {
    const setting = this.#given.winners.get(path)
    if (setting === undefined) return ''
    return (this.#known.get(path)?.definition.secret ?? isOwnSecret(path)) ? '(set)' : show(setting.value)
  }

  /** Reported once, at the first key of the chain that somebody wrote. */
  #unresolved({ message, remedy }: Unresolved): void {
    const { winners } = this.#given
    const first = this.#chain.find(path => winners.has(path)) ?? this.#chain[0]!
    const chain = this.#chain.slice(this.#chain.indexOf(first))
    const said = chain.length > 2 || chain.at(-1) === first ? `${message}: ${this.#links(chain)}` : message
    const where = winners.get(first)?.where ?? 'default'
    this.faults.push({ where, key: first, given: this.#shown(first), expected: said, remedy })
  }

  #links(chain: readonly string[]): string {
    const links = chain.map((link, index) => {
      const where = chain.indexOf(link) === index && index > 0 ? this.#given.winners.get(link)?.where : undefined
      return where === undefined ? link : `${link} (${where})`
    })
    const most = LINKS_AT_EITHER_END
    if (links.length > 2 * most) links.splice(most, links.length - 2 * most, '...')
    return links.join(' -> ')
  }

  /** Where its row stands, or the first key that makes it necessary; '' where this node has no use for the section. */
  #opened({ section, group }: PresentKey): string {
    const { rows, winners } = this.#given
    if (!this.#isRead(section)) return ''
    const row = rows.get(section)
    if (row !== undefined) return row
    // A section within this one, with keys of its own, does not count.
    const users = winners.entries().filter(([path]) => this.#known.get(path)?.section === section)
    return users.find(([path]) => path.startsWith(group))?.[1].where ?? ''
  }

  /** What nodes of other roles read may be incomplete: files are copied from node to node. */
  #isRead(section: string): boolean {
    if (this.#chain.includes(ROLE)) return true
    const { value, faulty } = this.settle(ROLE)
    return faulty || ROLES_OF.get(withoutPlaces(section))!.includes(String(value))
  }

  #missing({ path, section, group, definition }: PresentKey, where: string): Settled {
    const user = this.#given.rows.has(section) ? 'every row' : `[${group.slice(0, -1)}]`
    const expected = `is missing, and ${user} needs it`
    this.faults.push({ where, key: path, given: '', expected, remedy: `expected ${definition.expects}` })
    return FAILED
  }

  #fallback({ section, definition }: PresentKey): unknown {
    const { ceiling, follows, fallback } = definition
    if (follows !== '') return `$ref{${follows.startsWith('.') ? section : ''}${follows}}`
    if (ceiling === '') return fallback
    return Math.min(fallback as number, this.#key(`${section}.${ceiling}`).value as number)
  }

  #find(reference: Reference): Found {
    const { kind, name } = reference
    if (kind === 'ref' || kind === 'conf') return this.#key(name)
    // Part of the chain, so that whoever reads it finds what is written in the file.
    return this.#linked(asWritten(reference), () => {
      if (kind === 'env') return environmentValue(name)
      if (kind === 'file') return fileValue(name, this.#given.surroundings.folder)
      if (kind === 'secret') return this.#platformSecret(name)
      if (kind === '') return this.#property(name)
      throw new Unresolved('there are no system properties here', 'write $env{NAME} instead')
    })
  }

  /** Where it fails, the link stays in the chain until the fault is reported. */
  #linked(link: string, find: () => Found): Found {
    this.#chain.push(link)
    const found = find()
    this.#chain.pop()
    return found
  }

  #fail(link: string, message: string, remedy: string): never {
    this.#chain.push(link)
    throw new Unresolved(message, remedy)
  }

  #property(name: string): Found {
    const property = PROPERTIES.find(each => each.name === name)
    if (property !== undefined) return property.find({ ...this.#given.surroundings, key: path => this.#key(path) })
    const names = PROPERTIES.map(each => each.name)
    const guess = nearest(name, names)
    const remedy =
      guess === '' ? 'conf/reference.md lists the properties' : `did you mean ${asWritten({ kind: '', name: guess })}?`
    throw new Unresolved(`there is no property ${name}`, `${remedy}; another key is $ref{section.key}`)
  }

  #platformSecret(alias: string): Found {
    const path = `${SECRETS}.${alias}`
    this.referred.add(path)
    return plainSecret(alias, this.#given.winners.get(path)?.value)
  }

  #key(path: string): Found {
    const name = this.#known.has(path) ? path : canonical(path)
    if (this.#chain.includes(name)) this.#fail(name, 'references run in a circle', 'give one of them a value')
    if (this.#chain.length > LONGEST_CHAIN)
      this.#fail(name, 'references go on for too long', 'refer to the last of them')
    if (!this.#known.has(name) && !this.#given.winners.has(name)) {
      const guess = nearest(name, [...this.#known.keys(), ...this.#given.winners.keys()])
      const remedy = guess === '' ? 'write section.key' : `did you mean ${guess}?`
      this.#fail(path, `there is no key ${path} to refer to`, remedy)
    }
    this.referred.add(name)
    const settled = this.settle(name)
    // It has its fault already.
    if (settled.faulty) throw new Unresolved('', '')
    return settled
  }
}

/** A default that refers to nothing is what reading it would answer. */
function standsByItself({ definition: { ceiling, follows, required, fallback } }: PresentKey): boolean {
  return ceiling === '' && follows === '' && !required && !hasReference(fallback)
}

function defaultOf({ definition }: PresentKey): Settled {
  return { value: definition.fallback, secret: definition.secret, faulty: false }
}

/**
 * What a given value may be read as. Text from outside TOML has no type: a number in it counts as one. And what is a
 * number or a list at one key may be text at another that refers to it.
 */
function candidates(given: unknown, value: unknown, setting: Setting | undefined): readonly unknown[] {
  const listed = [value]
  if (setting?.otherwise !== undefined) listed.push(setting.otherwise)
  if (!hasReference(given)) return listed
  if (typeof value === 'string' && /^-?\d{1,15}$/.test(value)) listed.push(Number(value))
  if (typeof value !== 'string' && asText(value) !== undefined) listed.push(asText(value))
  return listed
}

function firstReadable(read: (given: unknown) => unknown, listed: readonly unknown[]): unknown {
  return listed.map(read).find(value => value !== undefined)
}
