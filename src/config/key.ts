/**
 * Types of the catalogue: a key has a default, a meaning and a reader of one given value; a section has keys and rules.
 * A key knows neither its name nor where its value was written. `kinds.ts` makes keys, this file modifies them.
 */

import { type Condition, isOneOf } from './conditions.ts'

export interface Key<T> {
  readonly kind: string
  readonly defaultValue: T
  readonly meaning: string
  /** A noun phrase for a valid value, for messages and the reference page. */
  readonly expects: string
  /** '' where the value has no unit. */
  readonly unit: string
  /** '' where every value of the kind is accepted. */
  readonly range: string
  /** JSON Schema of a value without references, for editors. */
  readonly schema: JsonSchema
  /** Values with a special meaning, such as -1 for unlimited. */
  readonly specialValues: Readonly<Record<string, string>>
  readonly secret: boolean
  /** Must be set where its section is used, or a row of it is opened. */
  readonly required: boolean
  /** A key of the same section that caps the default; '' for a fixed default. */
  readonly cappedBy: string
  /** The key whose value is the default: a whole path, or `.name` in the same section or row; '' for none. */
  readonly follows: string
  /** Other documented spellings. */
  readonly aliases: readonly string[]
  /** A reload makes a new value effective; other keys need a restart. */
  readonly isLive: boolean
  /** Why the gateway accepts the key without acting on it; '' for a key that is acted on. */
  readonly inertReason: string
  /** The key acts while all of these hold; empty for a key that always acts. */
  readonly requirements: readonly Requirement[]
  /** Converts a given value to the key's type; undefined for a value that the key does not take. */
  readonly read: (given: unknown) => T | undefined
}

export interface Requirement {
  readonly condition: Condition
  /** Why the key does not act without it; '' where the condition says enough. */
  readonly otherwise: string
}

export type JsonSchema = Readonly<Record<string, unknown>>

type Keys = Readonly<Record<string, Key<unknown>>>

/** Placeholder in the name of a key for a name that the operator chooses. */
export const FREE_NAME = '<name>'

/** Typed values of a section by documented name. Keys with a free name exist at run time, but have no type. */
export type Values<K> = {
  readonly [P in keyof K as P extends `${string}${typeof FREE_NAME}${string}` ? never : P]: K[P] extends Key<infer T>
    ? T
    : never
}

/** A condition between keys of one section. A violated warning does not prevent a start. */
export interface Rule<V> {
  /** A violation is reported at the first that is set; a warning only if the first of all is set. */
  readonly keys: readonly (keyof V & string)[]
  readonly must: string
  readonly severity: 'error' | 'warning'
  holds(values: V): boolean
}

/** `section.key`; the key alone for the section without a name, above every header. */
export function keyPath(section: string, key: string): string {
  return section === '' ? key : `${section}.${key}`
}

/** Values of `server.server_role`: which parts a node runs. */
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
/** Roles of which a part is built. */
export const BUILT_ROLES: readonly Role[] = [
  'default',
  'control-plane',
  'api-key-manager',
  'gateway-worker',
  'traffic-manager',
]

const ROLE = 'server.server_role'
/** Nodes with a gateway. */
const GATEWAY = isOneOf(ROLE, 'default', 'gateway-worker')
/** Nodes with a key manager, and so with a database and a management listener. */
export const KEY_MANAGER = isOneOf(ROLE, 'default', 'control-plane', 'api-key-manager')
/** Nodes that may receive reports of gateways. */
const TRAFFIC_MANAGER = isOneOf(ROLE, 'default', 'control-plane', 'traffic-manager')
/** Nodes that use the key manager of another node. */
export const WORKER = isOneOf(ROLE, 'gateway-worker')

/**
 * Another form of `[[table]]` that documents use: '' none; `table`: `[table]` for a single row; `named`: `[table.NAME]`
 * for each row, where NAME is the default of its key `name`.
 */
type AlternativeForm = '' | 'table' | 'named'

export interface Section<N extends string, K extends Keys, R extends boolean = boolean> {
  /** '' for the keys above the first header of the file. */
  readonly name: N
  readonly meaning: string
  /** Written `[[name]]`, once per row; a list of rows in the configuration. */
  readonly repeated: R
  readonly alternativeForm: AlternativeForm
  /** Other documented names of the section. */
  readonly alternativeNames: readonly string[]
  readonly keys: K
  readonly rules: readonly Rule<Values<K>>[]
  /** Roles of the nodes that read the section; `default` is always one of them. */
  readonly roles: readonly Role[]
}

