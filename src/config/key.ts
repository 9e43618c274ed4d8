/**
 * What a configuration section is made of. A key owns its default, its meaning and the reading of one given value; it
 * knows neither its own name nor where the value was written, so that a section stays plain data. `kinds.ts` has the
 * kinds of key, this file what may be said of any of them.
 */

export interface Key<T> {
  readonly kind: string
  readonly fallback: T
  readonly meaning: string
  /** What a value must be, as a noun phrase for faults and the reference page. */
  readonly expects: string
  /** '' where the value has no unit. */
  readonly unit: string
  /** '' where every value of the kind will do. */
  readonly range: string
  /** What a value must be, for editors: JSON Schema, references aside. */
  readonly schema: JsonSchema
  /** Values with a meaning of their own, such as -1 for unlimited. */
  readonly named: Readonly<Record<string, string>>
  readonly secret: boolean
  /** Wherever its section is used, or a row of it is there, it must be set. */
  readonly required: boolean
  /** The key of the same section that the default never exceeds; '' for a default that stands by itself. */
  readonly ceiling: string
  /** The key whose value is the default: a whole path, or `.name` in the same section or row; '' for none. */
  readonly follows: string
  /** Other spellings that the documentation uses. */
  readonly aliases: readonly string[]
  /** A reload puts another value in force; otherwise that takes a restart. */
  readonly isLive: boolean
  /** Why the gateway accepts the key and does not act on it; '' for a key that is acted on. */
  readonly inertReason: string
  /** The value of the key's own type, or undefined when what was given will not do. */
  readonly read: (given: unknown) => T | undefined
}

export type JsonSchema = Readonly<Record<string, unknown>>

type Keys = Readonly<Record<string, Key<unknown>>>

/** Stands in the name of a key for a name that the operator chooses. */
export const FREE_NAME = '<name>'

/** What a room receives of a section: the documented spelling, typed. Keys with a free name are there, untyped. */
export type Values<K> = {
  readonly [P in keyof K as P extends `${string}${typeof FREE_NAME}${string}` ? never : P]: K[P] extends Key<infer T>
    ? T
    : never
}

/** Something several keys have to agree on. A warning does not keep the gateway from starting. */
export interface Rule<V> {
  /** The first is the one to blame, and a warning is only given where it was set. */
  readonly keys: readonly (keyof V & string)[]
  readonly must: string
  readonly severity: 'fault' | 'warning'
  holds(values: V): boolean
}

/** `section.key`; the key alone where it stands above every table, in the section without a name. */
export function keyPath(section: string, key: string): string {
  return section === '' ? key : `${section}.${key}`
}

/** What a node is for (`server.server_role`). */
export const ROLES = [
  'default',
  'control-plane',
  'api-devportal',
  'api-key-manager',
  'api-publisher',
  'gateway-worker',
  'traffic-manager',
] as const
export type Role = (typeof ROLES)[number]

/**
 * How documents write rows of `[[table]]` too: '' in no other way, `table` as `[table]` for the only one, `named` as
 * `[table.NAME]`, where NAME is the key `name` of the row unless that is set.
 */
type AnyForm = '' | 'table' | 'named'

export interface Section<N extends string, K extends Keys, R extends boolean = boolean> {
  /** '' for the keys above the first table of the file. */
  readonly name: N
  readonly meaning: string
  /** Written `[[name]]`, once per row, and a list of rows to its reader. */
  readonly repeated: R
  readonly otherForm: AnyForm
  /** Other names that documents give the section. */
  readonly otherNames: readonly string[]
  readonly keys: K
  readonly rules: readonly Rule<Values<K>>[]
  /** Roles of the nodes that read it. A node of the role `default` has every part, so it reads all. */
  readonly roles: readonly Role[]
  /** Files below `src` that read its keys; test/config/readers.test.ts holds them to it. */
  readonly readBy: readonly string[]
}

/** What more there is to say of a section. */
interface About<K extends Keys> {
  readonly rules?: readonly Rule<Values<K>>[]
  /** All of them where it is left out. */
  readonly roles?: readonly Exclude<Role, 'default' | 'control-plane'>[]
  readonly readBy?: readonly string[]
  /** Of repeated tables alone. */
  readonly otherForm?: AnyForm
  readonly otherNames?: readonly string[]
}

export function section<const N extends string, K extends Keys>(
  name: N,
  meaning: string,
  keys: K,
  about: About<K> = {},
): Section<N, K, false> {
  return { name, meaning, repeated: false, keys, ...whole(about) }
}

export function repeatedSection<const N extends string, K extends Keys>(
  name: N,
  meaning: string,
  keys: K,
  about: About<K> = {},
): Section<N, K, true> {
  return { name, meaning, repeated: true, keys, ...whole(about) }
}

function whole<K extends Keys>({ rules = [], roles = [], readBy = [], otherForm = '', otherNames = [] }: About<K>) {
  const all = roles.length === 0 ? ROLES : ROLES.filter(role => reads(role, roles))
  return { rules, readBy, otherForm, otherNames, roles: all }
}

/** A control plane has every part but the gateway. */
function reads(role: Role, roles: readonly Role[]): boolean {
  if (role === 'control-plane') return roles.some(part => part !== 'gateway-worker')
  return role === 'default' || roles.includes(role)
}

/** A key that must be set wherever its section is used; empty will not do either. */
export function required<T>(wrapped: Key<T>): Key<T> {
  const read = (given: unknown): T | undefined => {
    const value = wrapped.read(given)
    return value === '' || (Array.isArray(value) && value.length === 0) ? undefined : value
  }
  return { ...wrapped, required: true, read }
}

/** A key that is accepted so that documented files load, and acted on by nothing. Setting it warns once at start. */
export function inert<T>(wrapped: Key<T>, reason: string): Key<T> {
  return { ...wrapped, inertReason: reason }
}

export function allInert<K extends Keys>(keys: K, reason: string): K {
  return Object.fromEntries(Object.entries(keys).map(([name, key]) => [name, inert(key, reason)])) as unknown as K
}

/** A key of which a reload puts another value in force. */
export function live<T>(wrapped: Key<T>): Key<T> {
  return { ...wrapped, isLive: true }
}

/** A key that is worth what another one is, until it is set itself. `path`: see `Key.follows`. */
export function sameAs<T>(path: string, wrapped: Key<T>): Key<T> {
  return { ...wrapped, follows: path }
}

export function alsoSpelled<T>(aliases: readonly string[], wrapped: Key<T>): Key<T> {
  return { ...wrapped, aliases }
}

/** One value outside the range that has a meaning of its own, such as -1 for unlimited. */
export function except(value: number, means: string, wrapped: Key<number>): Key<number> {
  return {
    ...wrapped,
    expects: `${wrapped.expects}, or ${value} (${means})`,
    range: `${wrapped.range}, or ${value} (${means})`,
    schema: { anyOf: [wrapped.schema, { enum: [value, String(value)] }] },
    named: { ...wrapped.named, [value]: means },
    read: given => (numberIn(given) === value ? value : wrapped.read(given)),
  }
}

/** A default that gives way where another key of the section is set lower, so that lowering one key never takes two. */
export function upTo(ceiling: string, wrapped: Key<number>): Key<number> {
  return { ...wrapped, ceiling }
}

/** Whole numbers are often quoted, and many are documented as text. */
export const NUMERAL = /^-?\d{1,15}$/

/** What was given, as a number where it is the text of one. */
export function numberIn(given: unknown): unknown {
  return typeof given === 'string' && NUMERAL.test(given) ? Number(given) : given
}
