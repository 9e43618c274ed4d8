/**
 * Templates of resources. A segment is a literal, `{name}` for any one that is not empty, or both (`{name}.{format}`,
 * `v{major}`). `/*` at the end stands for any rest, also an empty one. Literals are compared in their
 * canonical form; a literal without a canonical form could match no path and is an error.
 */
import { PathCanonicalizer } from './canonical-path.ts'
import { SEGMENTS_MAX } from './scanned-path.ts'

/** Text before, between and after the variables; one piece for a literal. "+" stands unescaped. */
export type TemplateSegment = readonly string[]

export interface PathTemplate {
  readonly segments: readonly TemplateSegment[]
  /** Ends in `/*`. */
  readonly isOpen: boolean
  /** Differs from the template without the slash only where both are declared. */
  readonly endsInSlash: boolean
}

/** Error in a template, in the terms of a diagnostic. */
interface TemplateError {
  readonly expected: string
  readonly hint: string
}

const CHARS_MAX = 2048
const NAME = /^[\p{L}\p{N}_.$@~-]+$/u
const VARIABLE = /\{([^{}]*)\}/
/** The two most frequent kinds of segments: a literal in canonical form, and a variable. */
const PLAIN_LITERAL = /^(?!\.\.?$)[\w\-.~!$&'()+,=:@]+$/
const PLAIN_VARIABLE = /^\{\w+\}$/
const VARIABLE_SEGMENT: TemplateSegment = ['', '']

export function parseTemplate(text: string): PathTemplate | TemplateError {
  if (text.length > CHARS_MAX) return error(`must have at most ${CHARS_MAX} characters`, 'shorten it')
  if (!text.startsWith('/')) return error('must start with "/"', `write /${text}`)
  if (/[?#]/.test(text)) {
    return error('must be a path without query and fragment', 'remove everything from "?" or "#" on')
  }
  const texts = text === '/' ? [] : text.slice(1).split('/')
  const isOpen = texts.at(-1) === '*'
  const endsInSlash = texts.at(-1) === ''
  if (isOpen || endsInSlash) texts.pop()
  // The path of the API stands before the template and may have as many segments.
  if (texts.length > SEGMENTS_MAX / 2) return error(`must have at most ${SEGMENTS_MAX / 2} segments`, 'shorten it')
  const segments: TemplateSegment[] = []
  for (const segment of texts) {
    const pieces = parseSegment(segment)
    if (isError(pieces)) return pieces
    segments.push(pieces)
  }
  return { segments, isOpen, endsInSlash }
}

export function isTemplateError(template: PathTemplate | TemplateError): template is TemplateError {
  return isError(template)
}

function isError(parsed: object): parsed is TemplateError {
  return 'expected' in parsed
}

function parseSegment(text: string): TemplateSegment | TemplateError {
  if (PLAIN_LITERAL.test(text)) return [text]
  if (PLAIN_VARIABLE.test(text)) return VARIABLE_SEGMENT
  if (text === '') return error('must not hold "//"', 'remove one of the slashes')
  if (text.includes('*')) return error('may hold "*" only as its last segment', 'write {name} for one segment')
  const parts = text.split(VARIABLE)
  const pieces: string[] = []
  for (const [index, part] of parts.entries()) {
    if (index % 2 === 1) {
      if (!NAME.test(part)) return error(`{${part}} is not a variable`, 'write a name, without operators and patterns')
      continue
    }
    if (/[{}]/.test(part)) return error('holds a brace without its counterpart', 'write variables as {name}')
    if (part === '' && index > 0 && index < parts.length - 1) {
      return error('has two variables side by side', 'put a character between them')
    }
    const piece = new PathCanonicalizer().literal(part)
    if (typeof piece !== 'string') return error(`can match no path: the ${piece.rule}`, 'write it as requests may')
    pieces.push(piece.replaceAll('%2B', '+'))
  }
  const [only] = pieces
  if (pieces.length === 1 && (only === '.' || only === '..')) {
    return error('must not hold dot segments', 'write the path they lead to')
  }
  return pieces
}

function error(expected: string, hint: string): TemplateError {
  return { expected, hint }
}
