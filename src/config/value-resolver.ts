/** Resolves the value of each key in the order that references need, and reports values that cannot be read. */
import { SECTIONS } from './catalogue.ts'
import { type Diagnostic, formatValue } from './diagnostics.ts'
import { environmentValue, fileValue, isSecretOperatorKey, SECRETS_SECTION, secretValue } from './external-values.ts'
import { hintFor } from './hints.ts'
import type { KeyInstance } from './key-instances.ts'
import { nearest } from './nearest.ts'
import { type Folders, PROPERTIES } from './properties.ts'
import {
  asText,
  expandReferences,
  hasReference,
  type Reference,
  type ReferencedValue,
  referenceText,
  UnresolvedReference,
} from './references.ts'
import { type Setting, withoutIndexes } from './setting.ts'
import { canonicalPath } from './tables.ts'

interface ResolvedValue extends ReferencedValue {
  readonly invalid: boolean
}

const INVALID: ResolvedValue = { value: undefined, secret: false, invalid: true }

/** References of references; no real configuration comes near it. */
const CHAIN_LENGTH_MAX = 64
const ROLE = 'server.server_role'
const ROLES_OF: ReadonlyMap<string, readonly string[]> = new Map(SECTIONS.map(({ name, roles }) => [name, roles]))
/** Messages leave out the middle of a longer chain. */
const LINKS_SHOWN_AT_EACH_END = 5

interface ResolverInput {
  /** Effective settings by the catalogue's spelling of each path. */
  readonly effective: ReadonlyMap<string, Setting>
  /** By path. */
  readonly instances: ReadonlyMap<string, KeyInstance>
  /** Path of a row -> place of its header. */
  readonly rows: ReadonlyMap<string, string>
  readonly folders: Folders
}

export class ValueResolver {
  readonly errors: Diagnostic[] = []
  /** Paths that references read. */
  readonly referenced = new Set<string>()
  readonly #input: ResolverInput
  readonly #resolved = new Map<string, ResolvedValue>()
  /** Keys that are being resolved, outermost first; a second occurrence is a circle of references. */
  readonly #chain: string[] = []

  constructor(input: ResolverInput) {
    this.#input = input
    // In the order of the file, so that an error is reported at the first line that leads to it.
    for (const path of input.effective.keys()) if (input.instances.has(path)) this.resolve(path)
  }

  resolve(path: string): ResolvedValue {
    const before = this.#resolved.get(path)
    if (before !== undefined) return before
    const key = this.#input.instances.get(path)
    if (key !== undefined && hasFixedDefault(key) && !this.#input.effective.has(path)) return defaultOf(key)
    const depth = this.#chain.push(path) - 1
    const resolved = this.#read(path)
    this.#chain.length = depth
    this.#resolved.set(path, resolved)
    return resolved
  }

  #read(path: string): ResolvedValue {
    const key = this.#input.instances.get(path)
    const setting = this.#input.effective.get(path)
    if (setting === undefined && key?.definition.required) {
      const user = this.#requiredAt(key)
      if (user !== '') return this.#missing(key, user)
      return defaultOf(key)
    }
    try {
      const given = setting === undefined ? this.#default(key!) : setting.value
      const found = expandReferences(given, reference => this.#find(reference))
      if (key === undefined) return { ...found, secret: found.secret || isSecretOperatorKey(path), invalid: false }
      const secret = found.secret || key.definition.secret
      const value = firstReadable(key.definition.read, candidates(given, found.value, setting))
      return value === undefined ? this.#unreadable(key, given, found) : { value, secret, invalid: false }
    } catch (error) {
      if (!(error instanceof UnresolvedReference)) throw error
      if (error.message !== '') this.#unresolved(error)
      return INVALID
    }
  }

  #unreadable(key: KeyInstance, given: unknown, found: ReferencedValue): ResolvedValue {
    const { path, definition } = key
    const secret = found.secret || definition.secret
    const expanded = hasReference(given) && !secret ? `, and it comes to ${formatValue(found.value)}` : ''
    this.errors.push({
      where: this.#input.effective.get(path)?.where ?? 'default',
      key: path,
      given: this.#asWritten(path),
      expected: `expected ${definition.expects}${expanded}`,
      hint: hintFor(key, found.value, secret),
    })
    return INVALID
  }

