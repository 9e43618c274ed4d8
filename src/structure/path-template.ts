/**
 * Templates of resources: literal segments, `{name}` for one segment that is not empty, both in one segment
 * (`{name}.{format}`, `v{major}`), and `/*` at the end for whatever follows, nothing included. Their literals are held
 * to the canonical form of paths, in which they are compared; one that has none could never match, and is a fault.
 */
import { canonicalText } from './canonical-path.ts'
import { SEGMENTS_MAX } from './scanned-path.ts'

/** What stands in front of, between and behind the variables; one piece for a literal. "+" is never escaped here. */
export type TemplateSegment = readonly string[]

export interface PathTemplate {
  readonly segments: readonly TemplateSegment[]
  /** It ends in `/*`. */
  readonly isOpen: boolean
  /** `/menu/`: told apart from `/menu` only where both are declared. */
  readonly endsInSlash: boolean
}

/** Why a text is no template. */
interface TemplateFault {
  readonly expected: string
  readonly remedy: string
}

const CHARS_MAX = 2048
const NAME = /^[\p{L}\p{N}_.$@~-]+$/u
const VARIABLE = /\{([^{}]*)\}/
/** Segments as nearly all are: a literal in canonical form, or a variable. */
const PLAIN_LITERAL = /^(?!\.\.?$)[\w\-.~!$&'()+,=:@]+$/
const PLAIN_VARIABLE = /^\{\w+\}$/
const VARIABLE_SEGMENT: TemplateSegment = ['', '']

export function readTemplate(text: string): PathTemplate | TemplateFault {
  if (text.length > CHARS_MAX) return fault(`must have at most ${CHARS_MAX} characters`, 'shorten it')
  if (!text.startsWith('/')) return fault('must start with "/"', `write /${text}`)
  if (/[?#]/.test(text))
    return fault('must be a path without query and fragment', 'leave out what begins at "?" or "#"')
  const texts = text === '/' ? [] : text.slice(1).split('/')
  const isOpen = texts.at(-1) === '*'
  const endsInSlash = texts.at(-1) === ''
  if (isOpen || endsInSlash) texts.pop()
  // Half of them: the path of its API stands in front.
  if (texts.length > SEGMENTS_MAX / 2) return fault(`must have at most ${SEGMENTS_MAX / 2} segments`, 'shorten it')
  const segments: TemplateSegment[] = []
  for (const segment of texts) {
    const pieces = readSegment(segment)
    if (isFault(pieces)) return pieces
    segments.push(pieces)
  }
  return { segments, isOpen, endsInSlash }
}

export function isTemplateFault(template: PathTemplate | TemplateFault): template is TemplateFault {
  return isFault(template)
}

function isFault(read: object): read is TemplateFault {
  return 'expected' in read
}

function readSegment(text: string): TemplateSegment | TemplateFault {
  if (PLAIN_LITERAL.test(text)) return [text]
  if (PLAIN_VARIABLE.test(text)) return VARIABLE_SEGMENT
  if (text === '') return fault('must not hold "//"', 'drop one of the slashes')
  if (text.includes('*')) return fault('may hold "*" only as its last segment', 'write {name} for one segment')
  const parts = text.split(VARIABLE)
  const pieces: string[] = []
  for (const [index, part] of parts.entries()) {
    if (index % 2 === 1) {
      if (!NAME.test(part)) return fault(`{${part}} is not a variable`, 'write a name, without operators and patterns')
      continue
    }
    if (/[{}]/.test(part)) return fault('holds a brace that is not one of a pair', 'write variables as {name}')
    if (part === '' && index > 0 && index < parts.length - 1) {
      return fault('has two variables side by side', 'put a character between them')
    }
    const piece = canonicalText(part)
    if (typeof piece !== 'string') return fault(`can match no path: the ${piece.rule}`, 'write it as requests may')
    pieces.push(piece.replaceAll('%2B', '+'))
  }
  const [only] = pieces
  if (pieces.length === 1 && (only === '.' || only === '..')) {
    return fault('must not hold dot segments', 'write the path they lead to')
  }
  return pieces
}

function fault(expected: string, remedy: string): TemplateFault {
  return { expected, remedy }
}
