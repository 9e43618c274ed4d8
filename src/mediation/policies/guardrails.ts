/**
 * Guardrails of AI APIs, on requests and responses: word count, sentence count, length, pattern, JSON Schema, and the
 * URLs that a text may hold. A violation raises `guardrail_fault` with 900514.
 */
import type { XmlElement } from '../../config/xml.ts'
import { compilePattern, type Pattern } from '../../runtime/pattern.ts'
import { showLife } from '../../runtime/signs-of-life.ts'
import type { Expression } from '../expression.ts'
import type { Evaluate } from '../expression-compiler.ts'
import { bodyFormatOf, isXmlFormat } from '../formats/body-types.ts'
import { repeatedMembers } from '../formats/json-members.ts'
import { compileSchema, type SchemaCheck } from '../json-schema.ts'
import { textOfPayload } from '../json-xml.ts'
import { MediationFault } from '../mediation-fault.ts'
import { mediator } from '../mediator.ts'
import type { Message } from '../message.ts'
import type { SequenceParser } from '../sequence-parser.ts'
import { type Json, textOf } from '../value.ts'
import { allowedUrl, isAllowed, urlsIn } from './allowed-urls.ts'
import {
  allTexts,
  INSPECTED_MAX,
  isTooLong,
  type InspectedTexts,
  textsOfBody,
  textsOfJson,
  textsOfText,
} from './inspected-texts.ts'
import { limitIn } from './threat-protection.ts'

const CODE = 900514
/** As on the reference platform. */
const STATUS = 446

type Rule =
  /** `max`: 0 for none. */
  | { readonly kind: 'wordCount' | 'sentenceCount' | 'contentLength'; readonly min: number; readonly max: number }
  | { readonly kind: 'regex'; readonly pattern: string }
  | { readonly kind: 'jsonSchema'; readonly schema: string }
  | { readonly kind: 'url'; readonly allowed: readonly string[] }

const KINDS = ['wordCount', 'sentenceCount', 'contentLength', 'regex', 'jsonSchema', 'url'] as const

interface GuardrailSettings {
  readonly name: string
  /** JSONPath of the text; null: the whole body. */
  readonly source: Expression | null
  readonly rule: Rule
  /** Texts that would pass are refused, and the other way round. */
  readonly isInverted: boolean
  /** The client is told the measure. */
  readonly showsAssessment: boolean
}

export const guardrail = mediator<GuardrailSettings>({
  name: 'guardrail',
  attributes: ['type', 'name', 'jsonPath', 'min', 'max', 'pattern', 'invert', 'showAssessment'],
  elements: ['schema', 'url'],

  parse(element, parser) {
    if (parser.required(element, 'type') === undefined) return undefined
    const kind = parser.choice(element, 'type', KINDS, 'wordCount')
    const source = element.attribute('jsonPath') === '' ? null : parser.jsonPath(element, 'jsonPath')
    const [isInverted, showsAssessment] = [parser.flag(element, 'invert'), parser.flag(element, 'showAssessment')]
    const rule = kind === undefined ? undefined : parseRule(element, kind, parser)
    if (rule === undefined || source === undefined) return undefined
    if (isInverted === undefined || showsAssessment === undefined) return undefined
    return { name: element.attribute('name') || rule.kind, source, rule, isInverted, showsAssessment }
  },

  needs: () => 'worker',

  compile({ name, source, rule, isInverted, showsAssessment }, context) {
    const evaluate = source === null ? null : context.compileExpression(source)
    const assess = compileRule(rule)
    const readsMembers = source !== null || rule.kind === 'jsonSchema'
    return message => {
      const { result, assessment } =
        (readsMembers ? uninspected(message, source) : null) ?? assess(contentOf(message, evaluate))
      if (result === (isInverted ? 'fails' : 'passes')) return true
      const direction = message.isFromBackend ? 'response' : 'request'
      const violation = `the guardrail ${name} refuses the ${direction}`
      const told = showsAssessment ? `${violation}: ${assessment}` : violation
      message.set('default', 'CUSTOM_HTTP_SC', STATUS)
      throw new MediationFault({
        ...{ code: CODE, message: told, sequence: 'guardrail_fault' },
        cause: `${violation}: ${assessment}`,
      })
    }
  },
})