  /** The given value as messages show it. */
  #asWritten(path: string): string {
    const setting = this.#input.effective.get(path)
    if (setting === undefined) return ''
    const isSecret = this.#input.instances.get(path)?.definition.secret ?? isSecretOperatorKey(path)
    return isSecret ? '(set)' : formatValue(setting.value)
  }

  /** Reports a failed reference once, at the first key of the chain that is set. */
  #unresolved({ message, hint }: UnresolvedReference): void {
    const { effective } = this.#input
    const first = this.#chain.find(path => effective.has(path)) ?? this.#chain[0]!
    const chain = this.#chain.slice(this.#chain.indexOf(first))
    const expected = chain.length > 2 || chain.at(-1) === first ? `${message}: ${this.#chainText(chain)}` : message
    const where = effective.get(first)?.where ?? 'default'
    this.errors.push({ where, key: first, given: this.#asWritten(first), expected, hint })
  }

  #chainText(chain: readonly string[]): string {
    const links = chain.map((link, index) => {
      const where = chain.indexOf(link) === index && index > 0 ? this.#input.effective.get(link)?.where : undefined
      return where === undefined ? link : `${link} (${where})`
    })
    const most = LINKS_SHOWN_AT_EACH_END
    if (links.length > 2 * most) links.splice(most, links.length - 2 * most, '...')
    return links.join(' -> ')
  }

  /** Place of the row, or of the first key, that makes a key required; '' where this node does not use the section. */
  #requiredAt({ section, group }: KeyInstance): string {
    const { rows, effective, instances } = this.#input
    if (!this.#isReadByRole(section)) return ''
    const row = rows.get(section)
    if (row !== undefined) return row
    // Keys of a section within this one do not count.
    const own = effective.entries().filter(([path]) => instances.get(path)?.section === section)
    return own.find(([path]) => path.startsWith(group))?.[1].where ?? ''
  }

  /** Sections of other roles may be incomplete, because operators copy files from node to node. */
  #isReadByRole(section: string): boolean {
    if (this.#chain.includes(ROLE)) return true
    const { value, invalid } = this.resolve(ROLE)
    return invalid || ROLES_OF.get(withoutIndexes(section))!.includes(String(value))
  }

  #missing({ path, section, group, definition }: KeyInstance, where: string): ResolvedValue {
    const user = this.#input.rows.has(section) ? 'every row' : `[${group.slice(0, -1)}]`
    const expected = `is missing, and ${user} needs it`
    this.errors.push({ where, key: path, given: '', expected, hint: `expected ${definition.expects}` })
    return INVALID
  }

  #default({ section, definition }: KeyInstance): unknown {
    const { cappedBy, follows, defaultValue } = definition
    const followed = follows.startsWith('.') ? `${section}${follows}` : follows
    if (cappedBy === '') return follows === '' ? defaultValue : `$ref{${followed}}`
    const uncapped = follows === '' ? defaultValue : this.#key(followed).value
    return Math.min(uncapped as number, this.#key(`${section}.${cappedBy}`).value as number)
  }

  #find(reference: Reference): ReferencedValue {
    const { kind, name } = reference
    if (kind === 'ref' || kind === 'conf') return this.#key(name)
    return this.#asLink(referenceText(reference), () => {
      if (kind === 'env') return environmentValue(name)
      if (kind === 'file') return fileValue(name, this.#input.folders.configuration)
      if (kind === 'secret') return this.#platformSecret(name)
      if (kind === '') return this.#property(name)
      throw new UnresolvedReference('there are no system properties here', 'write $env{NAME} instead')
    })
  }

  /** Adds a reference to the chain; after a failure it stays there until the error is reported. */
  #asLink(link: string, find: () => ReferencedValue): ReferencedValue {
    this.#chain.push(link)
    const found = find()
    this.#chain.pop()
    return found
  }

  #fail(link: string, message: string, hint: string): never {
    this.#chain.push(link)
    throw new UnresolvedReference(message, hint)
  }

  #property(name: string): ReferencedValue {
    const property = PROPERTIES.find(known => known.name === name)
    if (property !== undefined) return property.find({ ...this.#input.folders, key: path => this.#key(path) })
    const guess = nearest(
      name,
      PROPERTIES.map(known => known.name),
    )
    const hint =
      guess === ''
        ? 'conf/reference.md lists the properties'
        : `did you mean ${referenceText({ kind: '', name: guess })}?`
    throw new UnresolvedReference(`there is no property ${name}`, `${hint}; another key is $ref{section.key}`)
  }

  #platformSecret(alias: string): ReferencedValue {
    const path = `${SECRETS_SECTION}.${alias}`
    this.referenced.add(path)
    return secretValue(alias, this.#input.effective.get(path)?.value)
  }

  #key(path: string): ReferencedValue {
    const { instances, effective } = this.#input
    const name = instances.has(path) ? path : canonicalPath(path)
    if (this.#chain.includes(name)) this.#fail(name, 'references run in a circle', 'give one of them a value')
    if (this.#chain.length > CHAIN_LENGTH_MAX) {
      this.#fail(name, 'references go on for too long', 'refer to the last of them')
    }
    if (!instances.has(name) && !effective.has(name)) {
      const guess = nearest(name, [...instances.keys(), ...effective.keys()])
      const hint = guess === '' ? 'write section.key' : `did you mean ${guess}?`
      this.#fail(path, `there is no key ${path} to refer to`, hint)
    }
    this.referenced.add(name)
    const resolved = this.resolve(name)
    // An invalid key is reported already.
    if (resolved.invalid) throw new UnresolvedReference('', '')
    return resolved
  }
}

/** True if the default is a value, which depends on no other key and holds no reference. */
function hasFixedDefault({ definition: { cappedBy, follows, required, defaultValue } }: KeyInstance): boolean {
  return cappedBy === '' && follows === '' && !required && !hasReference(defaultValue)
}

function defaultOf({ definition }: KeyInstance): ResolvedValue {
  return { value: definition.defaultValue, secret: definition.secret, invalid: false }
}

/**
 * Values to try in order. Text from `--set` and variables may also be plain text. An expanded numeral may be a number.
 * A referenced number or list may be text for the key that refers to it.
 */
function candidates(given: unknown, value: unknown, setting: Setting | undefined): readonly unknown[] {
  const listed = [value]
  if (setting?.alternative !== undefined) listed.push(setting.alternative)
  if (!hasReference(given)) return listed
  if (typeof value === 'string' && /^-?\d{1,15}$/.test(value)) listed.push(Number(value))
  if (typeof value !== 'string' && asText(value) !== undefined) listed.push(asText(value))
  return listed
}

function firstReadable(read: (given: unknown) => unknown, listed: readonly unknown[]): unknown {
  return listed.map(read).find(value => value !== undefined)
}
