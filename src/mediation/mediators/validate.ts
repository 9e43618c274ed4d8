/** `<validate>`: checks the payload, or a part of it, by a JSON Schema; `<on-fail>` runs where it does not match. */
import type { XmlElement } from '../../config/xml.ts'
import { servicesOf } from '../backend-calls.ts'
import type { Expression } from '../expression.ts'
import type { Evaluate } from '../expression-compiler.ts'
import { repeatedMembers } from '../formats/json-members.ts'
import { compileSchema, type SchemaCheck } from '../json-schema.ts'
import { MediationFault } from '../mediation-fault.ts'
import { mediator, type Run } from '../mediator.ts'
import type { Message } from '../message.ts'
import type { SequenceParser } from '../sequence-parser.ts'
import type { MediatorPlan } from '../sequence-plan.ts'
import { jsonOfXml } from '../json-xml.ts'
import type { Json, Value } from '../value.ts'

interface ValidateSettings {
  /** A local entry, a file, or the text itself. */
  readonly schema: { readonly key: string } | { readonly text: string }
  /** Null: the whole payload, which must be JSON. */
  readonly source: Expression | null
  readonly onFail: readonly MediatorPlan[]
}

const INVALID = 102584
const XSD_HINT = 'write a JSON Schema; XML is checked by <filter>, or by <class>'
const MESSAGE_MAX = 1024

export const validate = mediator<ValidateSettings>({
  name: 'validate',
  attributes: ['source', 'cache-schema'],
  elements: ['schema', 'on-fail', 'property', 'feature', 'resource'],

  parse(element, parser) {
    for (const name of ['property', 'feature', 'resource']) {
      for (const child of element.children.filter(child => child.name === name)) {
        parser.error(child, '', 'is of XML Schema, which is not supported', XSD_HINT)
      }
    }
    // A compiled schema is kept until its text changes.
    parser.flag(element, 'cache-schema')
    const schema = parseSchema(parser.only(element, 'schema'), element, parser)
    const source = element.has('source') ? parser.expression(element, 'source') : null
    const onFail = parser.only(element, 'on-fail')
    if (onFail === undefined || onFail.children.length === 0) {
      const hint = 'say what happens to a message that does not match: <on-fail> with mediators'
      return parser.error(element, 'on-fail', 'is missing', hint)
    }
    parser.checkAttributes(onFail, [])
    parser.checkNoText(onFail)
    const steps = parser.mediators(onFail.children)
    return schema === undefined || source === undefined ? undefined : { schema, source, onFail: steps }
  },

  needs: () => 'worker',

  compile({ schema, source, onFail }, context) {
    const evaluate = source === null ? null : context.compileExpression(source)
    const fails = context.compileAll(onFail)
    let known: { readonly text: string; readonly check: SchemaCheck } | null = null
    const checked = (message: Message, check: SchemaCheck): ReturnType<Run> => {
      const violation = violationIn(message, evaluate, check)
      if (violation === '') return true
      describe(message, violation.slice(0, MESSAGE_MAX))
      return fails(message)
    }
    if ('text' in schema) {
      const { text } = schema
      let check: SchemaCheck | null = null
      // With the first message: reactors compile sequences that workers run, and load no validator.
      return message => {
        check ??= compileSchema(text)
        return checked(message, check)
      }
    }
    const { key } = schema
    return async message => {
      const text = await servicesOf(message).code.text(key)
      if (known?.text !== text) known = { text, check: compiled(key, text) }
      return checked(message, known.check)
    }
  },
})

function parseSchema(
  schema: XmlElement | undefined,
  element: XmlElement,
  parser: SequenceParser,
): ValidateSettings['schema'] | undefined {
  if (schema === undefined)
    return parser.error(element, 'schema', 'is missing', 'add <schema key="schemas/order.json"/>')
  parser.checkAttributes(schema, ['key'])
  if (schema.children.length > 0) return parser.error(schema, '', 'is XML Schema, which is not supported', XSD_HINT)
  if (!schema.has('key')) return inlineSchema(schema, parser)
  const key = parser.required(schema, 'key')
  if (key === undefined) return undefined
  if (schema.text !== '') return parser.error(schema, '', 'has both text and key', 'keep one of them')
  if (key.startsWith('{'))
    return parser.error(schema, 'key', 'is an expression', 'name a file; use <switch> to choose', key)
  if (/\.xsd$/i.test(key)) return parser.error(schema, 'key', 'is XML Schema, which is not supported', XSD_HINT, key)
  parser.uses(schema, 'schema', key)
  return { key }
}

function inlineSchema(schema: XmlElement, parser: SequenceParser): ValidateSettings['schema'] | undefined {
  const { text } = schema
  const problem = schemaProblem(text)
  return problem === '' ? { text } : parser.error(schema, '', problem, 'correct it')
}

/** Why a text is no JSON Schema; '' where it is one. */
export function schemaProblem(text: string): string {
  if (/^\s*</.test(text)) return `is XML Schema, which is not supported: ${XSD_HINT}`
  try {
    compileSchema(text)
    return ''
  } catch (error) {
    // The rest of a syntax error quotes the text.
    return `is no JSON Schema: ${(error as Error).message.slice(0, 200)}`
  }
}

function compiled(key: string, text: string): SchemaCheck {
  const problem = schemaProblem(text)
  if (problem === '') return compileSchema(text)
  throw new MediationFault({ message: 'The message could not be mediated', cause: `${key} ${problem}` })
}

/** Returns '' where the message matches. A repeated member is a violation: a backend may take the first one. */
function violationIn(message: Message, evaluate: Evaluate | null, check: SchemaCheck): string {
  const { payload } = message
  const text = payload?.kind === 'json' || payload?.kind === 'text' ? payload.text : ''
  const given = evaluate === null ? undefined : evaluate(message)
  const value = given === undefined ? jsonPayload(message) : jsonOfValue(given)
  if (value === undefined) return 'the payload is not JSON'
  const isOfPayload = payload?.kind === 'json' || evaluate === null
  const texts = [...(isOfPayload ? [text] : []), ...(typeof given === 'string' ? [given] : [])]
  for (const each of texts) {
    const [pointer] = parsed(each) === undefined ? [] : repeatedMembers(each, 1)
    if (pointer !== undefined) return `${pointer} must not be repeated`
  }
  return check(value)
}

function jsonPayload(message: Message): Json | undefined {
  const { payload } = message
  if (payload?.kind === 'text') return parsed(payload.text)
  return message.json
}

/** A text that is JSON is JSON, as `json-eval` gives it. */
function jsonOfValue(value: Value): Json | undefined {
  if (typeof value === 'string') return parsed(value) ?? value
  if (typeof value !== 'object') return value
  if (value.kind === 'json') return value.value
  const [first = ''] = value.nodes
  return typeof first === 'string' ? first : jsonOfXml(first)
}

function parsed(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json
  } catch {
    return undefined
  }
}

function describe(message: Message, violation: string): void {
  message.set('default', 'ERROR_CODE', INVALID)
  message.set('default', 'ERROR_MESSAGE', violation)
  message.set('default', 'ERROR_DETAIL', violation)
  message.set('default', 'ERROR_EXCEPTION', 'the payload does not match its schema')
}
