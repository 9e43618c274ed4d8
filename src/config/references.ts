/**
 * References inside values: `$ref{section.key}` and `$conf{section.key}` to another key, `$env{NAME}` to the
 * environment, `$file{PATH}` to the content of a file, `${property}` to what only the running process knows. `$$`
 * stands for a dollar sign before any of them.
 */

/** A value that was looked up. What comes from a secret stays one, whatever key it lands in. */
export interface Found {
  readonly value: unknown
  readonly secret: boolean
}

/** Why a value could not be had; '' when the reason is reported already, where the search failed first. */
export class Unresolved extends Error {
  readonly remedy: string

  constructor(message: string, remedy: string) {
    super(message)
    this.name = 'Unresolved'
    this.remedy = remedy
  }
}

// `$secret{}` and `$sys{}` belong to the reference platform; taken for text they would be wrong in silence.
const KINDS = ['ref', 'conf', 'env', 'file', 'secret', 'sys'] as const

export interface Reference {
  /** '' for a property. */
  readonly kind: (typeof KINDS)[number] | ''
  readonly name: string
}

/** Throws Unresolved. */
type Find = (reference: Reference) => Found

export function asWritten({ kind, name }: Reference): string {
  return `$${kind}{${name}}`
}

const REFERENCE = new RegExp(`(\\$?)\\$(${KINDS.join('|')})?\\{([^{}]*)\\}`, 'g')
const ONE_REFERENCE = new RegExp(`^\\$(${KINDS.join('|')})?\\{([^{}]*)\\}$`)

// Texts that refer to each other twice double at every step.
const LONGEST = 1_048_576
const MOST_ITEMS = 10_000
const TOO_LONG = 'comes to more than a value may be: 1048576 characters, or 10000 items of a list'

export function hasReference(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(hasReference)
  return typeof value === 'string' && value.includes('{') && value.search(REFERENCE) >= 0
}

/** The value with its references replaced; what they bring is taken as it is. Throws Unresolved. */
export function expand(value: unknown, find: Find): Found {
  if (Array.isArray(value)) return expandList(value, find)
  if (typeof value !== 'string') return { value, secret: false }
  // A text that is one reference takes on the type of what it refers to.
  const [whole, kind = '', name = ''] = ONE_REFERENCE.exec(value) ?? []
  return whole === undefined ? expandText(value, find) : find({ kind: kind as Reference['kind'], name })
}

function expandText(text: string, find: Find): Found {
  let secret = false
  let length = text.length
  const value = text.replace(
    REFERENCE,
    (written, dollar: string, kind: Reference['kind'] | undefined, name: string) => {
      if (dollar !== '') return written.slice(1)
      const found = find({ kind: kind ?? '', name })
      secret ||= found.secret
      const brought = asText(found.value)
      if (brought === undefined) throw new Unresolved(`${asWritten({ kind: kind ?? '', name })} is no text`, NO_TEXT)
      length += brought.length
      if (length > LONGEST) throw new Unresolved(TOO_LONG, 'refer to less')
      return brought
    },
  )
  return { value, secret }
}

const NO_TEXT = 'refer to a text, a number, a flag or a list of them'

/** As it stands within a text; undefined for a table. */
export function asText(value: unknown): string | undefined {
  if (Array.isArray(value)) {
    const items = value.map(asText)
    return items.includes(undefined) || value.some(Array.isArray) ? undefined : items.join(',')
  }
  if (value instanceof Date) return value.toISOString()
  return typeof value === 'object' ? undefined : String(value)
}

/** An item that is a reference to a list brings all items of that list. */
function expandList(list: readonly unknown[], find: Find): Found {
  const value: unknown[] = []
  let secret = false
  for (const item of list) {
    const found = expand(item, find)
    secret ||= found.secret
    if (Array.isArray(found.value) && !Array.isArray(item)) value.push(...found.value)
    else value.push(found.value)
    if (value.length > MOST_ITEMS) throw new Unresolved(TOO_LONG, 'refer to less')
  }
  return { value, secret }
}
