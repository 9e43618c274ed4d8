/**
 * Templates of request bodies: `$name` and `$body.name` stand for values of the sender, `{{mobile}}` and `{{body}}` for
 * those of the event. A template is split into pieces once; values are escaped for their place and never read again, so
 * that no value can leave its place or add a placeholder.
 */

export const CONTENT_TYPES = ['JSON', 'FORM'] as const
export type ContentType = (typeof CONTENT_TYPES)[number]

/** Fields of an SMS sender that a template can name. */
export const ATTRIBUTES: readonly string[] = [
  ...['name', 'provider', 'providerURL', 'key', 'secret', 'sender', 'contentType'],
]

/** A template that names one value often makes much of a short request. */
export const FILLED_CHARS_MAX = 1_048_576

/** The template can not be used; the message says why. */
export class InvalidTemplate extends Error {
  override readonly name = 'InvalidTemplate'
}

interface TemplateValues {
  /** '' for a field that the sender does not have. */
  attribute(name: string): string
  /** Value of the property `body.NAME`. */
  property(name: string): string
  readonly mobile: string
  readonly body: string
}

interface Placeholder {
  readonly kind: 'attribute' | 'property' | 'mobile' | 'body'
  /** '' for values of the event. */
  readonly name: string
  /** Within a string of JSON; true for forms. */
  readonly isQuoted: boolean
}

type Piece = string | Placeholder

/** `$body.NAME` takes the longest name; a name that is none of the attributes stays as it is. */
const PLACEHOLDER = /\{\{(mobile|body)\}\}|\$body\.(\w+(?:[.-]\w+)*)|\$([A-Za-z_]\w*)/g
/** A value that may stand outside of strings of JSON. */
const JSON_LITERAL = /^(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)$/

export class BodyTemplate {
  /** Names behind `$body.` in the template. */
  readonly properties: readonly string[]
  readonly #pieces: readonly Piece[]
  readonly #contentType: ContentType

  /** Throws InvalidTemplate. */
  constructor(text: string, contentType: ContentType) {
    this.#contentType = contentType
    this.#pieces = contentType === 'JSON' ? jsonPieces(text) : formPieces(text)
    const named = this.#pieces.flatMap(piece => (isPlaceholder(piece) && piece.kind === 'property' ? [piece.name] : []))
    this.properties = [...new Set(named)]
    if (contentType === 'JSON') this.#checkJson()
  }

  /** Throws InvalidTemplate where the values make it too long. */
  fill(values: TemplateValues): string {
    const write = this.#contentType === 'JSON' ? jsonValue : formValue
    const text = joinUpTo(
      FILLED_CHARS_MAX,
      this.#pieces.values().map(piece => (isPlaceholder(piece) ? write(textOf(piece, values), piece) : piece)),
    )
    if (text === null) throw new InvalidTemplate(`the message has more than ${FILLED_CHARS_MAX} characters`)
    return text
  }

  /** Fills the template with trial values: with any others the body is JSON if it is with these. */
  #checkJson(): void {
    for (const value of ['', 'x', '1']) {
      const values = { attribute: () => value, property: () => value, mobile: value, body: value }
      try {
        JSON.parse(this.fill(values))
      } catch {
        throw new InvalidTemplate('the template is no JSON text with values in its places')
      }
    }
  }
}

/** Null beyond `most` characters; the rest is not made then. */
export function joinUpTo(most: number, pieces: Iterable<string>): string | null {
  const parts: string[] = []
  let length = 0
  for (const piece of pieces) {
    length += piece.length
    if (length > most) return null
    parts.push(piece)
  }
  return parts.join('')
}

function isPlaceholder(piece: Piece): piece is Placeholder {
  return typeof piece !== 'string'
}

/** Texts and placeholders in turn; `isQuoted` is true. */
function piecesOf(text: string): Piece[] {
  const pieces: Piece[] = []
  let from = 0
  for (const match of text.matchAll(PLACEHOLDER)) {
    const [whole, ofEvent, property, attribute] = match
    if (attribute !== undefined && !ATTRIBUTES.includes(attribute)) continue
    pieces.push(text.slice(from, match.index))
    from = match.index + whole.length
    if (ofEvent !== undefined) pieces.push({ kind: ofEvent as 'mobile' | 'body', name: '', isQuoted: true })
    else if (property !== undefined) pieces.push({ kind: 'property', name: property, isQuoted: true })
    else pieces.push({ kind: 'attribute', name: attribute!, isQuoted: true })
  }
  return [...pieces, text.slice(from)]
}

function jsonPieces(text: string): Piece[] {
  let isQuoted = false
  return piecesOf(text).map(piece => {
    if (isPlaceholder(piece)) return { ...piece, isQuoted }
    let isEscaped = false
    for (const char of piece) {
      if (isEscaped) isEscaped = false
      else if (isQuoted && char === '\\') isEscaped = true
      else if (char === '"') isQuoted = !isQuoted
    }
    if (isEscaped) throw new InvalidTemplate('the template has a backslash before a placeholder')
    return piece
  })
}

function formPieces(text: string): Piece[] {
  const pieces = piecesOf(text)
  const hasOther = pieces.some(piece => !isPlaceholder(piece) && /[^!-~]/.test(piece))
  if (hasOther) throw new InvalidTemplate('the template of a form has white space or characters beyond ASCII')
  return pieces
}

function textOf({ kind, name }: Placeholder, values: TemplateValues): string {
  if (kind === 'attribute') return values.attribute(name)
  return kind === 'property' ? values.property(name) : values[kind]
}

function jsonValue(value: string, { kind, isQuoted }: Placeholder): string {
  if (!isQuoted && kind === 'property' && JSON_LITERAL.test(value)) return value
  // Escapes surrogates without their other half too, so that the body is UTF-8.
  const quoted = JSON.stringify(value)
  return isQuoted ? quoted.slice(1, -1) : quoted
}

function formValue(value: string): string {
  // Surrogates without their other half become U+FFFD.
  return new URLSearchParams([['', value]]).toString().slice(1)
}
