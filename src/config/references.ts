/**
 * References in values: `$ref{section.key}` and `$conf{section.key}` to another key, `$env{NAME}` to a variable,
 * `$file{PATH}` to a file, `${property}` to a property. `$$` before any of them stands for a dollar sign.
 */

/** A value that a reference brings; a value from a secret stays secret in every key. */
export interface ReferencedValue {
  readonly value: unknown
  readonly secret: boolean
}

/** A reference that cannot be resolved. The message is '' where the cause is reported already. */
export class UnresolvedReference extends Error {
  readonly hint: string

  constructor(message: string, hint: string) {
    super(message)
    this.name = 'UnresolvedReference'
    this.hint = hint
  }
}

// `$secret{}` and `$sys{}` belong to the reference platform; as plain text they would give wrong values silently.
const KINDS = ['ref', 'conf', 'env', 'file', 'secret', 'sys'] as const

export interface Reference {
  /** '' for a property. */
  readonly kind: (typeof KINDS)[number] | ''
  readonly name: string
}

/** Throws UnresolvedReference. */
type FindValue = (reference: Reference) => ReferencedValue

/** `$env{NAME}`. */
export function referenceText({ kind, name }: Reference): string {
  return `$${kind}{${name}}`
}

const REFERENCE = new RegExp(`(\\$?)\\$(${KINDS.join('|')})?\\{([^{}]*)\\}`, 'g')
const ONE_REFERENCE = new RegExp(`^\\$(${KINDS.join('|')})?\\{([^{}]*)\\}$`)

// Texts that refer to each other twice double in length at every step.
const TEXT_LENGTH_MAX = 1_048_576
const LIST_ITEMS_MAX = 10_000
const TOO_LONG = 'comes to more than a value may be: 1048576 characters, or 10000 items of a list'

export function hasReference(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(hasReference)
  return typeof value === 'string' && value.includes('{') && value.search(REFERENCE) >= 0
}

/** Replaces the references of a value; references within the replacements stay text. Throws UnresolvedReference. */
export function expandReferences(value: unknown, find: FindValue): ReferencedValue {
  if (Array.isArray(value)) return expandList(value, find)
  if (typeof value !== 'string') return { value, secret: false }
  // A text that is one reference takes the type of the referenced value.
  const [whole, kind = '', name = ''] = ONE_REFERENCE.exec(value) ?? []
  return whole === undefined ? expandText(value, find) : find({ kind: kind as Reference['kind'], name })
}

function expandText(text: string, find: FindValue): ReferencedValue {
  let secret = false
  let length = text.length
  const value = text.replace(
    REFERENCE,
    (written, dollar: string, kind: Reference['kind'] | undefined, name: string) => {
      if (dollar !== '') return written.slice(1)
      const reference = { kind: kind ?? '', name }
      const found = find(reference)
      secret ||= found.secret
      const replacement = asText(found.value)
      if (replacement === undefined) {
        const hint = 'refer to a text, a number, a flag or a list of them'
        throw new UnresolvedReference(`${referenceText(reference)} is no text`, hint)
      }
      length += replacement.length
      if (length > TEXT_LENGTH_MAX) throw new UnresolvedReference(TOO_LONG, 'refer to less')
      return replacement
    },
  )
  return { value, secret }
}

/** A value as part of a text; undefined for a table. */
export function asText(value: unknown): string | undefined {
  if (Array.isArray(value)) {
    const items = value.map(asText)
    return items.includes(undefined) || value.some(Array.isArray) ? undefined : items.join(',')
  }
  if (value instanceof Date) return value.toISOString()
  return typeof value === 'object' ? undefined : String(value)
}

/** An item that is a reference to a list is replaced by all items of that list. */
function expandList(list: readonly unknown[], find: FindValue): ReferencedValue {
  const value: unknown[] = []
  let secret = false
  for (const item of list) {
    const found = expandReferences(item, find)
    secret ||= found.secret
    if (Array.isArray(found.value) && !Array.isArray(item)) value.push(...found.value)
    else value.push(found.value)
    if (value.length > LIST_ITEMS_MAX) throw new UnresolvedReference(TOO_LONG, 'refer to less')
  }
  return { value, secret }
}
