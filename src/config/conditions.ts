/** Conditions under which keys act, as data: a start judges them, and the generated documents name them. */

/** Value that another key must have. `key`: a whole path, or `.name` in the same section or row. */
interface KeyCondition {
  readonly key: string
  /** The key must have one of these values; with `negated`, none of them. */
  readonly values: readonly unknown[]
  readonly negated: boolean
}

/** One of several conditions. */
interface Alternatives {
  readonly any: readonly Condition[]
}

export type Condition = KeyCondition | Alternatives

export function isOneOf(key: string, ...values: readonly unknown[]): Condition {
  return { key, values, negated: false }
}

export function isNot(key: string, ...values: readonly unknown[]): Condition {
  return { key, values, negated: true }
}

export function isTrue(key: string): Condition {
  return isOneOf(key, true)
}

/** Not empty: a text, or a list. */
export function isSet(key: string): Condition {
  return isNot(key, '')
}

export function isNotSet(key: string): Condition {
  return isOneOf(key, '')
}

export function either(...any: readonly Condition[]): Condition {
  return { any }
}

/** `valueAt`: value of the key with this path. */
export function holds(condition: Condition, valueAt: (key: string) => unknown): boolean {
  if ('any' in condition) return condition.any.some(each => holds(each, valueAt))
  const value = valueAt(condition.key)
  const compared = Array.isArray(value) && value.length === 0 ? '' : value
  return condition.values.includes(compared) !== condition.negated
}

/** The condition in words. `nameOf`: name of a key where the words stand. */
export function conditionText(condition: Condition, nameOf: (key: string) => string): string {
  if ('any' in condition) return alternatives(condition.any.map(each => conditionText(each, nameOf)))
  const { key, values, negated } = condition
  if (values[0] === '') return `${nameOf(key)} is ${negated ? '' : 'not '}set`
  return `${nameOf(key)} is ${negated ? 'not ' : ''}${alternatives(values.map(String))}`
}

function alternatives(words: readonly string[]): string {
  return [words.slice(0, -1).join(', '), ...words.slice(-1)].filter(part => part !== '').join(' or ')
}

/** The keys that decide. */
export function decidingKeys(condition: Condition): readonly string[] {
  return 'any' in condition ? condition.any.flatMap(decidingKeys) : [condition.key]
}

/** The same condition with other keys, as for a name that the operator has chosen. */
export function withKeys(condition: Condition, change: (key: string) => string): Condition {
  if ('any' in condition) return { any: condition.any.map(each => withKeys(each, change)) }
  return { ...condition, key: change(condition.key) }
}
