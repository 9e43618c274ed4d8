/**
 * References inside values: `$ref{section.key}` and `$conf{section.key}` to another key, `$env{NAME}` to the
 * environment, `${property}` to what only the running process knows. `$$` stands for a dollar sign before any of them.
 */

/** A value that was looked up. What comes from a secret stays one, whatever key it lands in. */
export interface Found {
  readonly value: unknown
  readonly secret: boolean
}

/** Why a value could not be had; '' when the reason is reported where it belongs, at the key referred to. */
export class Unresolved extends Error {
  readonly remedy: string

  constructor(message: string, remedy: string) {
    super(message)
    this.name = 'Unresolved'
    this.remedy = remedy
  }
}

export interface Lookup {
  /** Throws Unresolved for a missing key and for one that refers back to where the search began. */
  key(path: string): Found
  property(name: string): Found
}

const REFERENCE = /(\$?)\$(ref|conf|env)?\{([^{}]*)\}/g

export function hasReference(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(hasReference)
  return typeof value === 'string' && value.search(REFERENCE) >= 0
}

/** The value with its references replaced. Throws Unresolved. */
export function expand(value: unknown, lookup: Lookup): Found {
  if (Array.isArray(value)) return expandList(value, lookup)
  if (typeof value !== 'string') return { value, secret: false }
  // A text that is one reference takes on the type of what it refers to.
  const whole = /^\$(ref|conf|env)?\{([^{}]*)\}$/.exec(value)
  if (whole !== null) return find(whole[1] ?? '', whole[2]!, lookup)
  let secret = false
  const replaced = value.replace(REFERENCE, (written, dollar: string, kind: string | undefined, name: string) => {
    if (dollar !== '') return written.slice(1)
    const found = find(kind ?? '', name, lookup)
    secret ||= found.secret
    return Array.isArray(found.value) ? found.value.join(',') : String(found.value)
  })
  return { value: replaced, secret }
}

function expandList(list: readonly unknown[], lookup: Lookup): Found {
  const found = list.map(item => expand(item, lookup))
  return { value: found.map(item => item.value), secret: found.some(item => item.secret) }
}

function find(kind: string, name: string, lookup: Lookup): Found {
  if (kind === '') return lookup.property(name)
  if (kind !== 'env') return lookup.key(name)
  const value = process.env[name]
  if (value === undefined) {
    throw new Unresolved(`there is no environment variable ${name}`, 'set it before the start, or write the value here')
  }
  return { value, secret: false }
}