function parseRule(element: XmlElement, kind: Rule['kind'], parser: SequenceParser): Rule | undefined {
  if (kind === 'regex') {
    const pattern = parser.pattern(element, 'pattern')
    return pattern === undefined ? undefined : { kind, pattern }
  }
  if (kind === 'jsonSchema') {
    const schema = parser.only(element, 'schema')
    if (schema === undefined) return parser.error(element, 'schema', 'is missing', 'add <schema>')
    try {
      compileSchema(schema.text)
      return { kind, schema: schema.text }
    } catch (error) {
      // The rest of the message quotes the schema.
      const reason = (error as Error).message.replace(/["':][\s\S]*$/, '').trim()
      return parser.error(schema, '', `is not a JSON Schema: ${reason}`, 'correct it')
    }
  }
  if (kind === 'url') {
    const urls = element.children.filter(child => child.name === 'url')
    const wrong = urls.find(({ text }) => allowedUrl(text) === undefined)
    if (wrong !== undefined)
      return parser.error(wrong, '', 'is neither a host nor a URL', 'write example.com', wrong.text)
    return { kind, allowed: urls.map(({ text }) => text) }
  }
  const [min, max] = [limitIn(element, 'min', parser), limitIn(element, 'max', parser)]
  if (min === undefined || max === undefined) return undefined
  if (max !== 0 && min > max) return parser.error(element, 'min', 'is more than max', 'correct it', String(min))
  return { kind, min, max }
}

/** Text that a rule looks at, and the JSON that it is part of. */
interface Content {
  readonly text: string
  /** Undefined: the text may be JSON itself. */
  readonly json: Json | undefined
  /** Returns the texts for patterns and URLs. */
  texts(): InspectedTexts
}

function contentOf(message: Message, evaluate: Evaluate | null): Content {
  if (evaluate !== null) {
    const value = evaluate(message)
    const json = typeof value === 'object' && value.kind === 'json' ? value.value : undefined
    const text = textOf(value)
    return { text, json, texts: () => (json === undefined ? textsOfText(text) : textsOfJson(json)) }
  }
  const { payload } = message
  const text = payload === null ? '' : textOfPayload(payload)
  return { text, json: undefined, texts: () => textsOfBody(message) }
}

interface Assessment {
  /** `uninspected`: the rule could not read the text. Such a text is refused, inverted or not. */
  readonly result: 'passes' | 'fails' | 'uninspected'
  /** Without any text of the message. */
  readonly assessment: string
}

function compileRule(rule: Rule): (content: Content) => Assessment {
  switch (rule.kind) {
    case 'wordCount':
      return ({ text }) => within(rule, countRuns(text, isSpace), 'words')
    case 'sentenceCount':
      return ({ text }) => within(rule, countRuns(text, endsSentence), 'sentences')
    case 'contentLength':
      return ({ text }) => within(rule, Buffer.byteLength(text), 'bytes')
    case 'regex':
      return regexRule(rule.pattern)
    case 'jsonSchema':
      return schemaRule(rule.schema)
    case 'url':
      return urlRule(rule.allowed)
  }
}

/** Characters between two signs of life. */
const CHARACTERS_PER_SIGN = 4_194_304

/** Counts runs of characters that hold more than spaces, without a list of them, which could take gigabytes. */
function countRuns(text: string, ends: (code: number) => boolean): number {
  let count = 0
  let isWithin = false
  for (let at = 0; at < text.length; at++) {
    if (at % CHARACTERS_PER_SIGN === 0) showLife()
    const code = text.charCodeAt(at)
    if (ends(code)) isWithin = false
    else if (!isWithin && !isSpace(code)) {
      isWithin = true
      count++
    }
  }
  return count
}

/** White space of ECMAScript (`\s`). */
function isSpace(code: number): boolean {
  return code <= 0x20 ? code === 0x20 || (code >= 0x09 && code <= 0x0d) : code >= 0xa0 && WIDE_SPACES.has(code)
}
const WIDE_SPACES: ReadonlySet<number> = new Set(
  [
    '\u00a0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff',
    '\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a',
  ]
    .flatMap(spaces => Array.from(spaces))
    .map(space => space.charCodeAt(0)),
)

/** `.`, `!` or `?`. */
function endsSentence(code: number): boolean {
  return code === 0x2e || code === 0x21 || code === 0x3f
}

function within({ min, max }: { readonly min: number; readonly max: number }, count: number, unit: string): Assessment {
  const allowed = max === 0 ? `at least ${min}` : `${min} to ${max}`
  const passes = count >= min && (max === 0 || count <= max)
  return { result: resultOf(passes), assessment: `${count} ${unit}, limits: ${allowed}` }
}

function resultOf(passes: boolean): Assessment['result'] {
  return passes ? 'passes' : 'fails'
}

/** Another reader may take the member that the rule does not see. */
const AMBIGUOUS: Assessment = { result: 'uninspected', assessment: 'a member of the JSON repeats' }

/** A backend may read JSON in it all the same, whatever its content type says. */
const NO_JSON: Assessment = { result: 'uninspected', assessment: 'the body is not JSON' }

/** Null where the members of the body can be read: those of JSON, and with a JSONPath those of XML, too. */
function uninspected(message: Message, source: Expression | null): Assessment | null {
  const { payload } = message
  if (payload?.kind === 'json') return repeatedMembers(payload.text, 1).length > 0 ? AMBIGUOUS : null
  if (source === null || payload === null) return null
  const isXml = payload.kind === 'xml' && isXmlFormat(bodyFormatOf(textOf(message.get('transport', 'content-type'))))
  return isXml ? null : NO_JSON
}

const TOO_LONG: Assessment = {
  result: 'uninspected',
  assessment: `the text has more than ${INSPECTED_MAX} characters`,
}

function regexRule(pattern: string): (content: Content) => Assessment {
  let compiled: Pattern | undefined
  return content => {
    const texts = content.texts()
    if (isTooLong(texts)) return TOO_LONG
    compiled ??= compilePattern(pattern)
    const passes = isFoundIn(texts, compiled)
    return { result: resultOf(passes), assessment: `the text ${passes ? 'matches' : 'does not match'} the pattern` }
  }
}

function isFoundIn(texts: InspectedTexts, pattern: Pattern): boolean {
  for (const text of allTexts(texts)) if (pattern.test(text)) return true
  return false
}

function schemaRule(schema: string): (content: Content) => Assessment {
  let check: SchemaCheck | undefined
  return ({ text, json }) => {
    const value = json ?? jsonIn(text)
    // A body that is not there holds nothing that an inverted rule refuses.
    if (value === undefined)
      return { result: text === '' ? 'fails' : 'uninspected', assessment: 'the text is not JSON' }
    // A text within the body may be JSON of its own.
    if (json === undefined && repeatedMembers(text, 1).length > 0) return AMBIGUOUS
    check ??= compileSchema(schema)
    const isValid = check(value) === ''
    return { result: resultOf(isValid), assessment: `the JSON is ${isValid ? '' : 'not '}valid` }
  }
}

/** Undefined where the text is not JSON. */
function jsonIn(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    return undefined
  }
}

/** URLs that are compared, because each may begin within the one before it. */
const URLS_MAX = 10_000
const TOO_MANY: Assessment = { result: 'uninspected', assessment: `the text has more than ${URLS_MAX} URLs` }

function urlRule(texts: readonly string[]): (content: Content) => Assessment {
  const allowed = texts.map(text => allowedUrl(text)!)
  return content => {
    const texts = content.texts()
    if (isTooLong(texts)) return TOO_LONG
    let [count, refused] = [0, 0]
    // A look at the whole would take what separates names and values for a part of a URL.
    for (const text of texts.parts ?? texts.whole.slice(-1)) {
      for (const url of urlsIn(text)) {
        if (++count > URLS_MAX) return TOO_MANY
        if (!isAllowed(url, allowed)) refused++
      }
    }
    return { result: resultOf(refused === 0), assessment: `${refused} URLs that are not allowed` }
  }
}