/** Optional properties of a section. */
interface SectionOptions<K extends Keys> {
  readonly rules?: readonly Rule<Values<K>>[]
  /** Left out: all roles. */
  readonly roles?: readonly Exclude<Role, 'default' | 'control-plane'>[]
  /** Only for repeated tables. */
  readonly alternativeForm?: AlternativeForm
  readonly alternativeNames?: readonly string[]
}

export function section<const N extends string, K extends Keys>(
  name: N,
  meaning: string,
  keys: K,
  about: SectionOptions<K> = {},
): Section<N, K, false> {
  return { name, meaning, repeated: false, keys, ...withDefaults(about) }
}

export function repeatedSection<const N extends string, K extends Keys>(
  name: N,
  meaning: string,
  keys: K,
  about: SectionOptions<K> = {},
): Section<N, K, true> {
  return { name, meaning, repeated: true, keys, ...withDefaults(about) }
}

function withDefaults<K extends Keys>({
  rules = [],
  roles = [],
  alternativeForm = '',
  alternativeNames = [],
}: SectionOptions<K>) {
  const all = roles.length === 0 ? ROLES : ROLES.filter(role => roleReads(role, roles))
  return { rules, alternativeForm, alternativeNames, roles: all }
}

/** A control plane runs every part except the gateway. */
function roleReads(role: Role, roles: readonly Role[]): boolean {
  if (role === 'control-plane') return roles.some(part => part !== 'gateway-worker')
  return role === 'default' || roles.includes(role)
}

/** A key that must be set where its section is used; an empty value is not accepted. */
export function required<T>(wrapped: Key<T>): Key<T> {
  const read = (given: unknown): T | undefined => {
    const value = wrapped.read(given)
    return value === '' || (Array.isArray(value) && value.length === 0) ? undefined : value
  }
  return { ...wrapped, required: true, read }
}

/** A key that is accepted, so that documented files load, and not acted on. Setting it gives a warning. */
export function inert<T>(wrapped: Key<T>, reason: string): Key<T> {
  return { ...wrapped, inertReason: reason }
}

export function allInert<K extends Keys>(keys: K, reason: string): K {
  return Object.fromEntries(Object.entries(keys).map(([name, key]) => [name, inert(key, reason)])) as unknown as K
}

/** A key that acts only while a condition holds. Setting it while the condition does not hold gives a warning. */
export function actsIf<T>(condition: Condition, wrapped: Key<T>, otherwise = ''): Key<T> {
  return { ...wrapped, requirements: [{ condition, otherwise }, ...wrapped.requirements] }
}

export function allActIf<K extends Keys>(condition: Condition, keys: K, otherwise = ''): K {
  const wrapped = Object.entries(keys).map(([name, key]) => [name, actsIf(condition, key, otherwise)])
  return Object.fromEntries(wrapped) as unknown as K
}

/** A key of a section that all nodes read, which acts on nodes with a gateway only. */
export function ofGateway<T>(wrapped: Key<T>): Key<T> {
  return actsIf(GATEWAY, wrapped)
}

export function ofKeyManager<T>(wrapped: Key<T>): Key<T> {
  return actsIf(KEY_MANAGER, wrapped)
}

export function ofTrafficManager<T>(wrapped: Key<T>): Key<T> {
  return actsIf(TRAFFIC_MANAGER, wrapped)
}

/** A key whose new value a reload makes effective. */
export function live<T>(wrapped: Key<T>): Key<T> {
  return { ...wrapped, isLive: true }
}

/** A key whose default is the value of another key. `path`: see `Key.follows`. */
export function sameAs<T>(path: string, wrapped: Key<T>): Key<T> {
  return { ...wrapped, follows: path }
}

export function withAliases<T>(aliases: readonly string[], wrapped: Key<T>): Key<T> {
  return { ...wrapped, aliases }
}

/** Accepts one value outside the range, with a special meaning such as -1 for unlimited. */
export function withSpecialValue(value: number, means: string, wrapped: Key<number>): Key<number> {
  return {
    ...wrapped,
    expects: `${wrapped.expects}, or ${value} (${means})`,
    range: `${wrapped.range}, or ${value} (${means})`,
    schema: { anyOf: [wrapped.schema, { enum: [value, String(value)] }] },
    specialValues: { ...wrapped.specialValues, [value]: means },
    read: given => (numberIn(given) === value ? value : wrapped.read(given)),
  }
}

/** A default that is never above another key of the section, so that lowering that key alone is valid. */
export function defaultCappedBy(cappedBy: string, wrapped: Key<number>): Key<number> {
  return { ...wrapped, cappedBy }
}

/** Integers in quotes, as many documents write them. */
export const NUMERAL = /^-?\d{1,15}$/

/** A quoted integer as a number; any other value unchanged. */
export function numberIn(given: unknown): unknown {
  return typeof given === 'string' && NUMERAL.test(given) ? Number(given) : given
}
